"""The classes that files may hold: this package's, and some of scikit-learn's that ours are given.

No file names a module or a class to import: names are looked up here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat._base.lazy import Lazy
from eigenfeat.gem.class_components import ClassComponents
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.ensemble import GEMEnsemble
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.model_file import SavedEnsemble, SavedModel, jsonable, plain_parameters
from eigenfeat.gem.patches import GEMPatches
from eigenfeat.gem.regressor import GEMRegressor
from eigenfeat.gem.search import GEMClassifierCV
from eigenfeat.gem.spatial_filters import SpatialFilters
from eigenfeat.gem.wide import WideSolution
from eigenfeat.gem.wide_directions import WideDirections
from eigenfeat.incomplete.stored import STORED as OF_INCOMPLETE
from eigenfeat.ldg.stored import STORED as OF_LDG
from eigenfeat.linear.calibrated import CalibratedLeastSquares, Calibration
from eigenfeat.linear.logistic import MultinomialLogit
from eigenfeat.maxmargin import Autoencoder, MaxMarginShift, MulticlassSVM
from eigenfeat.models.sklearn_values import SKLEARN, build_neighbours, pack_neighbours
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.contrasts import Contraction, Contrasts
from eigenfeat.pencils.eigh import PencilResult, Status
from eigenfeat.pencils.pencils import PairDirections
from eigenfeat.pencils.rayleigh_matrices import Directions
from eigenfeat.pencils.scale import ScaleReport
from eigenfeat.pencils.solution import Solution
from eigenfeat.rayleigh.discriminant import FisherLDA, SlicedInverseRegression
from eigenfeat.rayleigh.rayleigh import OrientedPCA, RayleighPCA, VanishingComponents

__all__ = ["OURS", "REGISTRY"]


# ---- checks --------------------------------------------------------------------------------------


def _check_linear(value: Any) -> None:
    k = len(value.classes_)
    fits(k >= 2 and len(value.coef_) == (1 if k == 2 else k), f"{type(value).__name__}.coef_")


def _check_calibrated(value: CalibratedLeastSquares) -> None:
    _check_linear(value)
    k, weights = len(value.classes_), value.calibration_.weights
    sound = len(value.calibration_.low) == k == weights.shape[1] and len(weights) % k == 1 % k
    fits(sound, "CalibratedLeastSquares.calibration_")


def _check_contraction(value: Contraction) -> None:
    fits((value.indices >= 0).all() and (value.weights >= 0).all(), "Contraction.weights")


def _check_contrasts(value: Contrasts) -> None:
    fits(len(value.above) == len(value.below) == len(value.names), "Contrasts.names")


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


def _pack_wide(value: WideDirections) -> dict[str, Any]:
    return {"meta": value.meta(), "arrays": dict(value.arrays())}


def _build_wide(state: dict[str, Any]) -> WideDirections:
    return WideDirections.of_parts(state["meta"], _held(state["arrays"]))


def _check_directions(value: Any) -> None:
    """A solution that is not there is solved for again from the moments when asked."""
    fits(value.moments_.n_features_in_ == value.n_features_in_, f"{type(value).__name__}.moments_")
    if value._solution.is_ready:
        found = value._solution()
        kind = Solution if isinstance(value, GEM) else Directions
        fits(type(found) is kind, f"{type(value).__name__}._solution")
        fits(len(found.directions) == value.n_features_in_, f"{type(value).__name__}._solution")
    else:
        value._hold(value.moments_)


# ---- classes that are more than their attributes -------------------------------------------------


def _held(arrays: dict[str, NDArray[Any]]) -> Callable[..., NDArray[Any]]:
    """Arrays by name, as an open file gives them."""

    def array(name: str, shape: tuple[int, ...], dtype: str = "<f8") -> NDArray[Any]:
        found = arrays[name]
        fits(found.shape == tuple(shape) and found.dtype.str == dtype, f"array {name}")
        return found

    return array


def _pack_moments(value: ClassMoments) -> dict[str, Any]:
    with value._lock:
        return {"meta": value._meta(), "arrays": dict(value._arrays())}


def _build_moments(state: dict[str, Any]) -> ClassMoments:
    return ClassMoments._restored(state["meta"], _held(state["arrays"]))


def _pack_model(value: GEMClassifier | GEMEnsemble) -> dict[str, Any]:
    own = value.get_params(deep=False)
    inner = {"estimator": own.pop("estimator")} if isinstance(value, GEMEnsemble) else {}
    if not (hasattr(value, "layers_") or hasattr(value, "members_")):
        return {"parameters": jsonable(own)} | inner
    if isinstance(value, GEMEnsemble) and value._has_pipelines():
        return {"parameters": jsonable(own), "members": value.members_} | inner
    saved = value._saved()
    return {"meta": saved.meta(), "arrays": dict(saved.arrays())}


def _build_classifier(state: dict[str, Any]) -> GEMClassifier:
    names = GEMClassifier._get_param_names()
    if "meta" not in state:
        return GEMClassifier(**plain_parameters(state["parameters"], names))
    return GEMClassifier._restored(SavedModel.of(state["meta"], _held(state["arrays"]), names))


def _build_ensemble(state: dict[str, Any]) -> GEMEnsemble:
    own = GEMEnsemble._own_names()
    if "meta" not in state:
        parameters = plain_parameters(state["parameters"], own)
        model = GEMEnsemble(estimator=state["estimator"], **parameters)
        return model._adopt(_pipelines(state["members"])) if "members" in state else model
    names = GEMClassifier._get_param_names()
    saved = SavedEnsemble.of(state["meta"], _held(state["arrays"]), own, names)
    return GEMEnsemble._restored(saved)


def _pipelines(members: Any) -> list[Pipeline]:
    """Members of an ensemble: fitted pipelines with the same labels and columns."""
    what = "GEMEnsemble.members_"
    fits(type(members) is list and members, what)
    fits(all(type(one) is Pipeline and type(one[-1]) is GEMClassifier for one in members), what)
    fits(len({(*one.classes_.tolist(), one.n_features_in_) for one in members}) == 1, what)
    return members


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

_MOMENTS = {"moments_": "of ClassMoments", "_solution": "of Lazy", "n_features_in_": "count"}
_GEM = _MOMENTS | {
    "moments_": "of ClassMoments?",
    "classes_": "labels k",
    "_seed": "count",
    "_trial": "of ScaleReport?",
    "residuals_": "numbers F?",
}
_LOGIT = {"classes_": "labels k", "coef_": "numbers q d", "intercept_": "numbers q"}
_SOLUTION = {
    "directions": "numbers d F",
    "offset": "numbers F",
    "eigenvalues": "floats F",
    "pairs": "labels F 2",
    "ranks": "whole F",
    "scale": "of ScaleReport",
}
_REPORT = {
    "choice": "text",
    "basis": "text",
    "column_scale": "floats *",
    "errors": "value",
    "n_rows": "count",
    "spread": "value",
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
_PAIRS = {
    "vectors": "floats d F",
    "eigenvalues": "floats F",
    "pairs": "labels F 2",
    "ranks": "whole F",
    "residuals": "floats F",
    "offset": "floats F?",
    "solved_pairs": "labels P 2",
    "status": "whole P",
    "iterations": "whole P",
    "solver": "labels P",
}
_CALIBRATION = {
    "low": "numbers k",
    "high": "numbers k",
    "weights": "numbers * k",
    "middle": "numbers k",
    "slope": "numbers k",
}
_DIRECTIONS = {
    "directions": "numbers d m",
    "eigenvalues": "floats m",
    "mean": "numbers d",
    "column_scale": "floats d",
}
_CONTRASTS = {
    "above": "many Contraction",
    "below": "many Contraction",
    "names": "labels p 2",
    "classes": "value?",
    "n_classes": "count?",
}
_RAYLEIGH = (FisherLDA, SlicedInverseRegression, RayleighPCA, VanishingComponents, OrientedPCA)

_OURS = (
    Stored("ClassMoments", ClassMoments, pack=_pack_moments, build=_build_moments),
    Stored("GEMClassifier", GEMClassifier, pack=_pack_model, build=_build_classifier),
    Stored("GEMEnsemble", GEMEnsemble, pack=_pack_model, build=_build_ensemble),
    Stored("Lazy", Lazy, pack=_pack_lazy, build=_build_lazy),
    Stored(
        "Status",
        Status,
        pack=lambda value: {"value": int(value)},
        build=lambda state: Status(state["value"]),
    ),
    Stored("GEM", GEM, _GEM, _check_gem),
    Stored("ClassComponents", ClassComponents, _GEM, _check_directions),
    *(Stored(kind.__name__, kind, _MOMENTS, _check_directions) for kind in _RAYLEIGH),
    Stored("SpatialFilters", SpatialFilters, _FILTERS),
    Stored("GEMPatches", GEMPatches, _PATCHES, _check_patches),
    Stored("GEMRegressor", GEMRegressor, _REGRESSOR),
    Stored("GEMClassifierCV", GEMClassifierCV, {"best_estimator_": "value?"}),
    Stored("MultinomialLogit", MultinomialLogit, _LOGIT, _check_linear),
    Stored(
        "CalibratedLeastSquares",
        CalibratedLeastSquares,
        _LOGIT | {"calibration_": "of Calibration"},
        _check_calibrated,
    ),
    Stored(
        "MulticlassSVM",
        MulticlassSVM,
        _LOGIT | {"class_coef_": "numbers k d"},
        _check_linear,
    ),
    Stored("MaxMarginShift", MaxMarginShift, {"extractor_": "value", "svm_": "value?"}),
    Stored("Autoencoder", Autoencoder, _AUTOENCODER),
    Stored("Calibration", Calibration, _CALIBRATION),
    Stored("Contrasts", Contrasts, _CONTRASTS, _check_contrasts),
    Stored(
        "Contraction",
        Contraction,
        {"indices": "whole n", "weights": "numbers n", "others": "number"},
        _check_contraction,
    ),
    Stored("Directions", Directions, _DIRECTIONS),
    Stored("Solution", Solution, _SOLUTION),
    Stored(
        "WideSolution",
        WideSolution,
        _SOLUTION | {"directions": "value", "residuals": "numbers F", "steps": "count"},
        _check_wide,
    ),
    Stored("WideDirections", WideDirections, pack=_pack_wide, build=_build_wide),
    Stored("ScaleReport", ScaleReport, _REPORT),
    Stored("PairDirections", PairDirections, _PAIRS),
    Stored(
        "PencilResult",
        PencilResult,
        dict.fromkeys(PencilResult.__dataclass_fields__, "value"),
    ),
    Stored(
        "KNeighborsClassifier",
        KNeighborsClassifier,
        pack=pack_neighbours,
        build=build_neighbours,
    ),
)


class _Registry:
    def __init__(self, stored: tuple[Stored, ...]) -> None:
        self._by_class = {one.cls: one for one in stored}
        self._by_name = {one.name: one for one in stored}
        assert len(self._by_class) == len(self._by_name) == len(stored)

    def of(self, value: object) -> Stored | None:
        return self._by_class.get(type(value))

    def named(self, name: str) -> Stored | None:
        return self._by_name.get(name)


OURS = (*_OURS, *OF_LDG, *OF_INCOMPLETE)
REGISTRY = _Registry((*OURS, *SKLEARN))
