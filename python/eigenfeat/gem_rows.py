"""Rows on which GEM tries scales, from wherever the rows are."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from eigenfeat import _scale
from eigenfeat._scale import ScaleReport, Trial
from eigenfeat._surveyed import SurveyedBlocks
from eigenfeat.moments import ClassMoments

__all__ = ["tried_scales"]


def tried_scales(
    gem: Any, source: Any, labels: NDArray[Any], moments: ClassMoments, seed: int
) -> ScaleReport | None:
    """The trial's report, or None where none is wanted or worth its time.

    Parameters
    ----------
    gem : GEM
    source : SurveyedBlocks, or tuple (X, y, sample_weight)
        The rows, of which only those drawn are looked at: the same for both kinds.
    labels : (n,) array
        Labels of the rows, or their indices.
    moments : ClassMoments
        Of all rows.
    seed : int
    """
    few = len(_scale.active_classes(moments)) < 2
    d = moments.n_features_in_
    if gem.scale != "auto" or few or not _scale.can_try(len(labels), d):
        return None
    names = ("ridge", "n_directions", "denominator", "constant", "n_threads")
    trial = Trial(**{name: getattr(gem, name) for name in names})
    rows = _scale.trial_rows(labels, d, seed)
    if isinstance(source, SurveyedBlocks):
        drawn = source.take(rows)
        return _scale.by_trial(drawn.X, source.classes[drawn.y], drawn.weight, moments, trial)
    X, y, weight = source
    weight = None if weight is None else weight[rows]
    return _scale.by_trial(X[rows], y[rows], weight, moments, trial)
