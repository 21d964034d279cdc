"""Files of rows as `RowBlocks`: read block by block, never the whole file in memory."""

from .errors import BadRowError
from .rows import FileRows, Position, open_rows

__all__ = ["BadRowError", "FileRows", "Position", "open_rows"]
