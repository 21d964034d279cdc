r"""The probability (5.1) of the final label for any classifier, by a sequential test.

Of each row completions are drawn, independent given what is known, and labelled by the
classifier's `predict`, whatever it is. 32 of them choose the class that is tested, and are not
counted. Of 32, 64, 128, ..., n others it is counted how many are of that class; after each stage
Clopper and Pearson's lower bound of its probability, at the level ``risk / stages``, is compared
with tau. By the union bound over the stages (Bonferroni) the probability that any of them exceeds
P(the complete row is of that class | what is known) is at most `risk`, whatever that probability
is: the rule may stop at the first that reaches tau. It also stops where none can any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat.incomplete._completion.draws import completions
from eigenfeat.incomplete._rules.calibration import lower_bounds
from eigenfeat.incomplete._rules.rule import Case, Judgement, first_scores
from eigenfeat.incomplete._rules.sample_sizes import SamplingRule

__all__ = ["SampledRule"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

PILOT = 32  # samples that choose the class
FIRST = 32  # samples of the first stage


class SampledRule(SamplingRule):
    """Time-uniform lower bounds of P(g(X) = c | z), from independent samples."""

    @staticmethod
    def reach(n_samples: int, risk: float) -> float:
        return float((risk / len(_stages(n_samples))) ** (1 / n_samples))

    def largest(self, case: Case, target: int | None) -> tuple[_Array, _Codes]:
        n = len(case.known.pattern)
        tested = self._tested(case, target)
        # No bound reaches 1, and all reach 0: all samples are drawn.
        return self._bounds(case, tested, np.zeros(n), np.ones(n)), first_scores(case, tested)

    def decides(self, case: Case, tau: _Array) -> Judgement:
        tested = self._tested(case, None)
        bound = self._bounds(case, tested, tau, tau)
        return Judgement.by_bound(first_scores(case, tested), bound, tau)

    def surely(self, case: Case, found: Judgement, items: _Codes) -> _Array:
        """The bound at which each row's test ended; no further samples are drawn."""
        return found.reliability[items]

    def over(self, case: Case, grid: _Array) -> Iterator[tuple[NDArray[np.bool_], _Codes]]:
        """All rows are decided at the first of the grid, as what the samples drawn so far say."""
        tested = self._tested(case, None)
        score = first_scores(case, tested)
        yield np.ones(len(tested), dtype=bool), score
        if len(grid) > 1:
            ends = (np.full(len(tested), tau) for tau in (grid[1], grid[-1]))
            bound = self._bounds(case, tested, *ends)
            for tau in grid[1:]:
                yield bound >= tau, score

    def _bounds(self, case: Case, tested: _Codes, least: _Array, enough: _Array) -> _Array:
        """(n,): the largest bound of the stages.

        A row's test ends once a bound is `enough`, or `least` is out of reach.
        """
        sizes = _stages(self.n_samples)
        tables = [lower_bounds(size, self.risk / len(sizes)) for size in sizes]
        votes, bound = np.zeros(len(tested), dtype=np.intp), np.zeros(len(tested))
        open_, done = np.arange(len(tested)), 0
        for size, table in zip(sizes, tables, strict=True):
            votes[open_] += self._agreeing(case, open_, tested, range(PILOT + done, PILOT + size))
            bound[open_] = np.maximum(bound[open_], table[votes[open_]])
            done = size
            open_ = open_[bound[open_] < enough[open_]]
            best = self._best_end(votes[open_], done, sizes, tables)
            open_ = open_[np.maximum(best, bound[open_]) >= least[open_]]
            if not len(open_):
                break
        return bound

    def _best_end(self, votes: _Codes, done: int, sizes: list[int], tables: list[_Array]) -> _Array:
        """The largest bound if all samples to come agree."""
        best = np.zeros(len(votes))
        for size, table in zip(sizes, tables, strict=True):
            if size > done:
                best = np.maximum(best, table[votes + size - done])
        return best

    def _tested(self, case: Case, target: int | None) -> _Codes:
        """(n,): the class that is tested of each row."""
        n = len(case.known.pattern)
        if target is not None:
            return np.full(n, target, dtype=np.intp)
        count = int(case.discriminants.labels.max()) + 1
        votes = np.zeros((n, count), dtype=np.intp)
        for rows, codes in self._labelled(case, np.arange(n), range(PILOT)):
            for row, found in zip(rows, codes, strict=True):
                votes[row] += np.bincount(found, minlength=count)
        return np.asarray(votes.argmax(axis=1))

    def _agreeing(self, case: Case, rows: _Codes, tested: _Codes, samples: range) -> _Codes:
        """(m,): how many of the samples are of the class that is tested."""
        votes = np.zeros(len(tested), dtype=np.intp)
        for some, codes in self._labelled(case, rows, samples):
            votes[some] += (codes == tested[some][:, None]).sum(axis=1)
        return votes[rows]

    def _labelled(
        self, case: Case, rows: _Codes, samples: range
    ) -> Iterator[tuple[_Codes, NDArray[Any]]]:
        """Rows, and classes (b, s) of their completions, labelled in one batch."""
        for some, drawn in completions(case.known, rows, self.seed, samples):
            flat = drawn.reshape(-1, drawn.shape[2])
            yield some, self.predict(flat).reshape(drawn.shape[:2])


def _stages(n_samples: int) -> list[int]:
    sizes = [min(FIRST, n_samples)]
    while sizes[-1] < n_samples:
        sizes.append(2 * sizes[-1])
    return sizes
