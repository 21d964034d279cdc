"""Which file is of which format."""

from __future__ import annotations

from pathlib import Path

from .source import Options, Source

__all__ = ["FORMATS", "format_of", "open_source"]

FORMATS = {
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
    "svmlight": (".svm", ".svmlight", ".libsvm"),
}
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
        from .delimited import DelimitedSource

        return DelimitedSource(path, options, first)
    if name == "parquet":
        from .columnar import ParquetSource

        return ParquetSource(path, options, first)
    if name == "arrow":
        from .columnar import IpcSource

        return IpcSource(path, options, first)
    if name == "svmlight":
        from .svmlight import SvmlightSource

        return SvmlightSource(path, options, first)
    from .npy import NpySource

    return NpySource(path, options, n_files, first, zipped=name == "npz")
