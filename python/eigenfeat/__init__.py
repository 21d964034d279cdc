"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

TYPE_CHECKING = False  # but for type checkers, which know the name: typing takes time to import

if TYPE_CHECKING:
    from ._versions import show_versions
    from .blocks import ArrayBlocks, Block, GeneratedBlocks, RowBlocks
    from .calibrated import CalibratedLeastSquares
    from .class_components import ClassComponents
    from .contrasts import Contrasts, class_tree, one_vs_rest
    from .discriminant import FisherLDA, SlicedInverseRegression
    from .features import ExpandedRows
    from .gem import GEM
    from .gem_classifier import GEMClassifier
    from .gem_ensemble import GEMEnsemble
    from .gem_regressor import GEMRegressor
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
    from .spatial_filters import SpatialFilters
    from .tables import BadRowError, FileRows, open_rows
    from .targets import discretize_target, supervised_contractions, target_groups
    from .trust_region import BallMinimum, SignCertificate, certified_sign, trust_region_minimum

    __version__: str

# What is public is imported when it is first asked for: libraries below take a second or more.
_HOMES = {
    "blocks": ("ArrayBlocks", "Block", "GeneratedBlocks", "RowBlocks"),
    "calibrated": ("CalibratedLeastSquares",),
    "class_components": ("ClassComponents",),
    "contrasts": ("Contrasts", "class_tree", "one_vs_rest"),
    "discriminant": ("FisherLDA", "SlicedInverseRegression"),
    "features": ("ExpandedRows",),
    "gem": ("GEM",),
    "gem_classifier": ("GEMClassifier",),
    "gem_ensemble": ("GEMEnsemble",),
    "gem_regressor": ("GEMRegressor",),
    "gem_search": ("GEMClassifierCV",),
    "ldg": ("LDG",),
    "logistic": ("MultinomialLogit",),
    "maxmargin": ("Autoencoder", "MaxMarginShift", "MulticlassSVM"),
    "moments": ("ClassMoments",),
    "pairs": ("class_pairs", "confusion_pairs", "confusion_pairs_from"),
    "pencils": (
        "PairDirections",
        "PencilResult",
        "SingularDenominatorError",
        "Status",
        "generalized_eigh",
        "pair_directions",
    ),
    "persist": ("FileFormatError",),
    "rayleigh": ("OrientedPCA", "RayleighPCA", "VanishingComponents"),
    "saving": ("load", "save"),
    "spatial_filters": ("SpatialFilters",),
    "tables": ("BadRowError", "FileRows", "open_rows"),
    "targets": ("discretize_target", "supervised_contractions", "target_groups"),
    "trust_region": ("BallMinimum", "SignCertificate", "certified_sign", "trust_region_minimum"),
    "_versions": ("show_versions",),
}

__all__ = [
    "GEM",
    "LDG",
    "ArrayBlocks",
    "Autoencoder",
    "BadRowError",
    "BallMinimum",
    "Block",
    "CalibratedLeastSquares",
    "ClassComponents",
    "ClassMoments",
    "Contrasts",
    "ExpandedRows",
    "FileFormatError",
    "FileRows",
    "FisherLDA",
    "GEMClassifier",
    "GEMClassifierCV",
    "GEMEnsemble",
    "GEMRegressor",
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
    "SpatialFilters",
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
    "show_versions",
    "supervised_contractions",
    "target_groups",
    "trust_region_minimum",
]

if not TYPE_CHECKING:

    def __getattr__(name):
        from importlib import import_module

        if name == "_core":  # before all that needs it
            return import_module(f"{__name__}._blas").load_core()
        if name == "__version__":
            value = import_module(f"{__name__}._version").version()
        elif home := next((home for home, names in _HOMES.items() if name in names), None):
            value = getattr(import_module(f"{__name__}.{home}"), name)
        elif name.startswith("_"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        else:
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
