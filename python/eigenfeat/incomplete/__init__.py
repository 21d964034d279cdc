"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from .completion import GaussianCompletion, MixtureCompletion
from .conditional import Conditional, PrefixConditional
from .decision import ReliableClassifier
from .local_qda import LocalQDA
from .results import Decisions, EarlyDecisions

__all__ = [
    "Conditional",
    "Decisions",
    "EarlyDecisions",
    "GaussianCompletion",
    "LocalQDA",
    "MixtureCompletion",
    "PrefixConditional",
    "ReliableClassifier",
]
