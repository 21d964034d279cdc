r"""The probability of the final label (Parrish 2012, 5.1) for any classifier, by a sequential test.

Completions of each sample are drawn, independently given the known entries, and labelled by the
classifier's `predict`. Up to 32 completions choose the class to test, and are not counted. The test
counts how many of 32, 64, 128, ..., n further completions have this class. After each of k stages,
Clopper and Pearson's lower bound on the probability, at level ``risk / k``, is compared with tau.
By the union bound over the stages (Bonferroni), the probability that any bound exceeds
P(the complete sample has this class | known entries) is at most `risk`. The rule may therefore stop
at the first bound that reaches tau. It also stops if no later bound can reach tau.

If all n completions have one class, the bound of the last stage is ``(risk / k) ** (1 / n)``, the
largest tau that can be decided with n completions.
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
from eigenfeat.early.rules import ClassCodes, Rule, RuleInput, lower_bounds
from eigenfeat.early.series import BLOCK_NUMBERS

_Array = NDArray[np.float64]
_Codes = NDArray[np.intp]

MIN_SAMPLES = 1024  # smallest number of completions with "auto"
MAX_SAMPLES = 2**20  # largest number of completions
RISK = 0.01  # probability that a bound of a sample is too large
PILOT_SAMPLES = 32  # completions that choose the class
FIRST_SAMPLES = 32  # completions of the first stage
CHUNK_SAMPLES = 512  # completions that are drawn together


@dataclass(frozen=True)
class Sampled:
    """The rule "sampled" of `ReliableClassifier` with a number of samples.

    Parameters
    ----------
    n_samples : int or "auto", default="auto"
        Power of two, at most 2^20: the largest number of completions of a sample. It limits the tau
        that can be decided: with n completions of one class the bound is (0.01 / k)^(1/n) after the
        k-th and last stage. "auto": 1,024, or the number whose bound is half-way from `reliability`
        to 1 (0.99: 2,048; 0.999: 16,384). `fit` warns if the bound is below `reliability`.
    """

    n_samples: int | str = "auto"

    def __post_init__(self) -> None:
        n = self.n_samples
        valid = isinstance(n, Integral) and not isinstance(n, bool) and 2 <= n <= MAX_SAMPLES
        if n != "auto" and not (valid and int(n) & (int(n) - 1) == 0):
            raise ValueError(
                f"n_samples: expected a power of two in 2..{MAX_SAMPLES} or 'auto', got {show(n)}"
            )


class SampledRule(Rule):
    """Time-uniform lower bounds on P(g(X) = c | z), from independent completions.

    All samples use the random numbers of `seed`.
    """

    def __init__(self, predict: ClassCodes, n_samples: int, seed: int) -> None:
        self.predict = predict
        self.n_samples = self.cost = n_samples
        self.seed = seed

    def bound(self, rule_input: RuleInput, best: _Codes) -> _Array:
        """See `Rule.bound`: all completions are drawn, because no bound reaches 1."""
        n = len(best)
        return self._bounds(rule_input, best, np.zeros(n), np.ones(n))

    def decides(self, rule_input: RuleInput, best: _Codes, tau: _Array) -> NDArray[np.bool_]:
        """See `Rule.decides`."""
        return np.asarray(self._bounds(rule_input, best, tau, tau) >= tau)

    def _bounds(
        self, rule_input: RuleInput, tested: _Codes, required: _Array, sufficient: _Array
    ) -> _Array:
        """Largest bound (n,) over the stages.

        The test of a sample ends when a bound reaches `sufficient`, or when no later bound can
        reach `required`.
        """
        sizes = _stages(self.n_samples)
        tables = [lower_bounds(size, RISK / len(sizes)) for size in sizes]
        votes, bound = np.zeros(len(tested), dtype=np.intp), np.zeros(len(tested))
        running, done = np.arange(len(tested)), 0
        for size, table in zip(sizes, tables, strict=True):
            samples = range(PILOT_SAMPLES + done, PILOT_SAMPLES + size)
            for rows, codes in self._labelled(rule_input, running, samples):
                votes[rows] += (codes == tested[rows][:, None]).sum(axis=1)
            bound[running] = np.maximum(bound[running], table[votes[running]])
            done = size
            running = running[bound[running] < sufficient[running]]
            # If all further completions agree, the last bound is the largest.
            last = tables[-1][votes[running] + self.n_samples - done]
            running = running[np.maximum(last, bound[running]) >= required[running]]
            if not len(running):
                break
        return bound

    def best_classes(self, rule_input: RuleInput) -> _Codes:
        """See `Rule.best_classes`: the most frequent class of the first completions."""
        n = len(rule_input.conditional.pattern)
        votes = np.zeros((n, len(self.predict.classes)), dtype=np.intp)
        for rows, codes in self._labelled(rule_input, np.arange(n), range(PILOT_SAMPLES)):
            np.add.at(votes, (rows[:, None], codes), 1)
        return np.asarray(votes.argmax(axis=1))

    def _labelled(
        self, rule_input: RuleInput, rows: _Codes, samples: range
    ) -> Iterator[tuple[_Codes, NDArray[Any]]]:
        """Yield indices of samples (b,) and the classes (b, s) of their completions, in batches."""
        batch: list[tuple[_Codes, _Array]] = []
        size = 0
        for part, drawn in _completions(rule_input.conditional, rows, self.seed, samples):
            if batch and size + drawn.size > BLOCK_NUMBERS:
                yield from self._predicted(batch)
                batch, size = [], 0
            batch.append((part, drawn))
            size += drawn.size
        if batch:
            yield from self._predicted(batch)

    def _predicted(
        self, batch: list[tuple[_Codes, _Array]]
    ) -> Iterator[tuple[_Codes, NDArray[Any]]]:
        """Predict drawn completions by one call of the classifier."""
        flat = [drawn.reshape(-1, drawn.shape[2]) for _, drawn in batch]
        codes = self.predict(flat[0] if len(flat) == 1 else np.concatenate(flat))
        ends = np.cumsum([len(inputs) for inputs in flat])[:-1]
        for (part, drawn), labels in zip(batch, np.split(codes, ends), strict=True):
            yield part, labels.reshape(drawn.shape[:2])


def _stages(n_samples: int) -> list[int]:
    """Total numbers of completions after each stage."""
    sizes = [min(FIRST_SAMPLES, n_samples)]
    while sizes[-1] < n_samples:
        sizes.append(2 * sizes[-1])
    return sizes


def largest_bound(n_samples: int) -> float:
    """Bound if all completions are in the class."""
    return float((RISK / len(_stages(n_samples))) ** (1 / n_samples))


def samples_of(sampled: Sampled, tau: float) -> int:
    """The number of completions for tau; warns if the given number cannot reach tau.

    "auto" is the number whose largest bound is half-way between tau and 1, so that samples with a
    few completions of other classes can be decided.
    """
    auto = sampled.n_samples == "auto"
    n = _samples_for(MIN_SAMPLES, (1 + tau) / 2) if auto else int(sampled.n_samples)
    if largest_bound(n) < tau:
        needed = _samples_for(n, tau)
        hint = f"at least {needed}" if largest_bound(needed) >= tau else "a smaller reliability"
        warn_caller(
            f"n_samples: expected {hint} for a reliability of {tau:g}, got {n}, which can decide "
            f"up to {largest_bound(n):.6f}; at {tau:g} only complete samples are decided",
            UserWarning,
        )
    return n


def _samples_for(n: int, tau: float) -> int:
    """The smallest power of two, from n on, whose bound reaches tau, at most MAX_SAMPLES."""
    while n < MAX_SAMPLES and largest_bound(n) < tau:
        n *= 2
    return n


# ---- completions ---------------------------------------------------------------------------------


def _completions(
    conditional: Conditional, rows: _Codes, seed: int, samples: range
) -> Iterator[tuple[_Codes, _Array]]:
    """Yield indices of samples (b,) and their completions (b, s, ell), in blocks of bounded size.

    Given the first t entries of a sample in the order of its pattern, the sample is
    ``mean + gains[t:].T @ e[t:]`` with independent normal ``e`` (see `PrefixGaussian`). One
    Cholesky factor serves all prefixes. The innovation of an entry is the same number at all times
    at which the entry is missing.
    """
    ell = conditional.means.shape[2]
    # Samples of a pattern share their noise.
    rows = rows[np.argsort(conditional.pattern[rows], kind="stable")]
    ends = np.flatnonzero(np.diff(conditional.pattern[rows])) + 1
    for group in np.split(rows, ends) if len(rows) else []:
        models, t = conditional.patterns.items[conditional.pattern[group[0]]]
        for chunk in range(samples.start // CHUNK_SAMPLES, -(-samples.stop // CHUNK_SAMPLES)):
            normal, share = _chunk(seed, len(models[0].mean), chunk)
            first, last = chunk * CHUNK_SAMPLES, (chunk + 1) * CHUNK_SAMPLES
            drawn = slice(max(samples.start, first) - first, min(samples.stop, last) - first)
            share = share[drawn]
            noise = [normal[drawn, t:] @ model.gains[t:] for model in models]
            width = max(1, BLOCK_NUMBERS // (len(share) * ell))
            for begin in range(0, len(group), width):
                part = group[begin : begin + width]
                yield part, _drawn(conditional, part, noise, share)


def _drawn(conditional: Conditional, rows: _Codes, noise: list[_Array], share: _Array) -> _Array:
    """Completions (b, s, ell) from the components' noise (s, ell).

    `share` (s,), uniform in (0, 1), chooses the component of each completion.
    """
    if len(noise) == 1:
        return np.asarray(conditional.means[rows, 0][:, None] + noise[0])
    ends = np.cumsum(conditional.weights[rows], axis=1)
    above = (share[None] * ends[:, -1:])[:, :, None] >= ends[:, None, :-1]
    component = above.sum(axis=2)  # (b, s)
    drawn = conditional.means[rows[:, None], component]
    for g, component_noise in enumerate(noise):
        row, sample = np.nonzero(component == g)
        drawn[row, sample] += component_noise[sample]
    return np.asarray(drawn)


@lru_cache(maxsize=8)
def _chunk(seed: int, d: int, chunk: int) -> tuple[_Array, _Array]:
    """Normal numbers (CHUNK_SAMPLES, d), and uniform numbers that choose the components."""
    random = np.random.default_rng([seed, d, chunk])
    return random.standard_normal((CHUNK_SAMPLES, d)), random.random(CHUNK_SAMPLES)
