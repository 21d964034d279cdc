"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

from importlib.metadata import PackageNotFoundError, version

from . import _blas  # noqa: F401  (first: what follows needs the core)
from .blocks import ArrayBlocks, Block, GeneratedBlocks, RowBlocks
from .calibrated import CalibratedLeastSquares
from .contrasts import Contrasts, class_tree, one_vs_rest
from .discriminant import FisherLDA, SlicedInverseRegression
from .features import ExpandedRows
from .gem import GEM
from .gem_classifier import GEMClassifier
from .gem_ensemble import GEMEnsemble
from .gem_search import GEMClassifierCV
from .ldg import LDG
from .logistic import MultinomialLogit
from .maxmargin import Autoencoder, MaxMarginShift, MulticlassSVM
from .moments import ClassMoments
from .pairs import class_pairs, confusion_pairs, confusion_pairs_from
from .pencils import (
    PairDirections,
    PencilResult,
    SingularDenominatorError,
    Status,
    generalized_eigh,
    pair_directions,
)
from .persist import FileFormatError
from .rayleigh import OrientedPCA, RayleighPCA, VanishingComponents
from .saving import load, save
from .tables import BadRowError, FileRows, open_rows
from .targets import discretize_target, target_groups
from .trust_region import BallMinimum, SignCertificate, certified_sign, trust_region_minimum

try:
    __version__ = version("eigenfeat")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0"

__all__ = [
    "GEM",
    "LDG",
    "ArrayBlocks",
    "Autoencoder",
    "BadRowError",
    "BallMinimum",
    "Block",
    "CalibratedLeastSquares",
    "ClassMoments",
    "Contrasts",
    "ExpandedRows",
    "FileFormatError",
    "FileRows",
    "FisherLDA",
    "GEMClassifier",
    "GEMClassifierCV",
    "GEMEnsemble",
    "GeneratedBlocks",
    "MaxMarginShift",
    "MulticlassSVM",
    "MultinomialLogit",
    "OrientedPCA",
    "PairDirections",
    "PencilResult",
    "RayleighPCA",
    "RowBlocks",
    "SignCertificate",
    "SingularDenominatorError",
    "SlicedInverseRegression",
    "Status",
    "VanishingComponents",
    "__version__",
    "certified_sign",
    "class_pairs",
    "class_tree",
    "confusion_pairs",
    "confusion_pairs_from",
    "discretize_target",
    "generalized_eigh",
    "load",
    "one_vs_rest",
    "open_rows",
    "pair_directions",
    "save",
    "target_groups",
    "trust_region_minimum",
]
