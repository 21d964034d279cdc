"""Files of rows as `RowBlocks`: read block by block, never the whole file in memory."""

from eigenfeat.tables.errors import BadRowError, OptionError
from eigenfeat.tables.opening import described, listed_files, open_rows
from eigenfeat.tables.rows import FileRows, GatheredRows, Position

__all__ = [
    "BadRowError",
    "FileRows",
    "GatheredRows",
    "OptionError",
    "Position",
    "described",
    "listed_files",
    "open_rows",
]
