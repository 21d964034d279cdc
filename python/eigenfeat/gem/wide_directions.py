"""Directions of a huge dimension as what they are: combinations of the rows of two classes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from eigenfeat._base.files.stored import Stored, held
from eigenfeat._base.sparse_rows import SparseRows
from eigenfeat._base.types import DType, Floats
from eigenfeat._base.validation import physical_memory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike
    from scipy.sparse import csc_matrix, csr_array

    from eigenfeat.pencils.wide_rows import WideClasses

__all__ = ["WIDE_DIRECTIONS", "Combination", "WideDirections"]

Array = NDArray[np.float64]

KIND = "combinations of rows"
GROUP_BYTES = 300e6  # directions that are formed at a time
KEPT_BYTES = 256e6  # directions that are kept once they have been formed


@dataclass(frozen=True, eq=False)
class Combination:
    """``X_above^T upper + X_below^T lower + mean_of_all mean^T``: the directions (d', m) of a pair.

    Attributes
    ----------
    above, below : int
        The classes.
    upper, lower : (n_above, m) and (n_below, m) arrays
    mean : (m,) array
        Zeros, but in files of models whose covariances below were taken about the mean of all rows.
    """

    above: int
    below: int
    upper: Array
    lower: Array
    mean: Array


@dataclass(eq=False)
class WideDirections:
    """F directions of d features that are combinations of sparse rows.

    They are zero in every feature that no row of their two classes has. With a million features of
    text a direction still has half a million entries, mostly of terms that occur once; the factors
    of the rows that it combines are some ten thousand. So these are kept, with the rows, and
    directions are formed in groups wherever they are used: it takes one pass over the rows.

    Attributes
    ----------
    shape : (d, F)
    dtype : float32 or float64
        As the rows.
    """

    columns: NDArray[np.int64]  # which features occur, (d',)
    factor: Array  # (d',)
    mean: Array  # (d',), in the units solved for
    by_column: list[SparseRows]  # the rows of every class, transposed: (d', n_c)
    combinations: list[Combination]
    n_features: int
    _formed: NDArray[Any] | None = field(default=None, repr=False)

    @classmethod
    def of(cls, classes: WideClasses, combinations: list[Combination]) -> WideDirections:
        """Directions over rows that were solved from."""
        if classes.columns is None:
            raise AssertionError("dense rows have no combinations")
        by_column = [rows.transposed() for rows in classes.rows if isinstance(rows, SparseRows)]
        return cls(
            classes.columns,
            classes.factor,
            classes.mean,
            by_column,
            combinations,
            classes.n_features,
        )

    def meta(self) -> dict[str, Any]:
        """What JSON can hold of them; the rest is in `arrays`."""
        return {
            "kind": KIND,
            "n_features": self.n_features,
            "width": len(self.columns),
            "dtype": self.dtype.newbyteorder("<").str,
            "classes": [[rows.n_columns, len(rows.data)] for rows in self.by_column],
            "pairs": [[one.above, one.below, len(one.mean)] for one in self.combinations],
        }

    def arrays(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """Arrays by name, for `of_parts`."""
        yield "columns", self.columns.astype(np.int64, copy=False)
        yield "factor", self.factor
        yield "mean", self.mean
        for c, rows in enumerate(self.by_column):
            yield f"class{c}_data", rows.data
            yield f"class{c}_indices", rows.indices
            yield f"class{c}_indptr", rows.indptr
        for i, one in enumerate(self.combinations):
            yield f"pair{i}_upper", one.upper
            yield f"pair{i}_lower", one.lower
            yield f"pair{i}_mean", one.mean

    @classmethod
    def of_parts(cls, meta: dict[str, Any], array: Callable[..., NDArray[Any]]) -> WideDirections:
        """What `meta` and `arrays` say; ValueError, LookupError or TypeError for nonsense."""
        d, width, dtype = int(meta["n_features"]), int(meta["width"]), meta["dtype"]
        columns = array("columns", (width,), "<i8")
        distinct = np.unique(columns)
        sound = dtype in ("<f4", "<f8") and len(distinct) == width > 0
        if not sound or distinct[0] < 0 or distinct[-1] >= d:
            raise ValueError("its columns do not fit together")
        rows, counts = [], []
        for c, (count, entries) in enumerate(meta["classes"]):
            data = _finite(array(f"class{c}_data", (entries,), dtype))
            indices = array(f"class{c}_indices", (entries,), "<i4")
            indptr = array(f"class{c}_indptr", (width + 1,), "<i8")
            rows.append(SparseRows(data, indices, indptr, int(count)).checked())
            counts.append(int(count))
        pairs = []
        for i, (above, below, m) in enumerate(meta["pairs"]):
            if not (0 <= above < len(rows) and 0 <= below < len(rows)):
                raise ValueError("its pairs do not fit together")
            upper = _finite(array(f"pair{i}_upper", (counts[above], m)))
            lower = _finite(array(f"pair{i}_lower", (counts[below], m)))
            mean = _finite(array(f"pair{i}_mean", (m,)))
            pairs.append(Combination(int(above), int(below), upper, lower, mean))
        factor, mean = _finite(array("factor", (width,))), _finite(array("mean", (width,)))
        return cls(columns, factor, mean, rows, pairs, d)

    @property
    def shape(self) -> tuple[int, int]:
        """Features and directions."""
        return self.n_features, sum(len(one.mean) for one in self.combinations)

    @property
    def dtype(self) -> DType:
        """Type of the rows."""
        return self.by_column[0].dtype

    def __repr__(self) -> str:
        d, n = self.shape
        return f"WideDirections({n} directions of {len(self.combinations)} pairs, {d} features)"

    def __getitem__(self, key: tuple[slice, Any]) -> WideDirections:
        """``directions[:, mask]``: some of the directions."""
        rows, mask = key
        if rows != slice(None):
            raise IndexError(f"rows: expected all, as in directions[:, mask], got {rows!r}")
        chosen = np.zeros(self.shape[1], dtype=bool)
        chosen[mask] = True
        parts, first = [], 0
        for one in self.combinations:
            own = chosen[first : first + len(one.mean)]
            first += len(own)
            if own.any():
                upper, lower = (np.ascontiguousarray(f[:, own]) for f in (one.upper, one.lower))
                parts.append(Combination(one.above, one.below, upper, lower, one.mean[own]))
        return replace(self, combinations=parts, _formed=None)

    def groups(self, dtype: DTypeLike, n_threads: int = 0) -> Iterator[tuple[int, Floats]]:
        """Directions of some pairs at a time: the first one's number, and (d', w) of them."""
        if self._formed is not None:
            yield 0, self._formed.astype(dtype, copy=False)
            return
        room = GROUP_BYTES / 8 / max(len(self.columns), 1)
        first = 0
        group: list[Combination] = []
        width = 0
        for one in self.combinations:
            if group and width + len(one.mean) > room:
                yield first, self._form(group, n_threads).astype(dtype, copy=False)
                first, group, width = first + width, [], 0
            group.append(one)
            width += len(one.mean)
        formed = self._form(group, n_threads)
        if first == 0 and formed.size * self.dtype.itemsize <= KEPT_BYTES:
            self._formed = formed.astype(self.dtype, copy=False)
        yield first, formed.astype(dtype, copy=False)

    def _form(self, group: list[Combination], n_threads: int) -> Array:
        widths = [len(one.mean) for one in group]
        out = np.zeros((len(self.columns), sum(widths)))
        at = 0
        for one, width in zip(group, widths, strict=True):
            for c, factors in ((one.above, one.upper), (one.below, one.lower)):
                self.by_column[c].times(factors, out, out_at=at, add=True, n_threads=n_threads)
            if one.mean.any():
                out[:, at : at + width] += self.mean[:, None] * one.mean
            at += width
        out *= self.factor[:, None]
        return out

    def project(
        self, X: Floats | csr_array, offset: Array | None = None, n_threads: int | None = None
    ) -> Floats:
        """Projections ``X @ self + offset``.

        Parameters
        ----------
        X : (n, d) array or CSR matrix
            Of float32 or float64.
        offset : (F,) array, optional
        n_threads : int, optional
            All that OpenMP gives by default.

        Returns
        -------
        (n, F) array
            Of X's type.
        """
        if X.shape[1] != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got {X.shape[1]}")
        rows = self._numbered(X)
        dtype = rows.dtype
        out = np.empty((X.shape[0], self.shape[1]), dtype=dtype)
        for first, directions in self.groups(dtype, n_threads or 0):
            block = np.ascontiguousarray(directions)
            rows.times(block, out, out_at=first, n_threads=n_threads or 0)
        if offset is not None:
            out += offset.astype(dtype)
        return out

    def _numbered(self, X: Any) -> SparseRows:
        """Rows in the columns that occur here."""
        X = sparse.csr_array(X)
        number = np.full(self.n_features, -1, dtype=np.int32)
        number[self.columns] = np.arange(len(self.columns), dtype=np.int32)
        indices = number[X.indices]
        known = indices >= 0
        counts = np.concatenate([[0], np.cumsum(known)])[X.indptr].astype(np.int64)
        data = X.data[known]
        if data.dtype not in (np.float32, np.float64):
            data = data.astype(np.float64)
        return SparseRows(data, indices[known], counts, len(self.columns))

    def tocsc(self) -> csc_matrix:
        """All directions as a sparse array (d, F); zero where no row of their classes is not."""
        parts = []
        for _, directions in self.groups(self.dtype):
            block = sparse.csr_array(directions)
            rows = self.columns[block.nonzero()[0]]
            parts.append(
                sparse.csc_array(
                    (block.data, (rows, block.indices)),
                    shape=(self.n_features, block.shape[1]),
                )
            )
        return sparse.hstack(parts, format="csc")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """As `toarray`, for NumPy; float64, as directions are elsewhere, unless asked otherwise."""
        return self.toarray().astype(np.float64 if dtype is None else dtype, copy=False)

    def toarray(self) -> Floats:
        """All directions as an array (d, F).

        Raises
        ------
        MemoryError
            If that is more than the machine has.
        """
        needed = self.shape[0] * self.shape[1] * self.dtype.itemsize
        if needed > physical_memory():
            raise MemoryError(f"directions: {self.shape} as an array take {needed:,} bytes")
        out = np.zeros(self.shape, dtype=self.dtype)
        for first, directions in self.groups(self.dtype):
            out[self.columns, first : first + directions.shape[1]] = directions
        return out


def _finite(array: NDArray[Any]) -> NDArray[Any]:
    if not np.isfinite(array).all():
        raise ValueError("its directions hold numbers that are not finite")
    return array


def _pack(value: WideDirections) -> dict[str, Any]:
    return {"meta": value.meta(), "arrays": dict(value.arrays())}


def _build(state: dict[str, Any]) -> WideDirections:
    return WideDirections.of_parts(state["meta"], held(state["arrays"]))


WIDE_DIRECTIONS = Stored("WideDirections", WideDirections, pack=_pack, build=_build)
