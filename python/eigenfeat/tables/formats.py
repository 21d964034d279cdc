"""Formats of files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eigenfeat.tables.source import ColumnNumbers, Options, Source

__all__ = ["FORMATS", "WITH_LABELS", "described", "format_of", "open_source"]

FORMATS = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
}
WITH_LABELS = ("npz", "svmlight")  # which may bring them without a target
_COMPRESSED = ("csv", "svmlight")


def format_of(path: Path) -> str | None:
    """Format of a file by its name; None if it is not known."""
    packed = path.suffix == ".gz"
    suffix = path.with_suffix("").suffix if packed else path.suffix
    found = (name for name, suffixes in FORMATS.items() if suffix.lower() in suffixes)
    name = next(found, None)
    return None if packed and name not in _COMPRESSED else name


def open_source(
    path: Path, format: str | None, options: Options, n_files: int, first: Source | None
) -> Source:
    """Open one of `n_files` files; types and label kind are those of the first one, if given."""
    name = format or format_of(path)
    if name not in FORMATS:
        endings = " ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
        raise ValueError(
            f"{path}: expected a name that ends in one of {endings}, or the option format "
            f"({', '.join(FORMATS)})"
        )
    if name == "csv":
        from eigenfeat.tables.delimited import DelimitedSource

        return DelimitedSource(path, options, first)
    if name == "parquet":
        from eigenfeat.tables.columnar import ParquetSource

        return ParquetSource(path, options, first)
    if name == "arrow":
        from eigenfeat.tables.columnar import IpcSource

        return IpcSource(path, options, first)
    if name == "svmlight":
        from eigenfeat.tables.svmlight import SvmlightSource

        return SvmlightSource(path, options, first)
    from eigenfeat.tables.npy import NpySource

    return NpySource(path, options, n_files, first, zipped=name == "npz")


def described(
    path: str | Path,
    format: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    x_name: str = "X",
) -> dict[str, Any]:
    """What a file of rows says of itself: format, rows (None: not without reading), columns."""
    options = Options(delimiter=delimiter, header=header, x_name=x_name, any_type=True)
    source = open_source(Path(path), format, options, 1, None)
    found = {
        "kind": "rows",
        "format": format or format_of(Path(path)),
        "rows": source.n_rows,
        "n_columns": len(source.names),
        **source.facts(),
    }
    if isinstance(source.names, ColumnNumbers):
        return found | {"type": source.types[0]}
    if source.names == [str(j) for j in range(len(source.names))] and len({*source.types}) == 1:
        return found | {"type": source.types[0]}
    columns = zip(source.names, source.types, strict=True)
    return found | {"columns": [{"name": name, "type": kind} for name, kind in columns]}
