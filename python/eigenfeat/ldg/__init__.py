"""Local discriminative Gaussian dimensionality reduction and its relatives (Parrish 2012)."""

from .direct import DirectLDA
from .fisher import PCAFisher, RegularizedFisher
from .gradient import DiscriminativeGaussian
from .gsvd import GSVDDiscriminant
from .kernel import KernelLDG
from .linear import LDG
from .local_fisher import LocalFisher
from .margin_criterion import MaximumMarginCriterion
from .metric_learning import ITML, NCA
from .pooled import PooledFisher, PooledPCA
from .sparse import SparseLDG
from .transfer import TransferLDG

__all__ = [
    "ITML",
    "LDG",
    "NCA",
    "DirectLDA",
    "DiscriminativeGaussian",
    "GSVDDiscriminant",
    "KernelLDG",
    "LocalFisher",
    "MaximumMarginCriterion",
    "PCAFisher",
    "PooledFisher",
    "PooledPCA",
    "RegularizedFisher",
    "SparseLDG",
    "TransferLDG",
]
