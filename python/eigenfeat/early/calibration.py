r"""Choose a tau at which a required share of early labels is final: learn, then test.

tau is a promise of the completion model. On samples that were not used for fitting, the share of
early labels that are final is a mean of independent trials, for every model. The hypotheses "at
:math:`\tau_j` the agreement is below the required share" are tested from the strictest
:math:`\tau_j` to looser ones, each by the exact binomial (Clopper-Pearson) bound at the full level,
until a hypothesis is not rejected. The probability of a false rejection is at most 1 - confidence
for any number of hypotheses: it implies that the first true hypothesis was rejected
(fixed-sequence testing). By class, the hypothesis is "at :math:`\tau_j` the agreement of a class is
below the required share". It is rejected if the bounds of all classes reach the share, which needs
no correction for the number of classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import check_number, show
from eigenfeat.early.rules import clopper_pearson
from eigenfeat.early.scores import checked_taus, runs

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Calibration", "NotCertifiedError", "calibrate"]

_Array = NDArray[np.float64]

# From 1e-8 to 1 - 1e-6: at tau 1e-6, "quadratic" sets may decide as late as "pairwise" at 0.99.
GRID = expit(np.linspace(-18.4, 13.8, 160))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Result of a calibration on held-out samples.

    Attributes
    ----------
    agreement : float
        Required share of early labels that equal those of the complete samples.
    confidence : float
        Required confidence.
    n : int
        Number of held-out samples.
    tau : (p,) array
        The grid, ascending.
    held_out_agreement : (p,) array
        Agreement on the held-out samples at each tau.
    lower : (p,) array
        One-sided lower bound of the agreement at each tau, with the given confidence; by class, the
        smallest bound.
    mean_time : (p,) array
        Mean number of samples to a decision.
    accuracy : (p,) array or None
        Accuracy of the early labels, if true labels were given.
    chosen : int
        Index of the chosen tau: the agreement there is at least `agreement`, with the confidence.
        -1 if there is none.
    """

    agreement: float
    confidence: float
    n: int
    tau: _Array
    held_out_agreement: _Array
    lower: _Array
    mean_time: _Array
    accuracy: _Array | None
    chosen: int

    @property
    def reliability(self) -> float:
        """The chosen tau; NaN if there is none."""
        return float(self.tau[self.chosen]) if self.chosen >= 0 else float("nan")

    def __str__(self) -> str:
        wanted = f"agreement {self.agreement:g} with confidence {self.confidence:g}"
        if self.chosen < 0:
            return (
                f"{wanted}: not shown by {self.n} samples; at the strictest tau {self.tau[-1]:.6g} "
                f"{self.held_out_agreement[-1]:.4f} agree, at least {self.lower[-1]:.4f}"
            )
        k = self.chosen
        return (
            f"{wanted}: tau {self.tau[k]:.6g}, at which {self.held_out_agreement[k]:.4f} of "
            f"{self.n} samples agree, at least {self.lower[k]:.4f}, after {self.mean_time[k]:.1f} "
            "values"
        )


class NotCertifiedError(ValueError):
    """Held-out samples do not certify the required agreement at any tau.

    Attributes
    ----------
    calibration : Calibration
        The result on the held-out samples.
    """

    def __init__(self, calibration: Calibration) -> None:
        super().__init__(calibration)
        self.calibration = calibration

    def __str__(self) -> str:
        return f"agreement: expected one that held-out samples can show, got {self.calibration}"


def last_rejected(lower: _Array, agreement: float) -> int:
    """Index of the first of the last bounds that all reach the agreement; -1 without any."""
    passed = np.asarray(lower >= agreement)[::-1]
    steps = len(passed) if passed.all() else int(passed.argmin())
    return len(passed) - steps if steps else -1


def calibrate(
    model: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    agreement: float = 0.95,
    confidence: float = 0.9,
    by_class: bool = False,
    tau: ArrayLike | None = None,
    steps: ArrayLike | None = None,
) -> Calibration:
    """Find the loosest tau whose agreement is certified, on samples that were not used for fitting.

    This replaces the correction of `ReliableClassifier.fit`: tau is that of the uncorrected rule.
    Clopper and Pearson's bounds and fixed-sequence testing certify it for samples drawn like the
    held-out samples, for any distribution.

    Parameters
    ----------
    model : ReliableClassifier
        Model fitted on other samples.
    X : (n, d) array-like
        Complete samples, drawn like future samples.
    y : (n,) array-like, optional
        Labels, for the accuracy and for `by_class`.
    agreement : float in (0, 1), default=0.95
        Required share of early labels that equal those of the complete samples.
    confidence : float in (0, 1), default=0.9
        Required probability of that agreement, over the choice of the held-out samples.
    by_class : bool, default=False
        Whether the agreement is required among the samples of each class, instead of all together.
    tau : ascending numbers in (0, 1), optional
        Candidates; 160 from 1e-8 to 1 - 1e-6 by default.
    steps : ascending integers in 1..d, optional
        Times of decision, as in `ReliableClassifier.predict_early`.

    Returns
    -------
    Calibration
        `chosen` is -1 if no tau is certified. At least log(1 - confidence) / log(agreement) samples
        are needed, and then all of them must agree.

    Raises
    ------
    ValueError
        If parameters are invalid, or samples and labels do not match.

    References
    ----------
    A. Angelopoulos, S. Bates, E. Candes, M. Jordan, L. Lei, "Learn then test: calibrating
    predictive algorithms to achieve risk control", 2021.
    C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26, 1934.
    """
    for name, value in (("agreement", agreement), ("confidence", confidence)):
        if not 0 < check_number(value, name) < 1:
            raise ValueError(f"{name}: expected a number in (0, 1), got {show(value)}")
    grid = GRID if tau is None else checked_taus(tau)
    if hasattr(model, "uncorrected"):
        model = model.uncorrected()
    if not hasattr(model, "predict"):
        raise ValueError(
            f"model: expected a fitted classifier of incomplete samples, got {show(model)}"
        )
    complete = np.asarray(model.predict(X))
    truth = None if y is None else np.asarray(plain_labels(y))
    if truth is not None and truth.shape != complete.shape:
        raise ValueError(f"y: expected {len(complete)} labels, got shape {truth.shape}")
    groups = np.zeros(len(complete), dtype=np.intp)
    if by_class:
        if truth is None:
            raise ValueError("y: expected labels with by_class=True, got None")
        groups = np.unique(truth, return_inverse=True)[1]
    sizes = np.bincount(groups)
    agreed, times, right, lower = [], [], [], []
    for run in runs(model, X, grid, steps):
        agrees = run.label == complete
        agreed.append(int(agrees.sum()))
        counts = np.bincount(groups[agrees], minlength=len(sizes))
        lower.append(clopper_pearson(counts, sizes, 1.0 - float(confidence)).min())
        times.append(float(run.time.mean()))
        if truth is not None:
            right.append(float(np.mean(run.label == truth)))
    return Calibration(
        agreement=float(agreement),
        confidence=float(confidence),
        n=len(complete),
        tau=grid,
        held_out_agreement=np.array(agreed) / len(complete),
        lower=np.array(lower),
        mean_time=np.array(times),
        accuracy=None if truth is None else np.array(right),
        chosen=last_rejected(np.array(lower), agreement),
    )
