"""Class moments on the way: what has been added up, and how far the reading of rows has come."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from eigenfeat._base.saved_files import FileFormatError
from eigenfeat.moments.class_moments import ClassMoments

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KIND", "read_checkpoint", "write_checkpoint"]

KIND = "moments checkpoint"


def write_checkpoint(
    path: str | os.PathLike[str], moments: ClassMoments, progress: Mapping[str, object]
) -> None:
    """Write the exact state of `moments`, and anything that JSON can hold, atomically."""
    moments._save_with(path, KIND, {"progress": dict(progress)})


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[ClassMoments, dict[str, Any]]:
    """Read what `write_checkpoint` wrote; FileFormatError for anything else."""
    moments, about = ClassMoments._load_with(path, KIND)
    progress = about.get("progress")
    if not isinstance(progress, dict):
        raise FileFormatError(
            f"{os.fsdecode(path)}: cannot be loaded: it does not say how far it has come"
        )
    return moments, progress
