"""The parameters that pencils are solved with, and what GEM keeps of their directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eigenfeat.expansion.layers import Directions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat.pencils.scale import ScaleReport


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters as they were when rows came in; see `GEM`."""

    ridge: float | str
    n_directions: int
    threshold: float | str | None
    pairs: Any
    denominator: str
    constant: bool
    scale: str
    solver: str
    seed: int
    n_threads: int | None

    @classmethod
    def of(cls, estimator: BaseEstimator, seed: int) -> Settings:
        """Of an estimator that has parameters of these names."""
        names = set(cls.__dataclass_fields__) - {"seed"}
        return cls(seed=seed, **{name: getattr(estimator, name) for name in names})


@dataclass(frozen=True, eq=False)
class Solution(Directions):
    """Directions, and the scale of the columns that they were solved for."""

    scale: ScaleReport
