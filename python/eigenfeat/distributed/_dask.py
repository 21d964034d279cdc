"""Where Dask is imported, and how its collections are told from other rows."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["is_array", "is_collection", "is_frame", "is_series", "module"]


def module(name: str) -> Any:
    """Import ``dask`` or a part of it; the error says which extra has it."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(
            f"eigenfeat.distributed needs {name}: pip install 'eigenfeat[dask]'"
        ) from error


def is_collection(X: object) -> bool:
    """Whether `X` is Dask's: array, data frame, series or another."""
    return hasattr(X, "__dask_graph__")


def is_array(X: object) -> bool:
    """Whether `X` is a Dask array."""
    return is_collection(X) and hasattr(X, "chunks")


def is_frame(X: object) -> bool:
    """Whether `X` is a Dask data frame."""
    return is_collection(X) and hasattr(X, "columns") and hasattr(X, "map_partitions")


def is_series(X: object) -> bool:
    """Whether `X` is a Dask series."""
    return is_collection(X) and hasattr(X, "to_dask_array") and getattr(X, "ndim", 2) == 1
