"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

from importlib.metadata import PackageNotFoundError, version

from . import _blas  # noqa: F401  (first: what follows needs the core)
from .gem import GEM
from .moments import ClassMoments
from .pairs import class_pairs
from .pencils import (
    PairDirections,
    PencilResult,
    SingularDenominatorError,
    Status,
    generalized_eigh,
    pair_directions,
)
from .persist import FileFormatError

try:
    __version__ = version("eigenfeat")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0"

__all__ = [
    "GEM",
    "ClassMoments",
    "FileFormatError",
    "PairDirections",
    "PencilResult",
    "SingularDenominatorError",
    "Status",
    "__version__",
    "class_pairs",
    "generalized_eigh",
    "pair_directions",
]
