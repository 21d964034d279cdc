"""Class moments on the way: what has been added up, and how far the reading of rows has come."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from eigenfeat._base.files import persist
from eigenfeat.moments.class_moments import ClassMoments

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KIND", "read_checkpoint", "write_checkpoint"]

KIND = "moments checkpoint"


def write_checkpoint(
    path: str | os.PathLike[str], moments: ClassMoments, progress: Mapping[str, object]
) -> None:
    """Write the exact state of `moments`, and anything that JSON can hold, atomically."""
    meta = {"moments": moments._meta(), "progress": progress}
    persist.write(path, KIND, meta, moments._arrays())


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[ClassMoments, dict[str, Any]]:
    """Read what `write_checkpoint` wrote; FileFormatError for anything else."""
    with persist.read(path, KIND) as file:
        progress = file.meta["progress"]
        if not isinstance(progress, dict):
            raise persist.FileFormatError("it does not say how far it has come")
        return ClassMoments._restored(file.meta["moments"], file.array), progress
