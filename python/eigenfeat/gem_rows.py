"""Rows on which GEM tries scales, from wherever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat import _scale
from eigenfeat._scale import ScaleReport, Trial
from eigenfeat._surveyed import SurveyedBlocks
from eigenfeat.moments import ClassMoments

__all__ = ["tried_scales"]


def tried_scales(gem: Any, source: Any, moments: ClassMoments, seed: int) -> ScaleReport | None:
    """The trial's report, or None where none is wanted or worth its time.

    Parameters
    ----------
    gem : GEM
    source : SurveyedBlocks, or tuple (X, y, sample_weight)
        The rows, of which only those drawn are looked at: the same for both kinds.
    moments : ClassMoments
        Of all rows.
    seed : int
    """
    known = isinstance(source, SurveyedBlocks)
    few = len(_scale.active_classes(moments)) < 2
    d, n = moments.n_features_in_, source.n_rows if known else len(source[1])
    if gem.scale != "auto" or few or not _scale.can_try(n, d):
        return None
    names = ("ridge", "n_directions", "denominator", "constant", "n_threads")
    trial = Trial(**{name: getattr(gem, name) for name in names})
    if known:
        drawn = source.take(_scale.trial_rows(source.codes, d, seed))
        return _scale.by_trial(drawn.X, source.classes[drawn.y], drawn.weight, moments, trial)
    X, y, weight = source
    rows = _scale.trial_rows(np.unique(y, return_inverse=True)[1], d, seed)
    weight = None if weight is None else weight[rows]
    return _scale.by_trial(X[rows], y[rows], weight, moments, trial)
