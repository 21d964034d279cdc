"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

TYPE_CHECKING = False  # but for type checkers, which know the name: typing takes time to import

if TYPE_CHECKING:
    from ._base.files.persist import FileFormatError
    from ._base.versions import show_versions
    from .expansion.features import ExpandedRows
    from .gem.class_components import ClassComponents
    from .gem.classifier import GEMClassifier
    from .gem.ensemble import GEMEnsemble
    from .gem.gem import GEM
    from .gem.patches import GEMPatches
    from .gem.regressor import GEMRegressor
    from .gem.search import GEMClassifierCV
    from .gem.spatial_filters import SpatialFilters
    from .ldg import LDG
    from .linear.calibrated import CalibratedLeastSquares
    from .linear.logistic import MultinomialLogit
    from .maxmargin import Autoencoder, MaxMarginPCA, MaxMarginShift, MulticlassSVM
    from .models.saving import load, save
    from .moments.class_moments import ClassMoments
    from .pencils.contrasts import Contrasts, class_tree, one_vs_rest
    from .pencils.pairs import class_pairs, confusion_pairs, confusion_pairs_from
    from .pencils.pencils import (
        PairDirections,
        PencilResult,
        SingularDenominatorError,
        Status,
        generalized_eigh,
        pair_directions,
    )
    from .rayleigh.discriminant import FisherLDA, SlicedInverseRegression
    from .rayleigh.rayleigh import OrientedPCA, RayleighPCA, VanishingComponents
    from .regions.trust_region import (
        BallMinimum,
        SignCertificate,
        certified_sign,
        trust_region_minimum,
    )
    from .rows.blocks import ArrayBlocks, Block, GeneratedBlocks, RowBlocks
    from .rows.targets import discretize_target, supervised_contractions, target_groups
    from .tables import BadRowError, FileRows, open_rows

    __version__: str

# What is public is imported when it is first asked for: libraries below take a second or more.
_HOMES = {
    "rows.blocks": ("ArrayBlocks", "Block", "GeneratedBlocks", "RowBlocks"),
    "linear.calibrated": ("CalibratedLeastSquares",),
    "gem.class_components": ("ClassComponents",),
    "pencils.contrasts": ("Contrasts", "class_tree", "one_vs_rest"),
    "rayleigh.discriminant": ("FisherLDA", "SlicedInverseRegression"),
    "expansion.features": ("ExpandedRows",),
    "gem.gem": ("GEM",),
    "gem.classifier": ("GEMClassifier",),
    "gem.ensemble": ("GEMEnsemble",),
    "gem.patches": ("GEMPatches",),
    "gem.regressor": ("GEMRegressor",),
    "gem.search": ("GEMClassifierCV",),
    "ldg": ("LDG",),
    "linear.logistic": ("MultinomialLogit",),
    "maxmargin": ("Autoencoder", "MaxMarginPCA", "MaxMarginShift", "MulticlassSVM"),
    "moments.class_moments": ("ClassMoments",),
    "pencils.pairs": ("class_pairs", "confusion_pairs", "confusion_pairs_from"),
    "pencils.pencils": (
        "PairDirections",
        "PencilResult",
        "SingularDenominatorError",
        "Status",
        "generalized_eigh",
        "pair_directions",
    ),
    "_base.files.persist": ("FileFormatError",),
    "rayleigh.rayleigh": ("OrientedPCA", "RayleighPCA", "VanishingComponents"),
    "models.saving": ("load", "save"),
    "gem.spatial_filters": ("SpatialFilters",),
    "tables": ("BadRowError", "FileRows", "open_rows"),
    "rows.targets": ("discretize_target", "supervised_contractions", "target_groups"),
    "regions.trust_region": (
        "BallMinimum",
        "SignCertificate",
        "certified_sign",
        "trust_region_minimum",
    ),
    "_base.versions": ("show_versions",),
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
    "GEMPatches",
    "GEMRegressor",
    "GeneratedBlocks",
    "MaxMarginPCA",
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
            return import_module(f"{__name__}._base.core").core
        if name == "__version__":
            value = import_module(f"{__name__}._base.version").version()
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
