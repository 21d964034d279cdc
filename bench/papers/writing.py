"""CSV files that are replaced as a whole, or left as they were."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from eigenfeat._base.files.persist import replacing

__all__ = ["write_lines"]


def write_lines(path: Path, fields: Sequence[str], lines: Iterable[Mapping[str, object]]) -> None:
    """Write a heading and lines; fields that a line does not have stay empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fields)
    writer.writeheader()
    writer.writerows(lines)
    with replacing(path) as file:
        file.write(text.getvalue().encode())
