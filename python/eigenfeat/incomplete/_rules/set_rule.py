"""The rule (5.2): one class dominates on a set of probability tau."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat.incomplete._rules.over_sets import levels_over_sets, over_set, shares_quadratics
from eigenfeat.incomplete._rules.rule import Case, Judgement, Rule

if TYPE_CHECKING:
    from eigenfeat.incomplete._completion.sets import ConfidenceSet

__all__ = ["SetRule"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]


class SetRule(Rule):
    """(5.2): one set of probability tau, on which one class dominates.

    Under a mixture the set is the union of one set for each part, of probabilities t_g; by the law
    of total probability that of the union is at least sum_g p(g|z) t_g. Sets for any distribution
    need no such thing.
    """

    _saved: ClassVar[dict[str, str]] = {
        "kind": "of ChebyshevSet MahalanobisSet QuadraticSet BoxSet"
    }

    def __init__(self, kind: ConfidenceSet) -> None:
        self.kind = kind

    def judge(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        return self._judged(case, tau, target, counted=True)

    def decides(self, case: Case, tau: _Array) -> Judgement:
        return self._judged(case, tau, None, counted=False)

    def _judged(self, case: Case, tau: _Array, target: int | None, counted: bool) -> Judgement:
        if self._in_parts(case):
            return self._judge_parts(case, tau, target)
        best, allowed = self._best(case, target)
        radius = case.radius(self.kind, tau)
        decided, checks, open_ = over_set(case, self.kind, radius, best, allowed, counted)
        return Judgement(best, decided, np.where(decided, tau, 0.0), checks, open_)

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        if not self._in_parts(case):
            best, allowed = self._best(case, target)
            return np.where(allowed, self._largest(case, best), 0.0), best
        votes = _PartVotes(case)
        total = self._of_parts(case, votes, np.arange(len(votes.best)))
        return np.where(votes.allowed(target), total, 0.0), votes.best

    def over(self, case: Case, grid: _Array) -> Iterator[tuple[NDArray[np.bool_], _Codes]]:
        if not self._in_parts(case) and shares_quadratics(case, self.kind):
            best, allowed = self._best(case, None)
            _, first, of_row = np.unique(case.known.pattern, return_index=True, return_inverse=True)
            one_each = case.some(np.repeat(first, len(grid)))
            radii = one_each.radius(self.kind, np.tile(grid, len(first))).reshape(-1, len(grid))
            ascending = radii[of_row.reshape(-1)]
            levels, _, _ = levels_over_sets(case, self.kind, ascending, best, allowed)
            for level in range(len(grid)):
                yield levels > level, best
            return
        # The largest tau takes more signs than these.
        for tau in grid:
            found = self.judge(case, np.full(len(case.known.pattern), tau), None)
            yield found.decided, found.guess

    def _in_parts(self, case: Case) -> bool:
        return case.known.weights.shape[1] > 1 and not self.kind.any_distribution

    def _best(self, case: Case, target: int | None) -> tuple[_Codes, NDArray[np.bool_]]:
        """Guesses, and which of them may be decided."""
        best = np.asarray(case.scores.argmax(axis=1))
        if target is None:
            return best, np.ones(len(best), dtype=bool)
        # The set holds the mean: no other class can dominate.
        return best, case.discriminants.labels[best] == target

    def _largest(self, case: Case, best: _Codes) -> _Array:
        degrees = case.degrees(self.kind)
        limit = case.radius(self.kind, np.full(len(best), 1 - 1e-15))
        if case.separable is not None and not self.kind.full_covariance:
            radius, _ = case.separable.radii(
                case.mean,
                np.sqrt(case.known.variance),
                limit,
                self.kind.shape,
                np.full(len(best), -1, dtype=np.int32),
                case.n_threads,
            )
        else:
            radius = self._bisected(case, limit, best)
        tau = case.reliability(self.kind, np.maximum(radius, 1e-150))
        tau = np.where(radius >= limit, 1.0, tau)
        return np.where((radius > 0) | (degrees == 0), tau, 0.0)

    def _judge_parts(self, case: Case, tau: _Array, target: int | None) -> Judgement:
        """Yes where all parts that count hold at one level, no where one fails that must hold.

        What is left open by these takes the largest probability of each part.
        """
        votes = _PartVotes(case)
        n, parts = votes.weights.shape
        possible = votes.allowed(target) & (votes.weights.sum(axis=1) >= tau)
        # Parts of next to no weight, together 1 per cent of what may fail, are not looked at.
        order = np.argsort(votes.weights, axis=1)
        small = np.cumsum(np.take_along_axis(votes.weights, order, axis=1), axis=1)
        dropped = np.zeros((n, parts), dtype=bool)
        np.put_along_axis(dropped, order, small <= 0.01 * (1 - tau)[:, None], axis=1)
        weights = np.where(dropped, 0.0, votes.weights)
        total = weights.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            common = tau / total
            least = (tau[:, None] - (votes.weights.sum(axis=1)[:, None] - weights)) / weights
        common = np.where(possible & (common < 1), common, 0.5)
        good = possible & (tau < total)
        bad = ~possible
        checks, open_ = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp)
        for g in range(parts):
            for level, yes in ((common, True), (least[:, g], False)):
                rows = np.flatnonzero((weights[:, g] > 0) & (level > 0) & (level < 1) & ~bad)
                rows = rows[good[rows]] if yes else rows[~good[rows]]
                if not len(rows):
                    continue
                part = case.part(g, rows)
                radius = part.radius(self.kind, _rounded(level[rows], up=yes))
                everyone = np.ones(len(rows), dtype=bool)
                best = votes.of_part[rows, g]
                holds, some, unsure = over_set(part, self.kind, radius, best, everyone)
                checks[rows] += some
                open_[rows] += unsure
                (good if yes else bad)[rows] = holds if yes else ~holds
        left = np.flatnonzero(~good & ~bad)
        good[left] = self._of_parts(case, votes, left) >= tau[left]
        return Judgement(votes.best, good, np.where(good, tau, 0.0), checks, open_)

    def _of_parts(self, case: Case, votes: _PartVotes, rows: _Codes) -> _Array:
        """sum_g p(g|z) t_g with the largest t_g at which the guess dominates."""
        total = np.zeros(len(rows))
        for g in range(votes.weights.shape[1]):
            some = np.flatnonzero(votes.weights[rows, g] > 0)
            if len(some):
                part = case.part(g, rows[some])
                found = self._largest(part, votes.of_part[rows[some], g])
                total[some] += votes.weights[rows[some], g] * found
        return np.minimum(total, 1.0)

    def _bisected(self, case: Case, limit: _Array, best: _Codes) -> _Array:
        """Largest radii at which the guess dominates, from below."""

        def holds(radius: _Array) -> NDArray[np.bool_]:
            everyone = np.ones(len(best), dtype=bool)
            return over_set(case, self.kind, radius, best, everyone, counted=False)[0]

        below, above = np.zeros_like(limit), limit.copy()
        trial = np.minimum(limit, 1.0)
        for step in range(80):
            good = holds(trial)
            below, above = np.where(good, trial, below), np.where(good, above, trial)
            if step < 20:  # in octaves until there is something on both sides
                outward = np.where(good, np.minimum(4 * trial, above), trial / 4)
                trial = np.where((below > 0) & (above < limit), 0.5 * (below + above), outward)
            else:
                trial = 0.5 * (below + above)
            if np.all((above - below <= 1e-6 * below) | (above < 1e-12)):
                break
        return np.where(holds(limit), limit, below)


def _rounded(level: _Array, up: bool) -> _Array:
    """Levels of which there are few different ones: steps of 5 per cent of what is missing to 1."""
    steps = np.log1p(-level) / np.log(1.05)
    return np.asarray(1 - 1.05 ** (np.floor(steps) if up else np.minimum(np.ceil(steps), -1)))


class _PartVotes:
    """What each part of a mixture would be decided as by its mean, and the class most of them are.

    Attributes
    ----------
    of_part : (n, parts) array
        Scores that are largest at the parts' means.
    best : (n,) array
        A score of the class with most weight.
    weights : (n, parts) array
        p(g|z) of the parts of that class, 0 of others.
    """

    def __init__(self, case: Case) -> None:
        known, labels = case.known, case.discriminants.labels
        self.labels = labels
        columns = [
            known.means[:, g] if case.by_scores else case.functions.scores(known.means[:, g])
            for g in range(known.weights.shape[1])
        ]
        self.of_part = np.stack([scores.argmax(axis=1) for scores in columns], axis=1)
        classes = labels[self.of_part]
        rows = np.arange(len(classes))
        votes = np.zeros((len(classes), int(labels.max()) + 1))
        for g in range(classes.shape[1]):
            votes[rows, classes[:, g]] += known.weights[:, g]
        same = classes == votes.argmax(axis=1)[:, None]
        self.best = self.of_part[rows, np.where(same, known.weights, -1.0).argmax(axis=1)]
        self.weights = np.where(same, known.weights, 0.0)

    def allowed(self, target: int | None) -> NDArray[np.bool_]:
        """Which rows may be decided as a target."""
        if target is None:
            return np.ones(len(self.best), dtype=bool)
        return np.asarray(self.labels[self.best] == target)
