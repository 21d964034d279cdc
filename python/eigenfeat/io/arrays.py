"""NumPy's arrays in files, which are mapped into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from eigenfeat._base.types import DType
from eigenfeat.io.errors import BadRowError, damage_named
from eigenfeat.io.source import (
    Chunk,
    ColumnChoice,
    Options,
    Source,
    kind_of,
    kind_of_floats,
    labels_of_array,
)

__all__ = ["ArraySource"]

_PIECE_BYTES = 16 << 20  # size of a chunk
_PROBED_LABELS = 1 << 16  # first labels, which determine the kind of labels
_MAX_EMPTY_COLUMNS = 1 << 20  # without rows, a short file can claim any number of columns

_Array = npt.NDArray[Any]


class ArraySource(Source):
    """A matrix of an .npy file, with labels from a column or from another file."""

    format = "npy"
    named = False
    _labels_path: Path | None = None  # file of the labels, if they have a file of their own

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        super().__init__(path, options, keys)
        X = _mapped(path)
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(
                f"{path}: expected a matrix of real numbers (rows, columns), got shape "
                f"{X.shape}, dtype {X.dtype}"
            )
        self.n_rows, width = X.shape
        if not self.n_rows and width > _MAX_EMPTY_COLUMNS:
            raise ValueError(
                f"{path}: expected at most {_MAX_EMPTY_COLUMNS:,} columns in an array without "
                f"rows, got shape {X.shape}"
            )
        if isinstance(options.target, str) and options.target.endswith(".npy"):
            self._labels_path, options = Path(options.target), replace(options, target=None)
        self.names = [str(j) for j in range(width)]
        self.types, self.kinds = [X.dtype.name] * width, ["number"] * width
        self.choice = ColumnChoice.of(path, self.names, options)
        small = X.dtype.kind == "f" and X.dtype.itemsize <= 4
        self.dtype = np.dtype(np.float32 if small else np.float64)
        fortran = X.flags.f_contiguous and not X.flags.c_contiguous
        self.facts = {"shape": [*X.shape], "order": "Fortran" if fortran else "C"}
        if self._labels_path is not None:
            self.label_kind = kind_of(self._mapped_labels(self._labels_path).dtype, options.labels)
        elif self.choice.target is not None:
            first_labels = X[:_PROBED_LABELS, self.choice.target]
            self.label_kind = kind_of_floats(first_labels, options.labels)

    def _mapped_labels(self, path: Path) -> _Array:
        """Labels in another file."""
        y = _mapped(path)
        if y.shape != (self.n_rows,):
            raise ValueError(
                f"{path}: expected {self.n_rows} labels, one per sample of {self.path}, "
                f"got shape {y.shape}"
            )
        if y.dtype.kind not in "biufUS":
            raise ValueError(f"{path}: expected labels that are numbers or strings, got {y.dtype}")
        return y

    @property
    def target_name(self) -> str:
        """Name of the target column."""
        return super().target_name if self._labels_path is None else self._labels_path.name

    def chunks(self, skip: int) -> Iterator[Chunk]:
        """Yield pieces of the array."""
        n, chosen = self.n_rows or 0, self.choice.features
        columns: Any = slice(chosen[0], chosen[-1] + 1)
        if tuple(chosen) != tuple(range(chosen[0], chosen[-1] + 1)):
            columns = list(chosen)  # a list of columns copies the samples, unlike a slice
        row_bytes = max(len(self.names) * _mapped(self.path).dtype.itemsize, 1)
        size = max(_PIECE_BYTES // row_bytes, 1)
        for start in range(skip, n, size):
            part = slice(start, min(start + size, n))
            X = _mapped(self.path)[part]
            y = unlabelled = given = None
            if self.label_kind not in (None, "none"):
                path = self._labels_path
                given = X[:, self.choice.target] if path is None else _mapped(path)[part]
                y, unlabelled = labels_of_array(given, str(self.label_kind))
            yield Chunk(start, len(X), X[:, columns], y, unlabelled, None, given, part.stop / n)

    def complaint(self, row: int, column: int | None, value: Any, dtype: DType) -> BadRowError:
        """Return the error of a bad row."""
        fault = super().complaint(row, column, value, dtype)
        if column is None and self._labels_path is not None:
            return BadRowError(self._labels_path, "row", row, None, str(fault).split(": ", 2)[2])
        return fault

    def files(self) -> list[Path]:
        """The file of the matrix and the file of the labels."""
        return [self.path, *([] if self._labels_path is None else [self._labels_path])]


def _mapped(path: Path) -> _Array:
    """Map a file into memory. A new map for each piece frees the pages of earlier pieces."""
    with damage_named(path, "an array in NumPy's format"):
        mapped: _Array = open_memmap(path, mode="r")  # type: ignore[no-untyped-call, unused-ignore]
        return mapped
