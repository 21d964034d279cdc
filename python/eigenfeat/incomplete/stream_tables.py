"""What a fitted classifier decides streams by, as plain arrays, for programs without Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.incomplete.discriminants import Linear
from eigenfeat.incomplete.rules import PairwiseRule, pair_variances
from eigenfeat.incomplete.series import decision_times, taus_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete.reliable import ReliableClassifier

__all__ = ["StreamTables", "stream_tables"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StreamTables:
    """Arrays of the rule of pairs with linear discriminants, by which streams are decided.

    Entries of a row are in the order of time: all channels of the first value, then of the second.
    The completion has one part, or one for each class.

    Attributes
    ----------
    classes : (k,) array
        Labels.
    channels, length : int
        Numbers in a sample, and samples in a complete series.
    padded : bool
        Whether shorter series are padded with their last values.
    tau : float
        Reliability of the decisions.
    times : (p,) array of int
        Numbers of samples, below `length`, after which a series may be decided.
    weights : (parts,) array
        Shares of the parts.
    means : (parts, d) array
        Of the rows.
    factors : (parts, d, d) array
        Cholesky factors of the covariances.
    gains : (parts, d, k) array
        What a unit of each entry's innovation adds to the scores.
    scores : (parts, k) array
        Their means before the first value.
    deviations : (p, parts, k, k) array
        Standard deviations of differences of scores after each time; 0 where nothing is random.
    """

    classes: NDArray[Any]
    channels: int
    length: int
    padded: bool
    tau: float
    times: NDArray[np.int64]
    weights: _Array
    means: _Array
    factors: _Array
    gains: _Array
    scores: _Array
    deviations: _Array


def stream_tables(
    model: ReliableClassifier, reliability: ArrayLike | None = None, steps: ArrayLike | None = None
) -> StreamTables:
    """Return what a fitted classifier decides streams by.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted, with ``rule_ == "pairwise"`` and linear discriminants, one for each class.
    reliability : float, optional
        tau; that of the estimator by default.
    steps : ascending integers in 1..length, optional
        Numbers of values after which series may be decided; by default those of the estimator.

    Returns
    -------
    StreamTables
        The arrays.

    Raises
    ------
    ValueError
        If the rule or the discriminants are others, or arguments are invalid.
    """
    check_is_fitted(model)
    tau = float(taus_of(model, reliability, 1)[0])
    fitted = model.fitted_
    times = decision_times(model, steps, fitted.layout.length)
    rule = getattr(fitted.rule, "rule", fitted.rule)
    if not isinstance(rule, PairwiseRule) or not isinstance(fitted.discriminants, Linear):
        raise ValueError(
            "model: expected the rule 'pairwise' with linear discriminants (such as "
            "LinearDiscriminantAnalysis or LogisticRegression), got the rule "
            f"{fitted.rule_name!r} with {show(fitted.classifier)}"
        )
    if fitted.scores is None or len(fitted.discriminants.labels) != len(fitted.classes):
        raise ValueError(
            "model: expected one discriminant for each class, got "
            f"{fitted.discriminants.count} of {show(fitted.classifier)}"
        )
    entries = times * fitted.layout.channels
    times = times[
        (times > 0) & (times < fitted.layout.length) & (entries >= fitted.rule.least_known(tau))
    ]
    mixture = fitted.completion.mixture_
    gaussians = mixture.prefix_models(fitted.scores, n_threads=fitted.completion.n_threads)
    k = fitted.discriminants.count
    deviations = np.zeros((len(times), len(gaussians), k, k))
    for g, one in enumerate(gaussians):
        for i, t in enumerate(times):
            covariance = one.covariances(int(t) * fitted.layout.channels)
            variances = pair_variances(np.repeat(covariance, k, axis=0), np.arange(k))
            deviations[i, g] = np.sqrt(variances)
    return StreamTables(
        classes=fitted.classes,
        channels=fitted.layout.channels,
        length=fitted.layout.length,
        padded=fitted.layout.padded,
        tau=tau,
        times=times,
        weights=np.asarray(mixture.weights, dtype=np.float64),
        means=np.stack([one.mean for one in gaussians]),
        factors=np.stack([np.tril(one.factor) for one in gaussians]),
        gains=np.stack([one.gains for one in gaussians]),
        scores=np.stack([one.feature_mean for one in gaussians]),
        deviations=deviations,
    )
