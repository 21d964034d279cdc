"""What arguments and results are, for type checkers: one name for each."""

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
    """A sparse matrix or array of SciPy's."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """The same in compressed rows."""


if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence
    from typing import Literal

    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

    Rows: TypeAlias = ArrayLike | Sparse  # of numbers; a data frame is array-like
    Targets: TypeAlias = ArrayLike | None  # None where rows are blocks, which bring their own
    Weights: TypeAlias = ArrayLike | None  # a number for each row; None is 1 for each
    Labels: TypeAlias = NDArray[Any]  # of any one type that can be sorted
    ClassWeight: TypeAlias = dict[Any, float] | Literal["balanced"] | None  # factors by label
    Codes: TypeAlias = NDArray[np.integer[Any]]  # positions of labels in a sorted table of them
    CrossValidation: TypeAlias = (
        int | BaseCrossValidator | Iterable[tuple[ArrayLike, ArrayLike]] | None
    )  # folds, a splitter, or (training, test) rows each
    DType: TypeAlias = np.dtype[Any]
    Estimator: TypeAlias = BaseEstimator  # of scikit-learn's kind, anyone's
    Floats: TypeAlias = NDArray[np.floating[Any]]  # float32 or float64, as the rows that came
    Pairs: TypeAlias = (
        str | tuple[str, int] | Sequence[tuple[Hashable, Hashable]] | NDArray[Any]
    )  # by name, with a number, or (label, label) each
    RandomState: TypeAlias = int | np.random.RandomState | None
    Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None
else:  # np.floating takes no argument in old versions, and nobody asks
    Rows = Targets = Weights = Labels = Codes = DType = Estimator = Pairs = Floats = Any
    ClassWeight = CrossValidation = RandomState = Seed = Any
