"""Relatives of local discriminative Gaussian dimension reduction."""

from .direct import DirectLDA
from .fisher import PCAFisher, RegularizedFisher
from .gsvd import GSVDDiscriminant
from .local_fisher import LocalFisher
from .margin_criterion import MaximumMarginCriterion
from .pooled import PooledFisher, PooledPCA

__all__ = [
    "DirectLDA",
    "GSVDDiscriminant",
    "LocalFisher",
    "MaximumMarginCriterion",
    "PCAFisher",
    "PooledFisher",
    "PooledPCA",
    "RegularizedFisher",
]
