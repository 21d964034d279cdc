"""What a fitted classifier decides streams by, as plain arrays, for programs without Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.incomplete._classifiers.discriminants import Linear
from eigenfeat.incomplete._rules.pairwise import PairwiseRule
from eigenfeat.incomplete._rules.rule import pair_variances
from eigenfeat.incomplete._series.steps import looks_of, taus_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.incomplete.decision import ReliableClassifier

__all__ = ["StreamTables", "stream_tables"]

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StreamTables:
    """Arrays of the rule of pairs with linear discriminants, by which streams are decided.

    Entries of a row are in the order of time: all channels of the first sample, then of the second.
    The completion has one part, or one for each class.

    Attributes
    ----------
    classes : (k,) array
        Labels.
    channels, length : int
        Numbers in a sample, and samples in a complete series.
    held : bool
        Whether the last samples stand for what a shorter series lacks.
    tau : float
        Reliability of the decisions.
    looks : (p,) array of int
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
        Their means before the first sample.
    deviations : (p, parts, k, k) array
        Standard deviations of differences of scores after each look; 0 where nothing is random.
    """

    classes: NDArray[Any]
    channels: int
    length: int
    held: bool
    tau: float
    looks: NDArray[np.int64]
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
        Numbers of samples after which series may be decided; by default those of the estimator.

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
    core = model.fitted_
    looks = looks_of(model, steps, core.layout.length)
    rule = getattr(core.rule, "rule", core.rule)
    if not isinstance(rule, PairwiseRule) or not isinstance(core.discriminants, Linear):
        raise ValueError(
            "model: expected the rule 'pairwise' with linear discriminants (such as "
            "LinearDiscriminantAnalysis or LogisticRegression), got the rule "
            f"{core.rule_name!r} with {show(core.classifier)}"
        )
    if core.scores is None or len(core.discriminants.labels) != len(core.classes):
        raise ValueError(
            "model: expected one discriminant for each class, got "
            f"{core.discriminants.count} of {show(core.classifier)}"
        )
    entries = looks * core.layout.channels
    looks = looks[
        (looks > 0) & (looks < core.layout.length) & (entries >= core.rule.least_known(tau))
    ]
    mixture = core.completion.mixture_
    gaussians = mixture.prefix_models(core.scores, n_threads=core.completion.n_threads)
    k = core.discriminants.count
    deviations = np.zeros((len(looks), len(gaussians), k, k))
    for g, one in enumerate(gaussians):
        for i, t in enumerate(looks):
            covariance = one.covariances(int(t) * core.layout.channels)
            variances = pair_variances(np.repeat(covariance, k, axis=0), np.arange(k))
            deviations[i, g] = np.sqrt(variances)
    return StreamTables(
        classes=core.classes,
        channels=core.layout.channels,
        length=core.layout.length,
        held=core.layout.held,
        tau=tau,
        looks=looks,
        weights=np.asarray(mixture.weights, dtype=np.float64),
        means=np.stack([one.mean for one in gaussians]),
        factors=np.stack([np.tril(one.factor) for one in gaussians]),
        gains=np.stack([one.gains for one in gaussians]),
        scores=np.stack([one.feature_mean for one in gaussians]),
        deviations=deviations,
    )
