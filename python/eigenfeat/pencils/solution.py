"""The parameters that pencils are solved with, and what GEM keeps of their directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from eigenfeat._base.validation import check_whole
from eigenfeat.expansion.layers import Directions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from eigenfeat._base.types import Pairs
    from eigenfeat.pencils.contrasts import Contrasts
    from eigenfeat.pencils.scale import ScaleReport

__all__ = ["DEFAULT_RIDGE", "Settings", "Solution", "directions_of_each"]

DEFAULT_RIDGE = 0.2
_MOST_DIRECTIONS, _LEAST_DIRECTIONS = 10, 3
_DIRECTIONS_OF_ALL = _MANY_PAIRS = 3000


def directions_of_each(n_directions: int | str, n_pairs: int, random_groups: bool = False) -> int:
    """Maximum number of directions of each of some pairs.

    "auto" is 1 for random groups of classes, and 10 for pairs of classes. Above 300 pairs it is
    3,000 divided by their number, at least 3, and above 3,000 pairs 1: the pairs of many classes
    say much the same, and a classifier's time grows with the number of all directions.
    """
    if isinstance(n_directions, str) and n_directions == "auto":
        if random_groups:
            return 1
        share = _DIRECTIONS_OF_ALL // max(n_pairs, 1)
        least = _LEAST_DIRECTIONS if n_pairs <= _MANY_PAIRS else 1
        return max(least, min(share, _MOST_DIRECTIONS))
    return check_whole(n_directions, "n_directions", at_least=1)


@dataclass(frozen=True)
class Settings:
    """The estimator's parameters as they were when rows came in; see `GEM`."""

    ridge: float | str
    n_directions: int | str
    threshold: float | str | None
    pairs: Pairs | Contrasts
    denominator: str
    constant: bool
    scale: str
    solver: str
    seed: int
    n_threads: int | None

    @classmethod
    def of(
        cls, estimator: BaseEstimator, seed: int, default_ridge: float | str = DEFAULT_RIDGE
    ) -> Settings:
        """Of an estimator that has parameters of these names; the ridge of None is the default."""
        names = set(cls.__dataclass_fields__) - {"seed"}
        given = {name: getattr(estimator, name) for name in names}
        if given["ridge"] is None:
            given["ridge"] = default_ridge
        return cls(seed=seed, **given)


@dataclass(frozen=True, eq=False)
class Solution(Directions):
    """Directions, and the scale of the columns that they were solved for."""

    _saved: ClassVar[dict[str, str]] = Directions._saved | {
        "directions": "numbers d F",
        "scale": "of ScaleReport",
    }

    scale: ScaleReport
