"""Files of samples as `RowBlocks`: read block by block, never the whole file in memory.

One line of CSV becomes a part of a block in four steps: `open_rows` (opening.py) finds the files
and checks the options; a `Source` (source.py) is one file, and gives its samples in chunks, by
pyarrow (delimited.py, columnar.py), NumPy (arrays.py) or scikit-learn (svmlight.py); `FileRows`
(rows.py) leaves bad samples out, or names them, and makes blocks of the chunks.
"""

from eigenfeat.tables.errors import BadRowError, OptionError
from eigenfeat.tables.opening import described, listed_files, open_rows
from eigenfeat.tables.rows import FileRows, Position

__all__ = [
    "BadRowError",
    "FileRows",
    "OptionError",
    "Position",
    "described",
    "listed_files",
    "open_rows",
]
