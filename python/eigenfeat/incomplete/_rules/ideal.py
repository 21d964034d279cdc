"""The ideal rule (5.1) itself: the probability of a class, by sampling the complete rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import qmc

from eigenfeat._base.saved import Saved
from eigenfeat._base.validation import show
from eigenfeat.incomplete._rules.calibration import lower_bounds
from eigenfeat.incomplete._rules.rule import Case, Judgement, first_scores, square_roots
from eigenfeat.incomplete._rules.sample_sizes import SamplingRule
from eigenfeat.incomplete._series.row_blocks import BLOCK_NUMBERS

__all__ = ["ClassCodes", "IdealRule"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassCodes(Saved):
    """Class indices of rows of features, by a classifier's `predict`."""

    _saved: ClassVar[dict[str, str]] = {"classes": "labels k", "classifier": "estimator"}

    classes: NDArray[Any]
    classifier: Any

    def __call__(self, inputs: _Array) -> NDArray[np.intp]:
        labels = np.asarray(self.classifier.predict(inputs))
        if labels.shape != (len(inputs),):
            raise ValueError(
                f"classifier: expected predict to return {len(inputs)} labels, got shape "
                f"{labels.shape}"
            )
        codes = np.minimum(np.searchsorted(self.classes, labels), len(self.classes) - 1)
        strange = self.classes[codes] != labels
        if np.any(strange):
            known, found = show(self.classes.tolist()), show(labels[np.argmax(strange)])
            raise ValueError(f"classifier: expected predict to return some of {known}, got {found}")
        return codes


class IdealRule(SamplingRule):
    """A lower confidence bound of P(g(X) = c | z), from scrambled Sobol points.

    The bound is Clopper and Pearson's for as many independent samples, at the level 1 - `risk`;
    Sobol points err less on the whole.
    """

    @staticmethod
    def reach(n_samples: int, risk: float) -> float:
        return float(risk ** (1 / n_samples))

    def largest(self, case: Case, target: int | None) -> tuple[_Array, NDArray[np.intp]]:
        rows = np.arange(len(case.known.pattern))
        votes = self._votes(case, rows, slice(0, self.n_samples))
        best = votes.argmax(axis=1) if target is None else np.full(len(rows), target)
        return self._bounds[votes[rows, best]], first_scores(case, best)

    def decides(self, case: Case, tau: _Array) -> Judgement:
        """In stages of 32, 64, 128, ... samples, the same for all rows.

        Rows are left as soon as so many samples disagree that the rest cannot make up for it: the
        decision is that of all samples, however few were drawn (a curtailed test).
        """
        bound, score = self._curtailed_bounds(case, tau)
        return Judgement.by_bound(score, bound, tau)

    def over(
        self, case: Case, grid: _Array
    ) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.intp]]]:
        """All rows are decided at the first of the grid, as what the samples drawn so far say."""
        n = len(case.known.pattern)
        bound, score = self._curtailed_bounds(case, np.full(n, grid[min(1, len(grid) - 1)]))
        yield np.ones(n, dtype=bool), score
        for tau in grid[1:]:
            yield bound >= tau, score

    def _curtailed_bounds(self, case: Case, tau: _Array) -> tuple[_Array, NDArray[np.intp]]:
        """Bounds, 0 of rows that cannot reach tau, and guesses."""
        votes, open_ = self._curtailed(case, tau)
        best = votes.argmax(axis=1)
        bound = np.zeros(len(best))
        bound[open_] = self._bounds[votes[open_, best[open_]]]
        return bound, first_scores(case, best)

    def _curtailed(self, case: Case, tau: _Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Votes, and the rows of which all samples were drawn."""
        n = len(case.known.pattern)
        needed = np.searchsorted(self._bounds, tau)  # more than n_samples where out of reach
        votes = np.zeros((n, self._count(case)), dtype=np.intp)
        votes += self._votes(case, np.arange(n), slice(0, min(32, self.n_samples)))
        open_ = np.flatnonzero(needed <= self.n_samples)
        done = min(32, self.n_samples)
        reachable = votes[open_].max(axis=1) + self.n_samples - done >= needed[open_]
        open_ = open_[reachable]
        while done < self.n_samples and len(open_):
            upto = min(2 * done, self.n_samples)
            votes[open_] += self._votes(case, open_, slice(done, upto))
            done = upto
            reachable = votes[open_].max(axis=1) + self.n_samples - done >= needed[open_]
            open_ = open_[reachable]
        return votes, open_

    @property
    def _bounds(self) -> _Array:
        """(n_samples + 1,): the bound for each number of votes."""
        return lower_bounds(self.n_samples, self.risk)

    def _count(self, case: Case) -> int:
        return int(case.discriminants.labels.max()) + 1

    def _votes(self, case: Case, rows: NDArray[np.intp], samples: slice) -> NDArray[np.intp]:
        """(m, classes): how often some of the rows fall to each class, of some of the samples."""
        known = case.known
        assert known.covariances is not None
        normal, share = _points(case.n_features, self.n_samples, self.seed)
        normal, share = normal[samples], share[samples]
        votes = np.zeros((len(rows), self._count(case)), dtype=np.intp)
        single = known.weights.shape[1] == 1
        noise: dict[tuple[int, int], _Array] = {}
        width = max(1, BLOCK_NUMBERS // (len(share) * case.n_features))
        for begin in range(0, len(rows), width):
            part = rows[begin : begin + width]
            drawn = np.empty((len(part), len(share), case.n_features))
            for k, i in enumerate(part):
                pattern = int(known.pattern[i])
                if single:
                    which = np.zeros(len(share), dtype=np.intp)
                else:
                    ends = np.cumsum(known.weights[i])
                    which = np.minimum(np.searchsorted(ends, share, side="right"), len(ends) - 1)
                for g in np.unique(which):
                    if (pattern, g) not in noise:
                        root = square_roots(known.covariances[pattern, g])
                        noise[pattern, g] = np.einsum("nj,ij->ni", normal, root, optimize=True)
                    some = which == g
                    drawn[k, some] = known.means[i, g] + noise[pattern, g][some]
            codes = self.predict(drawn.reshape(-1, case.n_features)).reshape(len(part), -1)
            for k, row in enumerate(codes):
                votes[begin + k] = np.bincount(row, minlength=votes.shape[1])
        return votes


@lru_cache(maxsize=4)
def _points(dimension: int, n: int, seed: int) -> tuple[_Array, _Array]:
    """Normal points (n, dimension) and numbers in (0, 1) that choose parts of mixtures."""
    sobol = qmc.Sobol(dimension + 1, scramble=True, seed=seed)
    points = sobol.random_base2(int(n).bit_length() - 1)
    # Points on the boundary would lie infinitely far out.
    points = np.clip(points, 2.0**-40, 1 - 2.0**-40)
    return ndtri(points[:, :-1]), points[:, -1]
