"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from .baselines import FixedTime
from .baselines_ects import ECTS
from .completion import GaussianCompletion, MixtureCompletion
from .conditional import Conditional, PrefixConditional
from .decision import ReliableClassifier
from .early_result import EarlyLabels
from .local_qda import LocalQDA
from .results import Decisions, EarlyDecisions

__all__ = [
    "ECTS",
    "Conditional",
    "Decisions",
    "EarlyDecisions",
    "EarlyLabels",
    "FixedTime",
    "GaussianCompletion",
    "LocalQDA",
    "MixtureCompletion",
    "PrefixConditional",
    "ReliableClassifier",
]
