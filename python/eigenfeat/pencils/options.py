"""Options of the pencils of class pairs, from an estimator's parameters to the core."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from eigenfeat._base import threads
from eigenfeat._base.validation import check_flag, check_number, check_vector, check_whole, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

    from eigenfeat._base.types import Pairs, Seed
    from eigenfeat.pencils.contrasts import Contrasts

__all__ = [
    "DEFAULT_RIDGE",
    "SOLVERS",
    "PencilOptions",
    "check_solver",
    "check_threshold",
    "directions_per_pair",
]

DEFAULT_RIDGE = 0.2
SOLVERS = ("auto", "full", "subset", "tridiagonal", "krylov")

_MAX_DIRECTIONS, _MIN_DIRECTIONS = 10, 3  # per pair, with n_directions="auto"
_TOTAL_DIRECTIONS = 3000


@dataclass(frozen=True, eq=False)
class PencilOptions:
    """How the pencils of class pairs are chosen, formed and solved; see `pair_directions`.

    In the options of an estimator, `scale` is a word; in the options to solve pencils, it has the
    column scales.
    """

    pairs: Pairs | Contrasts = "all"
    ridge: float | str = 0.1
    n_directions: int | str = 10
    threshold: float | str | None = None
    denominator: str = "second_moment"
    constant: bool = False
    scale: str | ArrayLike | None = None
    solver: str = "auto"
    random_state: Seed = None
    n_threads: int | None = None

    @classmethod
    def of(cls, estimator: BaseEstimator, seed: int) -> PencilOptions:
        """The parameters of an estimator, with a seed drawn from its `random_state`."""
        names = set(cls.__dataclass_fields__) - {"random_state"}
        given = {name: getattr(estimator, name) for name in names}
        if given["ridge"] is None:
            given["ridge"] = DEFAULT_RIDGE
        return cls(random_state=seed, **given)

    @property
    def about_mean(self) -> bool:
        """Whether both matrices of a pencil are about the denominator's mean."""
        return self.denominator == "covariance"

    @property
    def bordered(self) -> bool:
        """Whether matrices have a row and a column of the constant."""
        return self.constant and not self.about_mean

    @property
    def noise_threshold(self) -> bool:
        """Whether the sampling noise of each pencil decides the threshold."""
        return self.threshold == "auto"

    def checked(self, n_features: int) -> PencilOptions:
        """Return checked options; ValueError for an invalid option. Pairs are not checked."""
        if not isinstance(self.denominator, str) or self.denominator not in (
            "second_moment",
            "covariance",
        ):
            raise ValueError(
                "denominator: expected 'second_moment' or 'covariance', "
                f"got {show(self.denominator)}"
            )
        check_solver(self.solver)
        directions_per_pair(self.n_directions, 1)
        threads.resolve(self.n_threads)
        scale = self.scale
        if scale is not None:
            scale = check_vector(scale, n_features, "scale", positive=True)
        return replace(
            self,
            constant=check_flag(self.constant, "constant"),
            scale=scale,
            ridge=_or_auto(self.ridge, "ridge", at_least=0.0),
            threshold=check_threshold(self.threshold, auto=True),
        )


def _or_auto(value: Any, name: str, **bounds: Any) -> float | str:
    if isinstance(value, str) and value == "auto":
        return value
    return check_number(value, name, **bounds)


def check_threshold(threshold: Any, *, auto: bool = False) -> Any:
    """The smallest eigenvalue as a number, minus infinity for None; "auto" only if allowed."""
    if threshold is None:
        return -math.inf
    check = _or_auto if auto else check_number
    return check(threshold, "threshold", infinite=True)


def check_solver(solver: Any) -> str:
    """The name of a solver; ValueError for any other value."""
    if not isinstance(solver, str) or solver not in SOLVERS:
        raise ValueError(f"solver: expected one of {', '.join(SOLVERS)}, got {show(solver)}")
    return solver


def directions_per_pair(n_directions: int | str, n_pairs: int, random_groups: bool = False) -> int:
    """Maximum number of directions of each of `n_pairs` pairs.

    "auto" is 1 for random groups of classes, and 10 for pairs of classes. Above 300 pairs it is
    3,000 divided by the number of pairs, at least 3, and above 3,000 pairs 1: the pairs of many
    classes have similar directions, and a classifier's time grows with the number of directions.
    """
    if not (isinstance(n_directions, str) and n_directions == "auto"):
        return check_whole(n_directions, "n_directions", at_least=1)
    if random_groups:
        return 1
    least = _MIN_DIRECTIONS if n_pairs <= _TOTAL_DIRECTIONS else 1
    return max(least, min(_TOTAL_DIRECTIONS // max(n_pairs, 1), _MAX_DIRECTIONS))
