"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from eigenfeat.incomplete.calibration import Calibration, NotCertifiedError, calibrate
from eigenfeat.incomplete.completion import (
    Conditional,
    GaussianCompletion,
    MixtureCompletion,
)
from eigenfeat.incomplete.decisions import Decisions, EarlyDecisions, EarlyLabels, StreamDecision
from eigenfeat.incomplete.ects import ECTS
from eigenfeat.incomplete.fixed_time import FixedTime
from eigenfeat.incomplete.local_qda import LocalQDA
from eigenfeat.incomplete.minimum_cost import (
    CostDecision,
    CostDecisions,
    CostStream,
    MinimumCostClassifier,
)
from eigenfeat.incomplete.reliable import ReliableClassifier
from eigenfeat.incomplete.sampling import Sampled
from eigenfeat.incomplete.scores import (
    EarlyCurve,
    EarlyScores,
    early_scores,
    harmonic_mean_score,
    reliability_curve,
)
from eigenfeat.incomplete.streams import Stream, Streams
from eigenfeat.signals.intervals import interval_summaries

__all__ = [
    "ECTS",
    "Calibration",
    "Conditional",
    "CostDecision",
    "CostDecisions",
    "CostStream",
    "Decisions",
    "EarlyCurve",
    "EarlyDecisions",
    "EarlyLabels",
    "EarlyScores",
    "FixedTime",
    "GaussianCompletion",
    "LocalQDA",
    "MinimumCostClassifier",
    "MixtureCompletion",
    "NotCertifiedError",
    "ReliableClassifier",
    "Sampled",
    "Stream",
    "StreamDecision",
    "Streams",
    "calibrate",
    "early_scores",
    "harmonic_mean_score",
    "interval_summaries",
    "reliability_curve",
]
