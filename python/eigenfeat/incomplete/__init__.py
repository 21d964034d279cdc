"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from .baselines import FixedTime
from .baselines_ects import ECTS
from .baselines_sprt import SPRT
from .calibration import Calibration, NotCertifiedError, calibrate
from .class_nearest import ClassNearest
from .completion import GaussianCompletion, MixtureCompletion
from .conditional import Conditional, PrefixConditional
from .costs import CostDecisions, MinimumCostClassifier
from .decision import ReliableClassifier
from .early_result import EarlyLabels
from .effective_length import EffectiveLength, effective_length
from .local_qda import LocalQDA
from .metrics import EarlyCurve, EarlyScores, early_scores, harmonic_mean, reliability_curve
from .results import Decisions, EarlyDecisions
from .search import ReliableClassifierCV
from .stream import Stream, StreamDecision
from .streams import Streams

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
    "reliability_curve",
]
