"""Rows on which GEM tries scales."""

from __future__ import annotations

from typing import Any

from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.scale import ScaleReport
from eigenfeat.pencils.scale_trial import by_trial, can_try, trial_rows
from eigenfeat.pencils.solution import Settings
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
    if gem.scale != "auto" or few or not can_try(rows.n_rows, d):
        return None
    drawn = rows.take(trial_rows(rows.codes, d, seed))
    settings = Settings.of(gem, seed)
    return by_trial(drawn.X, rows.classes[drawn.y], drawn.weight, moments, settings)
