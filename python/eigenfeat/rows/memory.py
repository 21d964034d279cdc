"""Labelled rows in memory: one block, kept together with what passes make of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.labels import LabelTable
from eigenfeat._base.types import Codes, DType, Floats, Labels
from eigenfeat.expansion.features import CoreRows, ExpandedRows
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.rows import reductions
from eigenfeat.rows.blocks import Block
from eigenfeat.rows.completion import GaussianRows, completed
from eigenfeat.rows.labelled import LabelledRows
from eigenfeat.rows.reading import Reading

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import csr_array

    from eigenfeat.expansion.layers import Layer

__all__ = ["MemoryRows"]

_Result = TypeVar("_Result")


class KeptBlock(Block):
    """A block that later passes read again: what the core reads is made once."""

    def core(self, constant: bool) -> CoreRows:
        """See `Block.core`."""
        held: dict[bool, CoreRows] = self.__dict__.setdefault("_cores", {})
        if constant not in held:
            held[constant] = super().core(constant)
        return held[constant]

    def scores(self, W: npt.NDArray[np.float64], constant: bool, n_threads: int | None) -> Floats:
        """See `Block.scores`; those of the same weights are computed once."""
        held = self.__dict__.get("_scores")
        if held is None or held[0] is not W:
            held = W, super().scores(W, constant, n_threads)
            self.__dict__["_scores"] = held
        return held[1]


@dataclass(frozen=True, eq=False)
class MemoryRows(LabelledRows):
    """Checked rows in memory.

    Attributes
    ----------
    block : Block
        Features; labels as int32 indices.
    labels : (k,) array
        Sorted.
    reading : Reading
        Of what is not in `block` yet: layers that hide, by whose features every pass goes.
    gaussian : GaussianRows or None
        What the entries that were missing have been completed by.
    """

    block: Block
    labels: Labels
    reading: Reading
    gaussian: GaussianRows | None = None

    in_memory: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        X: Floats | csr_array | ExpandedRows,
        y: ArrayLike,
        weight: npt.NDArray[np.float64] | None,
        n_threads: int | None,
        missing: npt.NDArray[np.bool_] | None = None,
        completion: GaussianRows | None = None,
    ) -> MemoryRows:
        """Rows, labels and weights that are checked, the weights positive or None.

        Rows are complete; `missing` (n, d) tells which entries `completion` has filled in.
        """
        labels, codes = np.unique(y, return_inverse=True)
        block = KeptBlock(X, codes.astype(np.int32), weight, missing=missing)
        return cls(block, labels, Reading(n_threads=n_threads), completion)

    @classmethod
    def completed(
        cls,
        X: Floats | csr_array,
        y: Labels,
        weight: npt.NDArray[np.float64] | None,
        n_threads: int | None,
    ) -> MemoryRows:
        """The same of rows that may have missing entries; see `completion.completed`."""
        rows, missing, gaussian = completed(X, y, weight, n_threads)
        return cls.of(rows, y, weight, n_threads, missing, gaussian)

    @classmethod
    def of_features(cls, rows: MemoryRows, X: Floats | csr_array | ExpandedRows) -> MemoryRows:
        """Labels and weights of some rows, with other features, which are complete."""
        block = KeptBlock(X, rows.block.y, rows.block.weight)
        return cls(block, rows.labels, Reading(n_threads=rows.n_threads))

    def relabelled(self, y: Labels) -> MemoryRows:
        """The same rows with other labels, which are checked here."""
        LabelTable().encode(y, self.n_rows)
        block = self.block
        return MemoryRows.of(
            block.X, y, block.weight, self.n_threads, block.missing, self.completion
        )

    @property
    def classes(self) -> Labels:
        """Labels (k,), sorted."""
        return self.labels

    @property
    def codes(self) -> npt.NDArray[np.int32]:
        """Indices (n,) of the labels."""
        return np.asarray(self.block.y)

    @property
    def completion(self) -> GaussianRows | None:
        """What the entries that were missing have been completed by."""
        return self.gaussian

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.block)

    @property
    def n_features(self) -> int:
        """Columns of the rows."""
        return int(self.block.X.shape[1])

    @property
    def n_threads(self) -> int | None:
        """Threads of a pass."""
        return self.reading.n_threads

    @property
    def dtype(self) -> DType:
        """Type of the features."""
        return np.dtype(self.block.X.dtype)

    @property
    def dense(self) -> bool:
        """Whether the features are an array."""
        return isinstance(self.block.X, np.ndarray)

    @property
    def sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return not isinstance(self.block.X, np.ndarray | ExpandedRows)

    def in_float32(self) -> MemoryRows:
        """The same rows of an array, rounded."""
        block = self.block
        return replace(self, block=KeptBlock(block.X.astype(np.float32), block.y, block.weight))

    def read_as(self, reading: Reading) -> MemoryRows:
        """The same rows, read in another way: at once, but for layers that hide."""
        if reading.hidden:
            return replace(self, reading=reading)
        return self._holding(reading.whole(self.block.X))

    def _holding(self, X: Floats | csr_array | ExpandedRows) -> MemoryRows:
        return replace(self, block=KeptBlock(X, self.block.y, self.block.weight))

    def narrowed(
        self, layer: Layer, mask: npt.NDArray[np.bool_], include_input: bool
    ) -> MemoryRows:
        """See `LabelledRows`: of the projections that are kept."""
        rows = self.block.X
        projections = rows.projections if mask.all() else rows.projections[:, mask]
        return self._holding(layer.features(projections, rows.X if include_input else None))

    def subset(self, rows: Codes) -> MemoryRows:
        """Some of the rows, by their numbers."""
        part = self.block.take(rows)
        kept = KeptBlock(part.X, part.y, part.weight, missing=part.missing)
        return replace(self, block=kept)

    def take(self, rows: Codes) -> Block:
        """The rows with these numbers, in this order; labels as indices."""
        return self.block.take(rows)

    def together(self) -> Block:
        """All rows."""
        return self.block

    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Call the function on all rows."""
        return function(self.block, *arguments)

    def moments(self) -> ClassMoments:
        """See `LabelledRows`: piece after piece, which gives the bits of all rows at once."""
        if not self.reading.hidden:
            how = self.labels, self.n_threads, self.completion
            return reductions.labelled_moments(self.block, *how)
        found = ClassMoments()
        for piece in self.reading.features(self.block):
            labels = self.labels[piece.y]
            found.update(piece.X, labels, piece.weight, n_threads=self.n_threads)
        return found
