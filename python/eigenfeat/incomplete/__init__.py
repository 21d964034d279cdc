"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from eigenfeat.incomplete._classifiers.class_nearest import ClassNearest
from eigenfeat.incomplete._classifiers.local_qda import LocalQDA
from eigenfeat.incomplete._completion.conditional import Conditional, PrefixConditional
from eigenfeat.incomplete._completion.models import GaussianCompletion, MixtureCompletion
from eigenfeat.incomplete._early.costs import (
    CostDecision,
    CostDecisions,
    CostStream,
    MinimumCostClassifier,
)
from eigenfeat.incomplete._early.ects import ECTS
from eigenfeat.incomplete._early.effective_length import EffectiveLength, effective_length
from eigenfeat.incomplete._early.fixed_time import FixedTime
from eigenfeat.incomplete._early.metrics import (
    EarlyCurve,
    EarlyScores,
    early_scores,
    harmonic_mean,
    reliability_curve,
)
from eigenfeat.incomplete._early.sprt import SPRT
from eigenfeat.incomplete._rules.calibration import Calibration, NotCertifiedError, calibrate
from eigenfeat.incomplete._series.early_result import EarlyLabels
from eigenfeat.incomplete._series.results import Decisions, EarlyDecisions, StreamDecision
from eigenfeat.incomplete.decision import ReliableClassifier
from eigenfeat.incomplete.search import ReliableClassifierCV
from eigenfeat.incomplete.stream import Stream
from eigenfeat.incomplete.streams import Streams
from eigenfeat.signals.intervals import interval_summaries

__all__ = [
    "ECTS",
    "SPRT",
    "Calibration",
    "ClassNearest",
    "Conditional",
    "CostDecision",
    "CostDecisions",
    "CostStream",
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
