"""Opening files of samples by their names."""

from __future__ import annotations

import codecs
import errno
import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from eigenfeat._base.validation import check_count, check_dtype, show, show_items, warn_caller
from eigenfeat.io.arrays import ArraySource
from eigenfeat.io.columnar import IpcSource, ParquetSource
from eigenfeat.io.delimited import DelimitedSource, Scans, settle_types
from eigenfeat.io.errors import OptionError, ending_of, is_gzip
from eigenfeat.io.rows import FileRows
from eigenfeat.io.source import Options, Source
from eigenfeat.io.svmlight import SvmlightSource, settle_columns

__all__ = ["FORMATS", "described", "format_of", "listed_files", "open_rows"]

FORMATS: dict[str, tuple[type[Source], tuple[str, ...]]] = {
    "csv": (DelimitedSource, (".csv", ".tsv")),
    "parquet": (ParquetSource, (".parquet", ".pq")),
    "arrow": (IpcSource, (".arrow", ".feather", ".ipc")),
    "npy": (ArraySource, (".npy",)),
    "svmlight": (SvmlightSource, (".svm", ".svmlight", ".libsvm")),
}
_LABELS = ("auto", "int", "float", "bool", "str", "none")
_TYPES: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "str": (str,),
    "None": (type(None),),
}


def open_rows(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | int | os.PathLike[str] | None = None,
    *,
    columns: Sequence[str | int] | None = None,
    drop: Sequence[str | int] = (),
    categorical: Sequence[str | int] = (),
    dtype: npt.DTypeLike | None = None,
    block_rows: int | None = None,
    missing: bool = False,
    na_values: Sequence[str] = (),
    keep_default_na: bool = True,
    skip_bad: bool = False,
    mark_bad: bool = False,
    labels: str = "auto",
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str | None = None,
    decimal: str = ".",
    comment: str | None = None,
    n_features: int | None = None,
    zero_based: bool | None = None,
) -> FileRows:
    r"""Open a file, or several files with equal columns, as blocks of samples.

    User guide: :doc:`/guide/large_data`.

    Parameters
    ----------
    path : path, or list of paths
        Files, patterns such as ``"part-*.csv"``, or folders, whose files of known formats are read;
        subfolders such as ``year=2024`` are columns. Formats: CSV (.csv, .tsv, also .gz), Parquet
        (.parquet, .pq), Arrow IPC and Feather (.arrow, .feather, .ipc), NumPy (.npy), svmlight
        (.svm, .svmlight, .libsvm, also .gz; sparse).
    target : str or int, optional
        Column of labels, by name or number; for NumPy files, also another file of labels (.npy).
        Not needed for svmlight files, which contain labels.
    columns : sequence of str or int, optional
        The feature columns, in this order. By default, all columns are features except the target
        and the indexes that pandas or Dask wrote. In a CSV file such an index is a first column of
        distinct whole numbers without a name.
    drop : sequence of str or int, default=()
        Columns to leave out.
    categorical : sequence of str or int, default=()
        Columns of categories that look like numbers, such as codes.
    dtype : {None, float32, float64}, default=None
        Type of the features. None: float32 if all features are float32, else float64.
    block_rows : int, optional
        Number of samples in a block. The default makes blocks of about 32 MB.
    missing : bool, default=False
        Whether missing values are allowed. They are NaN in the blocks.
    na_values : sequence of str, default=()
        Further cells of CSV files that are missing values, such as "?" and "-".
    keep_default_na : bool, default=True
        Whether the cells of CSV files that ``pandas.read_csv`` reads as missing, such as NA, NaN
        and null, are missing values. If False, only empty cells and `na_values` are missing.
    skip_bad : bool, default=False
        Whether to skip lines with infinity, text instead of numbers, a wrong number of fields or no
        label, and lines with missing values unless `missing`. Otherwise such lines are errors.
    mark_bad : bool, default=False
        Whether the lines that `skip_bad` skips become samples of zeros, so that predictions match
        the lines of the files. The labels of blocks are then True for bad lines, False for others.
    labels : {"auto", "int", "float", "bool", "str", "none"}, default="auto"
        Type of the labels. "auto" infers it from the first labels; "none" ignores labels.
    format : {"csv", "parquet", "arrow", "npy", "svmlight"}, optional
        File format; by default inferred from the file name.
    delimiter : str, optional
        Separator of CSV files; by default "," and, in .tsv files, tab.
    header : bool, optional
        Whether the first line of CSV files has names; by default detected.
    encoding : str, optional
        Encoding of CSV files; UTF-8 by default.
    decimal : {".", ","}, default="."
        Decimal point of CSV files.
    comment : str, optional
        Lines of CSV files that begin with this text are left out.
    n_features : int, optional
        Number of columns of svmlight files; by default found by a first pass over all files.
    zero_based : bool, optional
        Whether svmlight files count columns from 0; by default found by a first pass.

    Returns
    -------
    FileRows

    Warns
    -----
    UserWarning
        If the index in a CSV file is left out.

    Raises
    ------
    OSError
        If a file cannot be read.
    OptionError
        If an argument is invalid or names a missing column; a subclass of ValueError.
    ValueError
        If the columns of the files differ, or a file is damaged.
    ImportError
        If pyarrow is required but missing.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from eigenfeat import FisherLDA, open_rows
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "samples.csv"
    >>> _ = file.write_text("a,b,kind\n1,2,x\n3,5,x\n5,6,y\n7,9,y\n")
    >>> rows = open_rows(file, target="kind")
    >>> FisherLDA().fit(rows).score(rows)
    1.0
    """
    given = locals().copy()
    del given["path"]
    rows = FileRows(_checked(given), partial(_sources, listed_files(path, format), {}))
    if rows.sources[0].index_left_out:
        warn_caller(
            f"{rows.sources[0].path}: the first column has row numbers and no name, and is left "
            "out; drop (--drop 0) confirms this, columns (--columns) names the features",
            UserWarning,
        )
    return rows


def _checked(given: dict[str, Any]) -> Options:
    """Options from the arguments of `open_rows`; OptionError or ValueError if one is invalid."""
    for name in ("columns", "drop", "categorical", "na_values"):
        value = given[name]
        if value is None:
            given[name] = None if name == "columns" else ()
            continue
        kinds: tuple[type, ...] = (str,) if name == "na_values" else (str, int, np.integer)
        what = "texts" if name == "na_values" else "names or numbers"
        if isinstance(value, (str, dict)) or not np.iterable(value):
            raise OptionError(name, f"expected a list of {what}, got {show(value)}")
        given[name] = tuple(value)
        for entry in given[name]:
            if not isinstance(entry, kinds) or isinstance(entry, bool):
                raise OptionError(name, f"expected {what}, got {show(entry)}")
    for name in ("n_features", "block_rows"):
        if given[name] is not None:
            given[name] = check_count(given[name], name)
    target, dtype = given["target"], check_dtype(given["dtype"])
    if not isinstance(target, (str, int, np.integer, os.PathLike, type(None))):
        raise OptionError("target", f"expected a column by name or number, got {show(target)}")
    given["target"] = os.fspath(target) if isinstance(target, os.PathLike) else target
    given["dtype"] = None if dtype is None else dtype.name
    options = Options(**given)
    for field in fields(Options):
        value, type_names = given[field.name], str(field.type).split(" | ")
        allowed = [kind for name in type_names for kind in _TYPES.get(name, (object,))]
        if not isinstance(value, tuple(allowed)):
            raise OptionError(field.name, f"expected {field.type}, got {show(value)}")
    _check_values(options)
    return options


def _check_values(options: Options) -> None:
    """OptionError for invalid values of options, and for options that exclude each other."""
    delimiter, comment = options.delimiter, options.comment
    if options.labels not in _LABELS:
        what = f"expected one of {', '.join(_LABELS)}, got {show(options.labels)}"
        raise OptionError("labels", what)
    if options.labels == "none" and options.target is not None:
        raise OptionError("labels", "expected a type of labels with a target, got 'none'")
    if options.skip_bad and options.mark_bad:
        raise OptionError("mark_bad", "expected False with skip_bad, got True")
    if delimiter is not None and len(delimiter) != 1:
        raise OptionError("delimiter", f"expected one character, got {show(delimiter)}")
    # The excluded characters end text or lines, or quote fields.
    if delimiter is not None and (not delimiter.isascii() or delimiter in '\0\n\r"'):
        what = f"expected an ASCII character that can separate fields, got {show(delimiter)}"
        raise OptionError("delimiter", what)
    if options.decimal not in (".", ","):
        raise OptionError("decimal", f"expected '.' or ',', got {show(options.decimal)}")
    if comment is not None and (not comment or '"' in comment or not comment.isprintable()):
        raise OptionError("comment", f"expected text that begins a line, got {show(comment)}")
    try:
        codecs.getincrementaldecoder(options.encoding or "utf-8")()
    except (LookupError, ValueError):
        what = f"expected the name of a Python codec, got {show(options.encoding)}"
        raise OptionError("encoding", what) from None


# ---- files ---------------------------------------------------------------------------------------


def format_of(path: Path) -> str | None:
    """Format of a file by its name; None if it is not known."""
    names = ("csv", "svmlight") if is_gzip(path) else FORMATS
    return next((name for name in names if ending_of(path) in FORMATS[name][1]), None)


def listed_files(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], format: str | None
) -> list[tuple[Path, dict[str, str]]]:
    """All files of a path, or of a list of paths, folders and patterns.

    Each file comes with the columns given by its folders, such as ``year=2024``.
    """
    if isinstance(path, (str, os.PathLike)):
        path = [path]
    given: list[Any] = list(path) if np.iterable(path) and not isinstance(path, dict) else [None]
    if not all(isinstance(name, (str, os.PathLike)) for name in given):
        raise TypeError(f"path: expected a path or a list of paths, got {show(path)}")
    files = [file for name in given for file in _files(Path(name), format)]
    if not files:
        raise ValueError("path: expected at least one file, got none")
    return files


def _files(path: Path, format: str | None) -> list[tuple[Path, dict[str, str]]]:
    if path.is_dir():
        files = _files_in_folder(path, format, {})
        if not files:
            raise ValueError(f"{path}: expected a folder with files of {', '.join(FORMATS)}")
        keys = [set(names) for _, names in files]
        if any(names != keys[0] for names in keys):
            raise ValueError(
                f"{path}: expected folders with equal columns such as year=2024, got "
                f"{show(sorted(keys[0]))} and {show(sorted(next(k for k in keys if k != keys[0])))}"
            )
        return files
    if not path.exists() and glob.has_magic(str(path)):
        matches = sorted(Path(name) for name in glob.glob(str(path)))
        if not matches:
            raise FileNotFoundError(errno.ENOENT, "No file matches", str(path))
        return [(match, {}) for match in matches]
    return [(path, {})]


def _files_in_folder(
    folder: Path, format: str | None, keys: dict[str, str]
) -> list[tuple[Path, dict[str, str]]]:
    """Files of a folder and of its subfolders NAME=VALUE, as Hive writes them."""
    files: list[tuple[Path, dict[str, str]]] = []
    for path in sorted(folder.iterdir()):
        name, equals, value = path.name.partition("=")
        if path.is_dir() and equals and name:
            files += _files_in_folder(path, format, keys | {unquote(name): unquote(value)})
        elif path.is_file() and path.name[0] not in "._" and (format or format_of(path)):
            files.append((path, keys))
    return files


def _open_source(path: Path, keys: dict[str, str], options: Options) -> Source:
    name = options.format or format_of(path)
    if name not in FORMATS:
        endings = " ".join(suffix for _, suffixes in FORMATS.values() for suffix in suffixes)
        sheet = path.suffix.lower() in (".xls", ".xlsx", ".xlsm", ".ods")
        raise ValueError(
            f"{path}: expected a name that ends in one of {endings}, or the option format "
            f"({', '.join(FORMATS)}){'; save the sheet as CSV' if sheet else ''}"
        )
    return FORMATS[name][0](path, options, keys)


def _sources(
    files: list[tuple[Path, dict[str, str]]], scans: Scans, options: Options
) -> list[Source]:
    """Open all files; the first sets the names, all CSV files set the types of their columns."""
    if len(files) > 1 and str(options.target).endswith(".npy"):
        raise OptionError("target", "expected a column with several files, got a file of labels")
    first, later = _open_source(*files[0], options), options
    if first.named and not first.choice.unclear:  # later files may have another order
        later = replace(options, columns=tuple(first.identified(first.choice.features)), drop=())
    sources = [first]
    for path, keys in files[1:]:
        try:
            sources.append(_open_source(path, keys, later))
        except OptionError as error:
            if later is options or error.option != "columns":
                raise
            sources.append(_open_source(path, keys, options))
    if tables := [source for source in sources if isinstance(source, DelimitedSource)]:
        settle_types(tables, scans)
    if sparse := [source for source in sources if isinstance(source, SvmlightSource)]:
        settle_columns(sparse, options)
    for source in sources[1:]:
        source.label_kind = first.label_kind
        names_differ = not first.sparse and source.feature_names != first.feature_names
        if source.sparse != first.sparse or names_differ:
            raise ValueError(
                f"{source.path}: expected the feature columns of {first.path} "
                f"({_columns(first)}), got {_columns(source)}"
            )
        for place in first.identified(first.choice.features if first.named else ()):
            if isinstance(place, int):  # its name occurs several times
                name = first.names[place]
                expected, got = (
                    [j for j, other in enumerate(names) if other == name]
                    for names in (first.names, source.names)
                )
                if len(got) > 1 and got != expected:
                    raise ValueError(
                        f"{source.path}: expected {show(name)} as columns "
                        f"{show_items(expected, 60)}, as in {first.path}, got columns "
                        f"{show_items(got, 60)}; rename the columns"
                    )
    return sources


def _columns(source: Source) -> str:
    if source.sparse:
        return f"{source.n_features} of sparse samples"
    return show(source.feature_names)


def described(path: str | Path, **options: Any) -> dict[str, Any]:
    """Format, number of samples (None if the file does not store it), and columns of a file.

    Options are those of `open_rows`.
    """
    (source,) = open_rows(path, **options).sources
    summary = {
        "kind": "rows",
        "format": source.format,
        "rows": source.n_rows,
        "n_columns": len(source.names) or source.n_features,
        **source.facts,
    }
    if not source.named and len({*source.types}) == 1:
        return summary | {"type": source.types[0]}
    columns = zip(source.names, source.types, strict=True)
    return summary | {"columns": [{"name": name, "type": kind} for name, kind in columns]}
