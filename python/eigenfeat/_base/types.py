"""Types of arguments and results, for type checkers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ClassWeight",
    "Codes",
    "CrossValidation",
    "DType",
    "Estimator",
    "Floats",
    "Labels",
    "Pairs",
    "RandomState",
    "Rows",
    "Seed",
    "Sparse",
    "Targets",
    "Weights",
]


class Sparse(Protocol):
    """A sparse matrix or array of SciPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """Convert to compressed sparse rows."""


if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import Literal

    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

    Rows: TypeAlias = ArrayLike | Sparse  # numbers; data frames are array-like
    Targets: TypeAlias = ArrayLike | None  # None with blocks, which contain targets
    Weights: TypeAlias = ArrayLike | None  # a number for each row; None: 1
    Labels: TypeAlias = NDArray[Any]  # of a type that can be sorted
    ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None  # factors by label
    Codes: TypeAlias = NDArray[np.integer[Any]]  # indices of labels in a sorted table
    # Number of folds, splitter, or (training, test) rows.
    CrossValidation: TypeAlias = (
        int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None
    )
    DType: TypeAlias = np.dtype[Any]
    Estimator: TypeAlias = BaseEstimator  # with scikit-learn's interface
    Floats: TypeAlias = NDArray[np.floating[Any]]  # float32 for float32 rows, else float64
    # A name, a name and a number, or (label, label) pairs.
    Pairs: TypeAlias = str | tuple[str, int] | Sequence[tuple[Hashable, Hashable]] | NDArray[Any]
    RandomState: TypeAlias = int | np.random.RandomState | None
    Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
else:  # an import of scikit-learn for these names would take a second
    Rows = Targets = Weights = Labels = Codes = DType = Estimator = Pairs = Floats = Any
    ClassWeight = CrossValidation = RandomState = Seed = Any
