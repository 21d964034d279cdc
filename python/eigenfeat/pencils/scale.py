"""Whether columns should be divided by their standard deviations before directions are solved for.

With a ridge, directions depend on the units of single columns. Columns that share a unit (pixels,
samples of a signal) are best left as they are, columns of mixed units are best standardised. Two
ways to tell: a trial on held-out samples (`scale_trial`), and, where there are none or the trial
leaves it open, a rule on the standard deviations.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.saved import Saved
from eigenfeat._base.spread import varying

if TYPE_CHECKING:
    from eigenfeat._base.types import Labels
    from eigenfeat.moments.class_moments import ClassMoments

Array = NDArray[np.float64]

# The rule's bound on max / median of the standard deviations. Pixels and spectra stay well below,
# columns of mixed units go well above. A few columns that vary much less than the others, as the
# border of an image does, do not matter to it.
SPREAD = 5.0


@dataclass(frozen=True)
class ScaleReport(Saved):
    """Report on the choice of `scale`.

    Attributes
    ----------
    choice : {"none", "columns"}
    basis : {"given", "trial", "rule"}
        Given by the caller, chosen by errors on held-out samples, or, without them or where they
        differ by less than a standard error, by the spread of the standard deviations.
    column_scale : (d,) array
        Divisors of the columns: ones, or the standard deviations.
    errors : dict of float
        With a trial, the held-out error rate under each choice.
    n_rows : int
        Number of samples used in a trial.
    spread : float
        Largest standard deviation divided by the median of the positive ones.
    """

    _saved: ClassVar[dict[str, str]] = {
        "choice": "text",
        "basis": "text",
        "column_scale": "floats *",
        "errors": "value",
        "n_rows": "count",
        "spread": "value",
    }

    choice: str
    basis: str
    column_scale: Array
    errors: dict[str, float] = field(default_factory=dict)
    n_rows: int = 0
    spread: float = 1.0

    def __str__(self) -> str:
        if self.basis == "given":
            return f"{self.choice} (as given)"
        reasons = []
        if self.errors:
            reasons.append(
                f"held-out error {100 * self.errors['none']:.2f}% as they are, "
                f"{100 * self.errors['columns']:.2f}% by columns; {self.n_rows} samples"
            )
        if self.basis == "rule":
            reasons.append(f"largest column deviation is {self.spread:.3g} times the median")
        return f"{self.choice} ({'; '.join(reasons)})"


def shares_and_means(moments: ClassMoments) -> tuple[Labels, Array, Array]:
    """Return the classes that have weight, their shares (k,) of it, and their means (k, d)."""
    labels = moments.active_classes
    weights = np.array([moments.weight(c) for c in labels])
    return labels, weights / weights.sum(), np.array([moments.mean(c) for c in labels])


def pooled_mean(shares: Array, means: Array) -> Array:
    """Return the mean (d,) of all rows; exactly that of the classes where these are equal."""
    return np.asarray(means[0] + shares @ (means - means[0]))


def column_deviations(moments: ClassMoments) -> Array:
    """Return the (d,) standard deviations of the columns over all rows; 0 of constant ones."""
    labels, weights, means = shares_and_means(moments)
    centre = pooled_mean(weights, means)
    within = sum(w * moments.variance(c) for w, c in zip(weights, labels, strict=True))
    variance = within + weights @ (means - centre) ** 2
    return varying(variance, centre)


def settle(moments: ClassMoments, scale: str, trial: ScaleReport | None) -> ScaleReport:
    """Report the choice for these moments: the caller's, the trial's, or the rule's.

    The deviations are those of all rows in `moments`, also if the trial saw only some of them.
    """
    deviations = column_deviations(moments)
    if scale != "auto":
        return scale_report(scale, "given", deviations)
    if trial is None:
        return scale_report(by_rule(deviations), "rule", deviations)
    return scale_report(trial.choice, trial.basis, deviations, trial.errors, trial.n_rows)


def by_rule(deviations: Array) -> str:
    """The choice by the columns' deviations (d,): "columns" where some are much larger."""
    return "columns" if _spread(deviations) > SPREAD else "none"


def scale_report(
    choice: str,
    basis: str,
    deviations: Array,
    errors: dict[str, float] | None = None,
    n_rows: int = 0,
) -> ScaleReport:
    """The report on a choice, with the columns' divisors from their deviations (d,)."""
    scale = np.where(deviations > 0, deviations, 1.0)
    if choice == "none":
        scale = np.ones_like(deviations)
    return ScaleReport(choice, basis, scale, errors or {}, n_rows, _spread(deviations))


def _spread(deviations: Array) -> float:
    positive = deviations[deviations > 0]
    return float(positive.max() / np.median(positive)) if positive.size else 1.0
