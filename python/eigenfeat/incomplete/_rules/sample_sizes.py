"""Rules that sample complete rows: how many, and which reliabilities they can show with them.

Where all n samples of a row are of one class, Clopper and Pearson's lower bound of its probability
is ``level ** (1 / n)``: no larger tau can be decided with n samples, however certain the class is.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.saved import fits
from eigenfeat._base.validation import show
from eigenfeat.incomplete._rules.rule import Rule

__all__ = ["FEWEST", "MOST_SAMPLES", "SamplingRule", "check_samples", "samples_of"]

FEWEST = 1024  # that "auto" takes
MOST_SAMPLES = 2**20

Reach = Callable[[int], float]


class SamplingRule(Rule):
    """A rule that labels samples of the complete row by the classifier.

    Parameters
    ----------
    predict : callable
        From rows of features to class indices.
    n_samples : int
        A power of two, at most, for each row.
    risk : float
        Probability, over the samples of one row, that a bound is too large.
    seed : int
        The same numbers serve every row.
    """

    _saved: ClassVar[dict[str, str]] = {
        "predict": "of ClassCodes",
        "n_samples": "count",
        "risk": "number",
        "seed": "count",
    }

    def __init__(
        self,
        predict: Callable[[NDArray[np.float64]], NDArray[Any]],
        n_samples: int,
        risk: float,
        seed: int,
    ) -> None:
        self.predict = predict
        self.n_samples = n_samples
        self.risk = risk
        self.seed = seed

    @property
    def cost(self) -> int:  # type: ignore[override]
        return self.n_samples

    @staticmethod
    def reach(n_samples: int, risk: float) -> float:
        """The largest bound there is: all samples are of the class."""
        raise NotImplementedError

    def _check_loaded(self) -> None:
        n = self.n_samples
        fits(2 <= n <= 2**24 and n & (n - 1) == 0 and 0 < self.risk < 1, type(self).__name__)


def check_samples(given: int | str) -> None:
    """A power of two, or "auto"."""
    if not isinstance(given, str) and given & (given - 1):
        raise ValueError(f"n_samples: expected a power of two or 'auto', got {show(given)}")


def samples_of(given: int | str, tau: float, reach: Reach) -> int:
    """How many samples to take.

    Parameters
    ----------
    given : int or "auto"
        "auto": as many as can show a reliability half-way between tau and 1, so that rows are
        decided of which some samples are of other classes.
    tau : float
    reach : callable
        The largest reliability that a number of samples can show.

    Returns
    -------
    int
        With a warning where it cannot show tau.
    """
    n = FEWEST if given == "auto" else int(given)
    if given == "auto":
        while n < MOST_SAMPLES and reach(n) < (1 + tau) / 2:
            n *= 2
    if reach(n) < tau:
        enough = n
        while enough < MOST_SAMPLES and reach(enough) < tau:
            enough *= 2
        hint = f"at least {enough}" if reach(enough) >= tau else "a smaller reliability"
        warnings.warn(
            f"n_samples: expected {hint} for a reliability of {tau:g}, got {n}, which can decide "
            f"up to {reach(n):.6f}; at {tau:g} rows are decided when they are complete",
            UserWarning,
            stacklevel=6,
        )
    return n
