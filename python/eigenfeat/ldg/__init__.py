"""Local discriminative Gaussian dimensionality reduction and its relatives (Parrish 2012)."""

from eigenfeat.ldg.direct import DirectLDA
from eigenfeat.ldg.fisher import PCAFisher, RegularizedFisher
from eigenfeat.ldg.gradient import DiscriminativeGaussian
from eigenfeat.ldg.gsvd import GSVDDiscriminant
from eigenfeat.ldg.kernel import KernelLDG
from eigenfeat.ldg.linear import LDG
from eigenfeat.ldg.local_fisher import LocalFisher
from eigenfeat.ldg.margin_criterion import MaximumMarginCriterion
from eigenfeat.ldg.metric_learning import ITML, TransferITML
from eigenfeat.ldg.nca import NCA
from eigenfeat.ldg.partitioned import PartitionedReducer
from eigenfeat.ldg.pooled import PooledFisher, PooledPCA
from eigenfeat.ldg.sparse import SparseLDG
from eigenfeat.ldg.transfer import TransferLDG

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
    "PartitionedReducer",
    "PooledFisher",
    "PooledPCA",
    "RegularizedFisher",
    "SparseLDG",
    "TransferITML",
    "TransferLDG",
]
