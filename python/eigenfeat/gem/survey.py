"""Rows on which GEM tries scales."""

from __future__ import annotations

from typing import Any

from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils import scale
from eigenfeat.pencils.scale import ScaleReport, Trial
from eigenfeat.rows.labelled import LabelledRows

__all__ = ["tried_scales"]


def tried_scales(
    gem: Any, rows: LabelledRows, moments: ClassMoments, seed: int
) -> ScaleReport | None:
    """The trial's report, or None where none is wanted or worth its time.

    Parameters
    ----------
    gem : GEM
    rows : LabelledRows
        Of which only those drawn are looked at.
    moments : ClassMoments
        Of all rows.
    seed : int
    """
    few = len(moments.active_classes) < 2
    d = moments.n_features_in_
    if gem.scale != "auto" or few or not scale.can_try(rows.n_rows, d):
        return None
    names = ("ridge", "n_directions", "denominator", "constant", "n_threads")
    trial = Trial(**{name: getattr(gem, name) for name in names})
    drawn = rows.take(scale.trial_rows(rows.codes, d, seed))
    return scale.by_trial(drawn.X, rows.classes[drawn.y], drawn.weight, moments, trial)
