"""Checked rows with labels, in memory or in blocks, which all fits use."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Codes, DType, Labels

if TYPE_CHECKING:
    from eigenfeat.expansion.features import Layer
    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.rows.blocks import Block
    from eigenfeat.rows.completion import GaussianRows
    from eigenfeat.rows.reading import RowTransform

__all__ = ["LabelledRows"]

_Result = TypeVar("_Result")


class LabelledRows(ABC):
    """Rows with labels and positive weights, numbered from 0, and how they are read.

    Attributes
    ----------
    in_memory : bool
        Whether a pass costs no reading, and what was made of the rows is kept between passes.
    reading : RowTransform
        How they are read.
    """

    in_memory: ClassVar[bool]
    reading: RowTransform

    @property
    @abstractmethod
    def classes(self) -> Labels:
        """Labels (k,), sorted."""

    @property
    @abstractmethod
    def codes(self) -> Codes:
        """Indices (n,) of the labels."""

    @property
    @abstractmethod
    def completion(self) -> GaussianRows | None:
        """What the entries that were missing are completed by; None where none was."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of the rows before they are projected."""

    @property
    @abstractmethod
    def n_threads(self) -> int | None:
        """Threads of a pass."""

    @property
    @abstractmethod
    def dtype(self) -> DType:
        """Type of the features."""

    @property
    @abstractmethod
    def dense(self) -> bool:
        """Whether the features are arrays: not sparse, and not projected."""

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether the features are sparse matrices, not projected."""

    def in_float32(self) -> LabelledRows:
        """The same rows of an array in memory, rounded."""
        raise NotImplementedError("rows that are not in memory")

    @abstractmethod
    def read_as(self, reading: RowTransform) -> LabelledRows:
        """The same rows, read in another way."""

    @abstractmethod
    def narrowed(
        self, layer: Layer, mask: npt.NDArray[np.bool_], include_input: bool
    ) -> LabelledRows:
        """Projected rows with some of the last layer's directions, which make `layer`."""

    @abstractmethod
    def subset(self, rows: Codes) -> LabelledRows:
        """Some of the rows, by their numbers."""

    @abstractmethod
    def take(self, rows: Codes) -> Block:
        """The rows with these numbers, in this order, checked; labels as indices."""

    @abstractmethod
    def together(self) -> Block:
        """All feature rows as one block."""

    @abstractmethod
    def reduce(
        self,
        function: Callable[..., _Result],
        merge: Callable[[_Result, _Result], _Result],
        *arguments: object,
    ) -> _Result:
        """Merge ``function(piece, *arguments)`` over pieces of feature rows."""

    @abstractmethod
    def moments(self) -> ClassMoments:
        """Moments of the classes, of the rows as they are read; nobody else has them."""
