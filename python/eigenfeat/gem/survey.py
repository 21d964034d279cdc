"""Rows on which GEM tries scales, from wherever the rows are."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils import scale
from eigenfeat.pencils.scale import ScaleReport, Trial
from eigenfeat.rows.surveyed import SurveyedBlocks

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
    few = len(scale.active_classes(moments)) < 2
    d, n = moments.n_features_in_, source.n_rows if known else len(source[1])
    if gem.scale != "auto" or few or not scale.can_try(n, d):
        return None
    names = ("ridge", "n_directions", "denominator", "constant", "n_threads")
    trial = Trial(**{name: getattr(gem, name) for name in names})
    if known:
        drawn = source.take(scale.trial_rows(source.codes, d, seed))
        return scale.by_trial(drawn.X, source.classes[drawn.y], drawn.weight, moments, trial)
    X, y, weight = source
    rows = scale.trial_rows(np.unique(y, return_inverse=True)[1], d, seed)
    weight = None if weight is None else weight[rows]
    return scale.by_trial(X[rows], y[rows], weight, moments, trial)
