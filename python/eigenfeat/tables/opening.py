"""Opening files of rows by their names."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.validation import check_count, check_dtype, show
from eigenfeat.tables.errors import OptionError
from eigenfeat.tables.formats import FORMATS, format_of, open_source
from eigenfeat.tables.rows import FileRows
from eigenfeat.tables.source import LABEL_KINDS, Options, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["listed_files", "open_rows"]

_BLOCK_BYTES = 32e6
_NO_DELIMITERS = '\0\n\r"'  # they end the text, the row, or are around fields
_KINDS = {"target": "a column by name or number, or a path", "delimiter": "one character"}


def open_rows(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | int | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (),
    dtype: npt.DTypeLike | None = None,
    block_rows: int | None = None,
    skip_bad: bool = False,
    mark_bad: bool = False,
    labels: str = "auto",
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    x_name: str = "X",
    y_name: str = "y",
    n_features: int | None = None,
    zero_based: bool | None = None,
) -> FileRows:
    r"""Open one file, or several with the same columns, as blocks of rows.

    Parameters
    ----------
    path : path, or list of paths
        Files, folders (all their files of a known format, by name) or patterns such as
        ``"part-*.csv"``. CSV (.csv, .tsv, also .gz), Parquet (.parquet, .pq), Arrow IPC and Feather
        (.arrow, .feather, .ipc), NumPy (.npy, .npz), svmlight (.svm, .svmlight, .libsvm, also .gz;
        sparse rows).
    target : str or int, optional
        Column of labels, by name or number; for NumPy files, also another file of labels (.npy).
        svmlight files, and .npz files with an array `y_name`, have labels without it. All other
        blocks have no labels without a target.
    columns, drop : sequences of str or int
        The feature columns, in this order, or the columns to leave out. By default, all columns
        except the target are features.
    dtype : {None, float32, float64}
        Type of the features. The default is float32 if all features in the files are, else float64.
    block_rows : int, optional
        Number of rows in a block. The default makes blocks of about 32 MB.
    skip_bad : bool, default=False
        Whether to skip rows with missing values, NaN, infinity, text instead of numbers or a wrong
        number of fields. Otherwise they raise an error.
    mark_bad : bool, default=False
        Whether to keep such rows in place, with NaN or infinity, so that the rows of blocks match
        those of the files. Blocks then have no labels. Use it for predictions; `fit` rejects such
        rows.
    labels : {"auto", "int", "float", "bool", "str", "none"}
        Type of the labels. "auto" infers it from the first labels; whole numbers in a column of a
        float matrix become integers. "none" ignores labels in the files.
    format : {"csv", "parquet", "arrow", "npy", "npz", "svmlight"}, optional
        File format; by default inferred from the file name.
    delimiter, header
        For CSV files. The defaults are "," (tab in .tsv), and a header if the first line has no
        numbers. Fields may be quoted, but may not contain line breaks.
    x_name, y_name : str
        Names of the arrays in .npz files.
    n_features, zero_based
        For svmlight files: number of columns, and whether they are counted from 0. By default, a
        first pass over the files finds both.

    Returns
    -------
    FileRows

    Raises
    ------
    OSError
        If a file cannot be read.
    OptionError
        If an argument is invalid or names a missing column; a subclass of ValueError.
    ValueError
        If features are not numbers, or the columns of the files differ.
    ImportError
        If pyarrow is required but missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from eigenfeat import ClassMoments, open_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "rows.csv"
    >>> _ = file.write_text("a,b,kind\n1,2,x\n3,4,x\n5,6,y\n")
    >>> moments = ClassMoments()
    >>> for block in open_rows(file, target="kind"):
    ...     moments.update(block.X, block.y)
    ClassMoments(2 classes, 2 features, weight 3)
    """
    _check_kinds(
        {"columns": columns, "drop": drop},
        {"target": target, "labels": labels, "format": format, "delimiter": delimiter},
        {"header": header, "zero_based": zero_based},
    )
    if n_features is not None:
        check_count(n_features, "n_features", at_least=1)
    if labels not in LABEL_KINDS:
        kinds = ", ".join(LABEL_KINDS)
        raise OptionError("labels", f"expected one of {kinds}, got {show(labels)}")
    if delimiter is not None and len(delimiter) != 1:
        raise OptionError("delimiter", f"expected one character, got {show(delimiter)}")
    if delimiter is not None and (not delimiter.isascii() or delimiter in _NO_DELIMITERS):
        raise OptionError(
            "delimiter", f"expected a character of ASCII that can separate, got {show(delimiter)}"
        )
    if labels == "none" and target is not None:
        raise OptionError("labels", f"expected another kind with a target, got {show(labels)}")
    for name, value in (("skip_bad", skip_bad), ("mark_bad", mark_bad)):
        if not isinstance(value, (bool, np.bool_)):
            raise OptionError(name, f"expected True or False, got {show(value)}")
    if skip_bad and mark_bad:
        raise OptionError("mark_bad", "expected False with skip_bad, got True")
    wanted = check_dtype(dtype)
    options = Options(
        os.fspath(target) if isinstance(target, os.PathLike) else target,
        None if columns is None else tuple(columns),
        tuple(drop),
        *(skip_bad, mark_bad, labels, delimiter, header, x_name, y_name, n_features, zero_based),
        None if wanted is None else wanted.name,
    )
    sources = _sources(listed_files(path, format), format, options)
    found = wanted or np.result_type(*(source.dtype for source in sources))
    if block_rows is None:
        block_rows = _default_rows(sources[0], found)
    else:
        block_rows = check_count(block_rows, "block_rows", at_least=1)
    return FileRows(sources, options, found, block_rows)


def _check_kinds(lists: dict[str, Any], words: dict[str, Any], flags: dict[str, Any]) -> None:
    """OptionError for arguments of another kind than theirs."""
    for name, value in lists.items():
        if value is not None and (not np.iterable(value) or isinstance(value, dict)):
            raise OptionError(name, f"expected a list of names or numbers, got {show(value)}")
    for name, value in words.items():
        kinds = (str, int, np.integer, os.PathLike) if name == "target" else (str,)
        if value is not None and not isinstance(value, kinds):
            raise OptionError(name, f"expected {_KINDS.get(name, 'a word')}, got {show(value)}")
    for name, value in flags.items():
        if value is not None and not isinstance(value, (bool, np.bool_)):
            raise OptionError(name, f"expected None, True or False, got {show(value)}")


def _sources(paths: list[Path], format: str | None, options: Options) -> list[Source]:
    first = open_source(paths[0], format, options, len(paths), None)
    sources = [first]
    sources += [open_source(path, format, options, len(paths), first) for path in paths[1:]]
    for source in sources[1:]:
        if source.sparse and first.sparse:
            first.widen(source.n_features)
    for source in sources[1:]:
        if source.sparse and first.sparse:
            source.widen(first.n_features)
        if source.feature_names != first.feature_names or source.sparse != first.sparse:
            raise ValueError(
                f"{source.path}: expected the feature columns of {first.path} "
                f"({show(first.feature_names)}), got {show(source.feature_names)}"
            )
    return sources


def _default_rows(source: Source, dtype: np.dtype[Any]) -> int:
    if source.sparse:
        return 16384
    rows = _BLOCK_BYTES / (source.n_features * dtype.itemsize)
    return int(np.clip(rows // 512 * 512, 16, 1 << 20))


def listed_files(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None = None
) -> list[Path]:
    """All files that a path, or a list of paths, folders and patterns, names."""
    if isinstance(path, (str, os.PathLike)):
        path = [path]
    given: list[Any] = list(path) if np.iterable(path) and not isinstance(path, dict) else [None]
    if not all(isinstance(name, (str, os.PathLike)) for name in given):
        raise TypeError(f"path: expected a path or a list of paths, got {show(path)}")
    found = [file for name in given for file in _files(Path(name), format)]
    if not found:
        raise ValueError("path: expected at least one file, got none")
    return found


def _files(path: Path, format: str | None) -> list[Path]:
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] not in "._")
        found = inside if format else [p for p in inside if format_of(p) is not None]
        if not found:
            raise ValueError(f"{path}: expected a folder with files of {', '.join(FORMATS)}")
        return found
    if not path.exists() and glob.has_magic(str(path)):
        found = sorted(Path(name) for name in glob.glob(str(path)))
        if not found:
            raise FileNotFoundError(2, "No file matches", str(path))
        return found
    return [path]
