"""Files of rows as `RowBlocks`: read block by block, never the whole file in memory."""

from .errors import BadRowError, OptionError
from .formats import described
from .opening import listed_files, open_rows
from .rows import FileRows, Position

__all__ = [
    "BadRowError",
    "FileRows",
    "OptionError",
    "Position",
    "described",
    "listed_files",
    "open_rows",
]
