"""From class moments to the directions that an estimator keeps, and the attributes of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import check_two_labels
from eigenfeat._base.types import Labels
from eigenfeat.pencils import scale as _scale
from eigenfeat.pencils.pencils import pair_conditions, pair_directions
from eigenfeat.pencils.solution import Settings, Solution

if TYPE_CHECKING:
    from collections.abc import Callable

    from eigenfeat.moments.class_moments import ClassMoments
    from eigenfeat.pencils.eigh import PencilResult
    from eigenfeat.pencils.pair_conditions import PairConditions
    from eigenfeat.pencils.scale import ScaleReport

__all__ = ["FittedDirections", "solve"]


def solve(
    moments: ClassMoments,
    settings: Settings,
    trial: ScaleReport | None,
    solve_with: Callable[..., PencilResult] | None = None,
) -> Solution:
    """Solve the pencils of the chosen pairs; Algorithm 1, lines 2-5.

    `solve_with` is that of `pair_directions`.

    Raises
    ------
    ValueError
        If fewer than two classes have weight, or the pairs leave one out.
    SingularDenominatorError
        If a denominator cannot be factorised.
    """
    check_two_labels(moments.active_classes)
    scale = _scale.settle(moments, settings.scale, trial)
    result = pair_directions(
        moments,
        pairs=settings.pairs,
        ridge=settings.ridge,
        n_directions=settings.n_directions,
        threshold=settings.threshold,
        denominator=settings.denominator,
        solver=settings.solver,
        n_threads=settings.n_threads,
        constant=settings.constant,
        scale=scale.column_scale if scale.choice == "columns" else None,
        random_state=settings.seed,
        solve_with=solve_with,
    )
    directions = np.ascontiguousarray(result.vectors, dtype=np.float64)
    offset = np.zeros(directions.shape[1]) if result.offset is None else result.offset
    return Solution(directions, offset, result.eigenvalues, result.pairs, result.ranks, scale)


def conditions(moments: ClassMoments, settings: Settings, scale: ScaleReport) -> PairConditions:
    """Crawford numbers of the pencils that `solve` solves."""
    return pair_conditions(
        moments,
        pairs=settings.pairs,
        ridge=settings.ridge,
        denominator=settings.denominator,
        constant=settings.constant,
        scale=scale.column_scale if scale.choice == "columns" else None,
        random_state=settings.seed,
    )


class FittedDirections:
    """The fitted attributes that are read from a solution, which is solved for when first asked."""

    moments_: ClassMoments
    _seed: int

    def _found(self) -> Solution:
        """Return the solution, or raise if there are no moments yet."""
        raise NotImplementedError

    @property
    def directions_(self) -> NDArray[np.float64]:
        """(d, F) directions, one per column."""
        return self._found().directions

    @property
    def offset_(self) -> NDArray[np.float64]:
        """(F,) offsets of the projections."""
        return self._found().offset

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """(F,) eigenvalues."""
        return self._found().eigenvalues

    @property
    def pairs_(self) -> Labels:
        """(F, 2) labels of the numerator and denominator classes, or names of contrasts."""
        return self._found().pairs

    @property
    def ranks_(self) -> NDArray[np.intp]:
        """(F,) ranks within the pairs."""
        return self._found().ranks

    @property
    def pair_conditions_(self) -> PairConditions:
        """Crawford numbers and sampling errors of the pencils; computed at each access."""
        result = self._found()
        if not hasattr(self, "moments_"):
            raise AttributeError("pair_conditions_ needs moments, which 'randomized' has none of")
        return conditions(self.moments_, Settings.of(self, self._seed), result.scale)

    @property
    def eigenvalue_bounds_(self) -> NDArray[np.float64]:
        """(F, 2) ends of the eigenvalues for infinitely many rows, if the estimate holds."""
        pairs = self.pairs_
        if len(pairs) and (pairs[:, 0] == pairs[:, 1]).all():
            raise AttributeError("eigenvalue_bounds_ needs pairs of two classes, got single ones")
        return self.pair_conditions_.bounds(pairs, self.eigenvalues_)

    @property
    def scale_report_(self) -> ScaleReport:
        """Report on the choice of `scale`."""
        return self._found().scale

    @property
    def scale_(self) -> str:
        """The choice made for `scale`, "none" or "columns"."""
        return self._found().scale.choice

    @property
    def column_scale_(self) -> NDArray[np.float64]:
        """(d,) divisors of the columns."""
        return self._found().scale.column_scale
