"""The ideal rule (5.1) itself: the probability of a class, by sampling the complete rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtri
from scipy.stats import qmc

from eigenfeat.incomplete._rules import Case, Judgement, Rule, square_roots

__all__ = ["ClassCodes", "IdealRule"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassCodes:
    """Class indices of rows of features, by a classifier's `predict`."""

    classes: NDArray[Any]
    classifier: Any

    def __call__(self, inputs: _Array) -> NDArray[np.intp]:
        return np.searchsorted(self.classes, self.classifier.predict(inputs))


class IdealRule(Rule):
    """A lower confidence bound of P(g(X) = c | z), from scrambled Sobol points.

    The bound is Clopper and Pearson's for as many independent samples, at the level 1 - `risk`;
    Sobol points err less on the whole.

    Parameters
    ----------
    predict : callable
        From rows of features to class indices.
    n_samples : int
        A power of two, for each row.
    risk : float
    seed : int
        The same points serve every row.
    """

    def __init__(
        self, predict: Callable[[_Array], NDArray[Any]], n_samples: int, risk: float, seed: int
    ) -> None:
        self.predict = predict
        self.n_samples = n_samples
        self.risk = risk
        self.seed = seed

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        bound, guess = self.largest(case, target)
        none = np.zeros(len(guess), dtype=np.intp)
        return Judgement(guess, bound >= tau, bound, none, none)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, NDArray[np.intp]]:
        count = len(np.unique(case.discriminants.labels))
        normal, part = self._points(case.n_features)
        bounds = np.empty(len(case.known.pattern))
        guesses = np.empty(len(bounds), dtype=np.intp)
        assert case.known.covariances is not None
        roots = square_roots(case.known.covariances)
        for i, pattern in enumerate(case.known.pattern):
            ends = np.cumsum(case.known.weights[i])
            g = np.minimum(np.searchsorted(ends, part, side="right"), len(ends) - 1)
            rows = case.known.means[i, g]
            for one in np.unique(g):
                chosen = g == one
                rows[chosen] += np.einsum("ij,nj->ni", roots[pattern, one], normal[chosen])
            votes = np.bincount(self.predict(rows), minlength=count)
            best = int(votes.argmax()) if target is None else target
            # The index of a score of that class.
            guesses[i] = int(np.argmax(case.discriminants.labels == best))
            won = int(votes[best])
            bounds[i] = betaincinv(won, self.n_samples - won + 1, self.risk) if won else 0.0
        return bounds, guesses

    def _points(self, dimension: int) -> tuple[_Array, _Array]:
        sobol = qmc.Sobol(dimension + 1, scramble=True, seed=self.seed)
        points = sobol.random_base2(int(self.n_samples).bit_length() - 1)
        # Points on the boundary would lie infinitely far out.
        points = np.clip(points, 2.0**-40, 1 - 2.0**-40)
        return ndtri(points[:, :-1]), points[:, -1]
