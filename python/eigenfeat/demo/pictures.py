"""Pictures of the demonstrations, in files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["save_pictures"]


def save_pictures(
    pictures: Mapping[str, tuple[Figure, str]], folder: Path
) -> list[tuple[Path, str]]:
    """Write figures to ``NAME.png``; return the files and the captions."""
    written = []
    for stem, (figure, caption) in pictures.items():
        path = folder / f"{stem}.png"
        figure.savefig(path)
        written.append((path, caption))
    return written
