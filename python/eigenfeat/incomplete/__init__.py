"""Classifying incomplete data: decide as soon as the complete data would be classified the same.

Parrish (2012), chapter 5.
"""

from .completion import GaussianCompletion, MixtureCompletion
from .conditional import Conditional, PrefixConditional
from .local_qda import LocalQDA

__all__ = [
    "Conditional",
    "GaussianCompletion",
    "LocalQDA",
    "MixtureCompletion",
    "PrefixConditional",
]
