"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from eigenfeat.incomplete.baselines import FixedTime
from eigenfeat.incomplete.baselines_ects import ECTS
from eigenfeat.incomplete.baselines_sprt import SPRT
from eigenfeat.incomplete.calibration import Calibration, NotCertifiedError, calibrate
from eigenfeat.incomplete.class_nearest import ClassNearest
from eigenfeat.incomplete.completion import GaussianCompletion, MixtureCompletion
from eigenfeat.incomplete.conditional import Conditional, PrefixConditional
from eigenfeat.incomplete.costs import CostDecisions, MinimumCostClassifier
from eigenfeat.incomplete.decision import ReliableClassifier
from eigenfeat.incomplete.early_result import EarlyLabels
from eigenfeat.incomplete.effective_length import EffectiveLength, effective_length
from eigenfeat.incomplete.intervals import interval_summaries
from eigenfeat.incomplete.local_qda import LocalQDA
from eigenfeat.incomplete.metrics import (
    EarlyCurve,
    EarlyScores,
    early_scores,
    harmonic_mean,
    reliability_curve,
)
from eigenfeat.incomplete.results import Decisions, EarlyDecisions
from eigenfeat.incomplete.search import ReliableClassifierCV
from eigenfeat.incomplete.stream import Stream, StreamDecision
from eigenfeat.incomplete.streams import Streams

__all__ = [
    "ECTS",
    "SPRT",
    "Calibration",
    "ClassNearest",
    "Conditional",
    "CostDecisions",
    "Decisions",
    "EarlyCurve",
    "EarlyDecisions",
    "EarlyLabels",
    "EarlyScores",
    "EffectiveLength",
    "FixedTime",
    "GaussianCompletion",
    "LocalQDA",
    "MinimumCostClassifier",
    "MixtureCompletion",
    "NotCertifiedError",
    "PrefixConditional",
    "ReliableClassifier",
    "ReliableClassifierCV",
    "Stream",
    "StreamDecision",
    "Streams",
    "calibrate",
    "early_scores",
    "effective_length",
    "harmonic_mean",
    "interval_summaries",
    "reliability_curve",
]
