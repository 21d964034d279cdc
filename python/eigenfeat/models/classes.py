"""The classes that files may hold: this package's, and some of scikit-learn's that ours are given.

No file names a module or a class to import: names are looked up here and nowhere else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat._base.files.stored import Stored, fits, held
from eigenfeat._base.files.values import Registry
from eigenfeat._base.lazy import Lazy
from eigenfeat.expansion.layers import LAYER
from eigenfeat.gem.class_components import ClassComponents
from eigenfeat.gem.classifier import CLASSIFIER
from eigenfeat.gem.ensemble import ENSEMBLE
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.patches import GEMPatches
from eigenfeat.gem.regressor import GEMRegressor
from eigenfeat.gem.search import GEMClassifierCV
from eigenfeat.gem.spatial_filters import SpatialFilters
from eigenfeat.gem.wide import WideSolution
from eigenfeat.gem.wide_directions import WIDE_DIRECTIONS, WideDirections
from eigenfeat.incomplete.stored import STORED as OF_INCOMPLETE
from eigenfeat.ldg.stored import STORED as OF_LDG
from eigenfeat.linear.stored import LOGIT, check_linear
from eigenfeat.linear.stored import STORED as OF_LINEAR
from eigenfeat.maxmargin import Autoencoder, MaxMarginPCA, MaxMarginShift, MulticlassSVM
from eigenfeat.models.sklearn_values import SKLEARN, build_neighbours, pack_neighbours
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.rayleigh_matrices import RayleighDirections
from eigenfeat.pencils.solution import Solution
from eigenfeat.pencils.stored import SOLUTION
from eigenfeat.pencils.stored import STORED as OF_PENCILS
from eigenfeat.rayleigh.discriminant import FisherLDA, SlicedInverseRegression
from eigenfeat.rayleigh.quadratic import ClassGaussians, QuadraticDiscriminant
from eigenfeat.rayleigh.rayleigh import OrientedPCA, RayleighPCA, VanishingComponents
from eigenfeat.rows.completion import COMPLETION

__all__ = ["OURS", "REGISTRY"]


# ---- checks --------------------------------------------------------------------------------------


def _check_gem(value: GEM) -> None:
    """Rows of a huge dimension leave a solution without moments."""
    if hasattr(value, "moments_"):
        _check_directions(value)
        return
    found: Any = value._solution()
    shape = (value.n_features_in_, len(found.offset))
    fits(type(found) is WideSolution and found.directions.shape == shape, "GEM._solution")


def _check_patches(value: GEMPatches) -> None:
    what, grid, cells = "GEMPatches", value.grid_shape_, value.cells_
    for name, axis in (("grid_shape_", grid), ("cells_", cells)):
        sound = type(axis) is tuple and len(axis) == len(grid) in (1, 2)
        fits(sound and all(type(n) is int and n > 0 for n in axis), f"{what}.{name}")
    fits(value.n_features_in_ == np.prod(grid) * value.n_channels_, f"{what}.n_features_in_")
    places = value._places()
    fits(all(c <= n for c, n in zip(cells, places, strict=True)), f"{what}.cells_")
    size = int(np.prod(value._patch())) * value.n_channels_
    fits(value.moments_.n_features_in_ == size, f"{what}.moments_")
    fits(getattr(value, "gem_", value.moments_).n_features_in_ == size, f"{what}.gem_")


def _check_wide(value: WideSolution) -> None:
    fits(isinstance(value.directions, (np.ndarray, WideDirections)), "WideSolution.directions")


def _check_directions(value: Any) -> None:
    """A solution that is not there is solved for again from the moments when asked."""
    fits(value.moments_.n_features_in_ == value.n_features_in_, f"{type(value).__name__}.moments_")
    if value._solution.is_ready:
        found = value._solution()
        kind = Solution if isinstance(value, GEM) else RayleighDirections
        fits(type(found) is kind, f"{type(value).__name__}._solution")
        fits(len(found.directions) == value.n_features_in_, f"{type(value).__name__}._solution")
    else:
        value._hold(value.moments_)


def _check_quadratic(value: QuadraticDiscriminant) -> None:
    """Gaussians that are not there are computed again from the moments when asked."""
    d = value.n_features_in_
    fits(value.moments_.n_features_in_ == d, "QuadraticDiscriminant.moments_")
    if not value._solution.is_ready:
        value._hold(value.moments_)
        return
    found, shape = value._solution(), (len(value.classes_), d, d)
    fits(type(found) is ClassGaussians, "QuadraticDiscriminant._solution")
    fits(found.whiteners.shape == shape, "QuadraticDiscriminant._solution")


# ---- classes that are more than their attributes -------------------------------------------------


def _pack_moments(value: ClassMoments) -> dict[str, Any]:
    with value._lock:
        return {"meta": value._meta(), "arrays": dict(value._arrays())}


def _build_moments(state: dict[str, Any]) -> ClassMoments:
    return ClassMoments._restored(state["meta"], held(state["arrays"]))


def _pack_lazy(value: Lazy[Any]) -> dict[str, Any]:
    try:
        return {"value": value()}
    except (ValueError, ArithmeticError):  # as it would be when asked for
        return {}


def _build_lazy(state: dict[str, Any]) -> Lazy[Any]:
    made: Lazy[Any] = Lazy(lambda: state["value"])
    if state:
        made()
    return made


# ---- the table -----------------------------------------------------------------------------------

_MOMENTS = {"moments_": "of ClassMoments", "_solution": "of Lazy", "n_features_in_": "count"} | {
    "completion_": "of GaussianRows?"
}
_GAUSSIANS = {
    "log_priors": "floats k",
    "means": "numbers k d",
    "whiteners": "numbers k d d",
    "log_whiteners": "numbers k",
    "shrinkage": "numbers k",
}
_GEM = _MOMENTS | {
    "moments_": "of ClassMoments?",
    "classes_": "labels k",
    "_seed": "count",
    "_trial": "of ScaleReport?",
    "residuals_": "numbers F?",
}
_REGRESSOR = {
    "n_features_in_": "count",
    "directions_": "numbers d F",
    "offset_": "numbers F",
    "coef_": "value",
    "intercept_": "value",
    "penalty_": "number",
    "loo_error_": "number",
    "_one_output": "value",
}
_FILTERS = {
    "moments_": "of ClassMoments",
    "_coarse": "value",
    "rank_": "count",
    **dict.fromkeys(("filters_", "patterns_"), "numbers F d"),
    **{"evals_": "floats F", "pairs_": "labels F 2"},
    **{"classes_": "labels k", "n_channels_": "count"},
}
_PATCHES = {
    "gem_": "of GEM?",
    "moments_": "of ClassMoments",
    "grid_shape_": "value",
    "cells_": "value",
    "n_channels_": "count",
    "n_features_in_": "count",
    "classes_": "labels k",
}
_AUTOENCODER = {
    "minimum_": "numbers d",
    "span_": "numbers d",
    "encoder_": "numbers h d",
    "encoder_bias_": "numbers h",
    "decoder_": "numbers d h",
    "decoder_bias_": "numbers d",
}
_UNITS = {"column_mean_": "numbers d", "column_scale_": "numbers d"}
_MAX_MARGIN_PCA = {"components_": "numbers h d", "mean_": "numbers d", "svm_": "value?"} | _UNITS
_RAYLEIGH = (FisherLDA, SlicedInverseRegression, RayleighPCA, VanishingComponents, OrientedPCA)

_OURS = (
    *OF_PENCILS,
    *OF_LINEAR,
    LAYER,
    WIDE_DIRECTIONS,
    CLASSIFIER,
    COMPLETION,
    ENSEMBLE,
    Stored("ClassMoments", ClassMoments, pack=_pack_moments, build=_build_moments),
    Stored("Lazy", Lazy, pack=_pack_lazy, build=_build_lazy),
    Stored("GEM", GEM, _GEM, _check_gem),
    Stored("ClassComponents", ClassComponents, _GEM, _check_directions),
    *(Stored(kind.__name__, kind, _MOMENTS, _check_directions) for kind in _RAYLEIGH),
    Stored("QuadraticDiscriminant", QuadraticDiscriminant, _MOMENTS, _check_quadratic),
    Stored("ClassGaussians", ClassGaussians, _GAUSSIANS),
    Stored("SpatialFilters", SpatialFilters, _FILTERS),
    Stored("GEMPatches", GEMPatches, _PATCHES, _check_patches),
    Stored("GEMRegressor", GEMRegressor, _REGRESSOR),
    Stored("GEMClassifierCV", GEMClassifierCV, {"best_estimator_": "value?"}),
    Stored(
        "MulticlassSVM",
        MulticlassSVM,
        LOGIT | {"class_coef_": "numbers k d"},
        check_linear,
    ),
    Stored("MaxMarginShift", MaxMarginShift, {"extractor_": "value", "svm_": "value?"} | _UNITS),
    Stored("MaxMarginPCA", MaxMarginPCA, _MAX_MARGIN_PCA),
    Stored("Autoencoder", Autoencoder, _AUTOENCODER),
    Stored(
        "WideSolution",
        WideSolution,
        SOLUTION | {"directions": "value", "residuals": "numbers F", "steps": "count"},
        _check_wide,
    ),
    Stored(
        "KNeighborsClassifier",
        KNeighborsClassifier,
        pack=pack_neighbours,
        build=build_neighbours,
    ),
)

OURS = (*_OURS, *OF_LDG, *OF_INCOMPLETE)
REGISTRY = Registry((*OURS, *SKLEARN))
