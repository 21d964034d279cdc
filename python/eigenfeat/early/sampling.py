r"""The probability (5.1) of the final label for any classifier, by a sequential test.

Of each row completions are drawn, independent given the known entries, and labelled by the
classifier's `predict`. 32 of them choose the class that is tested, and are not counted; fewer are
labelled where the others cannot change the choice. Of 32, 64, 128, ..., n others it is counted how
many are of that class; after each stage Clopper and Pearson's
lower bound of its probability, at the level ``risk / stages``, is compared with tau. By the union
bound over the stages (Bonferroni) the probability that any of them exceeds P(the complete row is of
that class | known entries) is at most `risk`, whatever that probability is: the rule may stop at
the first that reaches tau. It also stops where none can any more.

Where all n samples of a row are of one class, the bound of the last of k stages is
``(risk / k) ** (1 / n)``: no larger tau can be decided with n samples, however certain the class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.validation import show, warn_caller
from eigenfeat.early.completion import Conditional
from eigenfeat.early.discriminants import ClassCodes
from eigenfeat.early.rules import Rule, RuleInput, RuleOutput, lower_bounds
from eigenfeat.early.series import BLOCK_NUMBERS

__all__ = ["Sampled", "SampledRule", "largest_bound", "samples_of"]

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

MIN_SAMPLES = 1024  # number of samples with "auto", at least
MAX_SAMPLES = 2**20
RISK = 0.01  # probability, over the samples of one row, that any of its bounds is too large
PILOT = 32  # samples that choose the class
PILOT_STEPS = 17, 22, 27, PILOT  # stop early if the remaining ones cannot change the class
FIRST = 32  # samples of the first stage
STEP = 32  # samples that are multiplied at once, at least
CHUNK = 512  # samples that are drawn at once


@dataclass(frozen=True)
class Sampled:
    """The rule "sampled" of `ReliableClassifier` with a number of samples.

    Parameters
    ----------
    n_samples : int or "auto", default="auto"
        Power of two, at most 2^20: the largest number of samples for each sample. It limits the tau
        that can be decided: with all n samples of one class the bound is (0.01 / k)^(1/n) in the
        k-th and last stage. "auto": 1,024, or as many as reach half-way from `reliability` to 1
        (0.99: 2,048; 0.999: 16,384). With a number that cannot reach `reliability`, `fit` warns.

    Raises
    ------
    ValueError
        If the number is not such a power of two.
    """

    n_samples: int | str = "auto"

    def __post_init__(self) -> None:
        n = self.n_samples
        whole = isinstance(n, Integral) and not isinstance(n, bool) and 2 <= n <= MAX_SAMPLES
        if n != "auto" and not (whole and int(n) & (int(n) - 1) == 0):
            raise ValueError(
                f"n_samples: expected a power of two in 2..{MAX_SAMPLES} or 'auto', got {show(n)}"
            )


class SampledRule(Rule):
    """Time-uniform lower bounds of P(g(X) = c | z), from independent samples.

    The right choice for classifiers without discriminants, and for local ones: the only rule about
    the label that the classifier gives to the complete sample. The random numbers of `seed` serve
    every row.
    """

    def __init__(self, predict: ClassCodes, n_samples: int, seed: int) -> None:
        self.predict = predict
        self.n_samples = n_samples
        self.seed = seed

    @property
    def cost(self) -> int:  # type: ignore[override]
        """As of `Rule`."""
        return self.n_samples

    def largest_tau(self, rule_input: RuleInput) -> tuple[_Array, _Codes]:
        """As `Rule.largest_tau`."""
        n = len(rule_input.conditional.pattern)
        best = self.best_classes(rule_input)
        # All samples are drawn, because no bound reaches 1.
        return self._bounds(rule_input, best, np.zeros(n), np.ones(n)), best

    def decide(self, rule_input: RuleInput, tau: _Array, whole: bool = False) -> RuleOutput:
        """As `Rule.decide`."""
        if whole:
            return super().decide(rule_input, tau)
        best = self.best_classes(rule_input)
        bound = self._bounds(rule_input, best, tau, tau)
        return RuleOutput(best, bound >= tau, bound)

    def evaluate_grid(
        self, rule_input: RuleInput, grid: _Array, best: _Codes
    ) -> Iterator[NDArray[np.bool_]]:
        """As `Rule.evaluate_grid`; at the first tau, which is next to 0, all rows are decided."""
        yield np.ones(len(best), dtype=bool)
        if len(grid) > 1:
            ends = (np.full(len(best), tau) for tau in (grid[1], grid[-1]))
            bound = self._bounds(rule_input, best, *ends)
            for tau in grid[1:]:
                yield bound >= tau

    def _bounds(
        self, rule_input: RuleInput, tested: _Codes, least: _Array, enough: _Array
    ) -> _Array:
        """(n,): largest bound over the stages.

        A row's test ends once a bound is `enough`, or `least` is out of reach.
        """
        sizes = _stages(self.n_samples)
        tables = [lower_bounds(size, RISK / len(sizes)) for size in sizes]
        votes, bound = np.zeros(len(tested), dtype=np.intp), np.zeros(len(tested))
        running, done = np.arange(len(tested)), 0
        for size, table in zip(sizes, tables, strict=True):
            samples = range(PILOT + done, PILOT + size)
            votes[running] += self._agreeing(rule_input, running, tested, samples)
            bound[running] = np.maximum(bound[running], table[votes[running]])
            done = size
            running = running[bound[running] < enough[running]]
            best = self._best_end(votes[running], done, sizes, tables)
            running = running[np.maximum(best, bound[running]) >= least[running]]
            if not len(running):
                break
        return bound

    def _best_end(self, votes: _Codes, done: int, sizes: list[int], tables: list[_Array]) -> _Array:
        """The largest bound if all samples to come agree."""
        best = np.zeros(len(votes))
        for size, table in zip(sizes, tables, strict=True):
            if size > done:
                best = np.maximum(best, table[votes + size - done])
        return best

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """As `Rule.best_classes`: the class of most of the first completions."""
        n = len(rule_input.conditional.pattern)
        votes = np.zeros((n, rule_input.discriminants.count), dtype=np.intp)
        running, done = np.arange(n), 0
        for size in PILOT_STEPS:
            for rows, codes in self._labelled(rule_input, running, range(done, size)):
                np.add.at(votes, (rows[:, None], codes), 1)
            done = size
            lead = np.sort(votes[running], axis=1)
            running = running[lead[:, -1] - lead[:, -2] <= PILOT - done]
            if not len(running):
                break
        return np.asarray(votes.argmax(axis=1))

    def _agreeing(
        self, rule_input: RuleInput, rows: _Codes, tested: _Codes, samples: range
    ) -> _Codes:
        """(m,): number of samples in the tested class."""
        votes = np.zeros(len(tested), dtype=np.intp)
        for some, codes in self._labelled(rule_input, rows, samples):
            votes[some] += (codes == tested[some][:, None]).sum(axis=1)
        return votes[rows]

    def _labelled(
        self, rule_input: RuleInput, rows: _Codes, samples: range
    ) -> Iterator[tuple[_Codes, NDArray[Any]]]:
        """Yield rows and the classes (b, s) of their completions, in large batches."""
        batch: list[tuple[_Codes, _Array]] = []
        size = 0
        for some, drawn in _completions(rule_input.conditional, rows, self.seed, samples):
            if batch and size + drawn.size > BLOCK_NUMBERS:
                yield from self._predicted(batch)
                batch, size = [], 0
            batch.append((some, drawn))
            size += drawn.size
        if batch:
            yield from self._predicted(batch)

    def _predicted(
        self, batch: list[tuple[_Codes, _Array]]
    ) -> Iterator[tuple[_Codes, NDArray[Any]]]:
        """Predict drawn completions by one call of the classifier."""
        flat = [drawn.reshape(-1, drawn.shape[2]) for _, drawn in batch]
        codes = self.predict(flat[0] if len(flat) == 1 else np.concatenate(flat))
        ends = np.cumsum([len(part) for part in flat])[:-1]
        for (some, drawn), part in zip(batch, np.split(codes, ends), strict=True):
            yield some, part.reshape(drawn.shape[:2])


def _stages(n_samples: int) -> list[int]:
    sizes = [min(FIRST, n_samples)]
    while sizes[-1] < n_samples:
        sizes.append(2 * sizes[-1])
    return sizes


def largest_bound(n_samples: int) -> float:
    """Bound if all samples are in the class."""
    return float((RISK / len(_stages(n_samples))) ** (1 / n_samples))


def samples_of(sampled: Sampled, tau: float) -> int:
    """Return the number of samples for tau; warn if the given number cannot reach it.

    "auto" takes as many as can show a reliability half-way between tau and 1, so that rows are
    decided of which some samples are of other classes.
    """
    n = MIN_SAMPLES if sampled.n_samples == "auto" else int(sampled.n_samples)
    if sampled.n_samples == "auto":
        while n < MAX_SAMPLES and largest_bound(n) < (1 + tau) / 2:
            n *= 2
    if largest_bound(n) < tau:
        enough = n
        while enough < MAX_SAMPLES and largest_bound(enough) < tau:
            enough *= 2
        hint = f"at least {enough}" if largest_bound(enough) >= tau else "a smaller reliability"
        warn_caller(
            f"n_samples: expected {hint} for a reliability of {tau:g}, got {n}, which can decide "
            f"up to {largest_bound(n):.6f}; at {tau:g} rows are decided when they are complete",
            UserWarning,
        )
    return n


# ---- completions ---------------------------------------------------------------------------------


def _completions(
    conditional: Conditional, rows: _Codes, seed: int, samples: range
) -> Iterator[tuple[_Codes, _Array]]:
    """Numbers of rows (b,) and some of their completions (b, s, ell), in blocks of bounded memory.

    Given the first t entries of a row, in some order, the row is ``mean + gains[t:].T @ e[t:]``
    with independent normal ``e`` (see `PrefixGaussian`). One Cholesky factor serves all prefixes,
    and the innovation of an entry that is still missing is the same number at all times. Samples
    are counted from 0; those of a number are always the same.
    """
    assert conditional.gaussians is not None
    ell = conditional.means.shape[2]
    # Rows of a pattern share their noise.
    rows = rows[np.argsort(conditional.pattern[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(conditional.pattern[rows])) + 1
    for group in np.split(rows, ends) if len(rows) else []:
        models, t = conditional.gaussians[int(conditional.pattern[group[0]])]
        for begin, end in _chunks(samples):
            # Multiply whole steps, so that roundings do not depend on the number of samples.
            low, high = begin // STEP * STEP, -(-end // STEP) * STEP
            chunk = begin // CHUNK
            normal, share = _chunk(seed, len(models[0].mean), chunk)
            normal = normal[low - chunk * CHUNK : high - chunk * CHUNK]
            share = share[begin - chunk * CHUNK : end - chunk * CHUNK]
            noise = [(normal[:, t:] @ model.gains[t:])[begin - low : end - low] for model in models]
            width = max(1, BLOCK_NUMBERS // (len(share) * ell))
            for first in range(0, len(group), width):
                some = group[first : first + width]
                yield some, _drawn(conditional, some, noise, share)


def _drawn(conditional: Conditional, rows: _Codes, noise: list[_Array], share: _Array) -> _Array:
    if len(noise) == 1:
        return np.asarray(conditional.means[rows, 0][:, None] + noise[0])
    ends = np.cumsum(conditional.weights[rows], axis=1)
    parts = (share[None] * ends[:, -1:])[:, :, None] >= ends[:, None, :-1]
    part = parts.sum(axis=2)  # (b, s)
    drawn = conditional.means[rows[:, None], part]
    for g, of_part in enumerate(noise):
        row, sample = np.nonzero(part == g)
        drawn[row, sample] += of_part[sample]
    return np.asarray(drawn)


def _chunks(samples: range) -> Iterator[tuple[int, int]]:
    begin = samples.start
    while begin < samples.stop:
        end = min(samples.stop, (begin // CHUNK + 1) * CHUNK)
        yield begin, end
        begin = end


@lru_cache(maxsize=8)
def _chunk(seed: int, d: int, chunk: int) -> tuple[_Array, _Array]:
    """Normal numbers (CHUNK, d), and numbers in (0, 1) that choose parts of mixtures."""
    random = np.random.default_rng([seed, d, chunk])
    return random.standard_normal((CHUNK, d)), random.random(CHUNK)
