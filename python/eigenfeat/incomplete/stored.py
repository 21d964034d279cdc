"""State of completions, rules and classifiers of incomplete rows that files store."""

from __future__ import annotations

from typing import Any

import numpy as np

from eigenfeat._base.files.stored import Stored, fits
from eigenfeat.incomplete._classifiers.class_nearest import ClassNearest
from eigenfeat.incomplete._classifiers.discriminants import (
    Gaussians,
    Linear,
    Local,
    LocalMeans,
    Opaque,
    Quadratic,
)
from eigenfeat.incomplete._classifiers.local_qda import LocalQDA
from eigenfeat.incomplete._completion.affine import Affine
from eigenfeat.incomplete._completion.mixture import GaussianMixture
from eigenfeat.incomplete._completion.models import GaussianCompletion, MixtureCompletion
from eigenfeat.incomplete._completion.patterns import PatternCache
from eigenfeat.incomplete._completion.sets import BoxSet, ChebyshevSet, MahalanobisSet, QuadraticSet
from eigenfeat.incomplete._early.costs import MinimumCostClassifier
from eigenfeat.incomplete._early.ects import ECTS
from eigenfeat.incomplete._early.fixed_time import FixedTime
from eigenfeat.incomplete._early.sprt import SPRT
from eigenfeat.incomplete._early.waiting import Policy, Regression
from eigenfeat.incomplete._rules.calibration import Calibration
from eigenfeat.incomplete._rules.correction import CorrectedRule, Correction
from eigenfeat.incomplete._rules.fitted import Fitted
from eigenfeat.incomplete._rules.ideal import ClassCodes, IdealRule
from eigenfeat.incomplete._rules.learned import LearnedRule, ThresholdRule, Thresholds
from eigenfeat.incomplete._rules.pairwise import PairwiseRule
from eigenfeat.incomplete._rules.sampled import SampledRule
from eigenfeat.incomplete._rules.set_rule import SetRule
from eigenfeat.incomplete._series.layout import Layout
from eigenfeat.incomplete.decision import ReliableClassifier
from eigenfeat.incomplete.search import ReliableClassifierCV

__all__ = ["STORED"]


def _pack_local(value: LocalQDA) -> dict[str, Any]:
    """Rows and their classes, however the estimator keeps them."""
    state = {name: part for name, part in vars(value).items() if name not in _LOCAL_INSIDE}
    if "classes_" in state:
        state |= {"rows": value._rows, "codes": value._codes, "floor": value._floor}
    return state


def _build_local(state: dict[str, Any]) -> LocalQDA:
    own = {name: part for name, part in state.items() if name not in ("rows", "codes", "floor")}
    value: LocalQDA = _PLAIN_LOCAL.restored(own)
    if "classes_" in own:
        rows, codes, floor = state["rows"], state["codes"], state["floor"]
        k, n = len(value.classes_), len(codes)
        sound = rows.dtype == np.float64 and np.isfinite(rows).all() and codes.dtype.kind == "i"
        fits(sound and rows.shape == (n, value.n_features_in_), "LocalQDA rows")
        inside = codes.shape == (n,) and n > 0 and codes.min() >= 0 and codes.max() < k
        fits(inside and np.bincount(codes, minlength=k).min() >= 1, "LocalQDA codes")
        fits(type(floor) is float and 0 < floor < np.inf, "LocalQDA floor")
        value._floor, value._rows, value._codes = floor, rows, codes
        value._threads = value.n_threads
    return value


def _check_local(value: LocalQDA) -> None:
    fits(value.n_neighbors_ >= 1, "LocalQDA.n_neighbors_")


def _check_ects(value: ECTS) -> None:
    codes, k = value._codes, len(value.classes_)
    fits(len(codes) and codes.min() >= 0 and codes.max() < k and value._unit > 0, "ECTS._codes")


def _check_completion(value: Any) -> None:
    fits(value.mixture_.means.shape[1] == value.n_features_in_, "completion.mixture_")


def _check_mixture(value: GaussianMixture) -> None:
    fits(len(value.weights) and value.weights.min() >= 0, "GaussianMixture.weights")


def _with_mixture(state: dict[str, Any]) -> dict[str, Any]:
    """Of files that had the parts of the mixture one by one."""
    if "_weights" not in state:
        return state
    parts: dict[str, Any] = {name: state.get(f"_{name}") for name in _MIXTURE}
    mixture = GaussianMixture(**parts)
    _MIXTURE_ENTRY.check_parts(mixture)
    _check_mixture(mixture)
    return {k: v for k, v in state.items() if k[1:] not in parts} | {"mixture_": mixture}


def _check_labels(value: Any) -> None:
    fits(len(value.labels) and value.labels.min() >= 0, "discriminants.labels")


def _check_fixed_time(value: FixedTime) -> None:
    fits(1 <= value.time_ <= value.n_features_in_, "FixedTime.time_")


def _check_pairwise(value: PairwiseRule) -> None:
    fits(value.tail in ("chernoff", "davies", "saddlepoint"), "PairwiseRule.tail")


def _check_sampling(value: IdealRule | SampledRule) -> None:
    n = value.n_samples
    sound = 2 <= n <= 2**24 and n & (n - 1) == 0 and 0 < value.risk < 1
    fits(sound, type(value).__name__)


def _check_learned(value: LearnedRule) -> None:
    weights = value.weights
    fits(len(weights) in (1, 8) and not np.isnan(weights).any(), "LearnedRule.weights")


def _check_critical(value: Thresholds) -> None:
    critical = value.critical
    sound = np.all(np.diff(critical) >= 0) and (not len(critical) or critical[0] >= 0)
    fits(sound and 0 <= value.confidence < 1, "Thresholds")


def _check_correction(value: Correction) -> None:
    tau, since = value.tau, value.since
    sound = len(tau) > 0 and tau[0] > 0 and tau[-1] < 1 and np.all(np.diff(tau) > 0)
    fits(sound and np.all(np.diff(since, axis=1) >= 0), "Correction")
    fits(not since.size or (since.min() >= 0 and since.max() <= value.length), "Correction.since")
    fits(value.length >= 1 and 0 <= value.confidence < 1, "Correction")


def _check_layout(value: Layout) -> None:
    fits(value.channels >= 1 and value.length >= 1 and type(value.held) is bool, "Layout")


def _width(found: Any) -> int:
    if isinstance(found, Local | LocalMeans):
        return int(found.model.n_features_in_)
    rows = found.slopes if isinstance(found, Linear) else found.means
    return int(rows.shape[-1])


def _check_fitted(value: Fitted) -> None:
    d, found = value.layout.width, value.discriminants
    affine, scores, rule = value.affine, value.scores, value.rule
    width = d if affine is None else affine.B.shape[1]
    fits(not isinstance(rule, CorrectedRule) or rule.correction.length == d, "Fitted.rule")
    fits(affine is None or affine.B.shape[0] == d, "Fitted.affine")
    fits(isinstance(found, Opaque) or _width(found) == width, "Fitted.discriminants")
    fits(found.labels.max() < len(value.classes), "Fitted.discriminants")
    fits(scores is None or scores.B.shape == (d, found.count), "Fitted.scores")
    fits(value.completion.n_features_in_ == d, "Fitted.completion")
    fits(np.array_equal(value.classifier.classes_, value.classes), "Fitted.classifier")


def _check_reliable(value: ReliableClassifier) -> None:
    layout = value.fitted_.layout
    fits(value.n_features_in_ == layout.width, "Layout")
    fits((value.n_channels_, value.n_timepoints_) == (layout.channels, layout.length), "Layout")
    fits(np.array_equal(value.classes_, value.fitted_.classes), "ReliableClassifier.classes_")


def _upgraded(state: dict[str, Any]) -> dict[str, Any]:
    """Of files of version 1, which had the parts one by one."""
    if "_rule" not in state:
        return state
    state = dict(state)
    rows = Layout(1, state["n_features_in_"], True)  # of files from before there were series
    layout = state.pop("_layout", rows)
    parts = {name: state.pop(f"_{name}") for name in ("affine", "scores", "discriminants", "rule")}
    core = Fitted(
        layout=layout,
        classes=state["classes_"],
        classifier=state["classifier_"],
        completion=state["completion_"],
        features=state["features_"],
        set=state["set_"],
        n_threads=state.get("n_threads"),
        **parts,
    )
    _FITTED_ENTRY.check_parts(core)
    told = {"n_channels_": layout.channels, "n_timepoints_": layout.length}
    return told | state | {"fitted_": core}


def _check_minimum_cost(value: MinimumCostClassifier) -> None:
    p, k, policy = len(value.times_), len(value.classes_), value._policy
    fits(len(value.classifiers_) == p, "MinimumCostClassifier.classifiers_")
    fits(value.costs_.shape == (p, k, k), "MinimumCostClassifier.costs_")
    fits(value.times_[-1] == value.n_features_in_, "MinimumCostClassifier.times_")
    sound = len(policy.fitted) == len(policy.regressions) == p - 1
    fits(sound, "MinimumCostClassifier._policy")
    for one, (coefficients, _) in zip(policy.regressions, policy.fitted, strict=True):
        fits(one.known.shape == (len(coefficients), k + 2), "MinimumCostClassifier._policy")


def _check_sprt(value: SPRT) -> None:
    fits(len(value.classes_) == 2 and np.all(value.variances_ > 0), "SPRT.variances_")


def _check_class_nearest(value: ClassNearest) -> None:
    fits(np.array_equal(value._near.classes_, value.classes_), "ClassNearest._near")


_MIXTURE = {
    "weights": "numbers g",
    "means": "numbers g d",
    "covariances": "numbers g d d",
    "cache": "of PatternCache",
}
_MIXTURE_ENTRY = Stored("GaussianMixture", GaussianMixture, _MIXTURE, _check_mixture)
_FITTED = {
    "layout": "of Layout",
    "classes": "labels k",
    "classifier": "value",
    "completion": "of GaussianCompletion MixtureCompletion",
    "features": "value?",
    "set": "text",
    "affine": "of Affine?",
    "scores": "of Affine?",
    "discriminants": "of Linear Gaussians Local LocalMeans Quadratic Opaque",
    "rule": "of SetRule PairwiseRule IdealRule SampledRule LearnedRule CorrectedRule ThresholdRule",
    "n_threads": "count?",
}
_FITTED_ENTRY = Stored("Fitted", Fitted, _FITTED, _check_fitted)
_RELIABLE = {
    "classes_": "labels k",
    "classifier_": "value",
    "completion_": "of GaussianCompletion MixtureCompletion",
    "features_": "value?",
    "set_": "text",
    "fitted_": "of Fitted",
    "n_channels_": "count",
    "n_timepoints_": "count",
    "correction_": "of Correction Thresholds?",
    "looks_": "whole p?",
    "realised_": "number?",
    "n_samples_": "count?",
    "largest_reliability_": "number?",
    "realised_bound_": "number?",
    "reliability_": "number?",
    "calibration_": "of Calibration?",
}
_CALIBRATION = {
    "agreement": "number",
    "confidence": "number",
    "n": "count",
    "tau": "numbers p",
    "realised": "floats p",
    "lower": "floats p",
    "mean_time": "floats p",
    "accuracy": "floats p?",
    "chosen": "number",
}
_CORRECTION = {
    "tau": "numbers p",
    "since": "whole p n",
    "length": "count",
    "confidence": "number",
}
_LOCAL = {"classes_": "labels k", "priors_": "numbers k", "n_neighbors_": "count"}
_LOCAL_INSIDE = ("_rows", "_codes", "_threads", "_floor")
_PLAIN_LOCAL = Stored("LocalQDA", LocalQDA, _LOCAL, _check_local)
_ECTS = {
    "classes_": "labels k",
    "lengths_": "whole n",
    "_codes": "whole n",
    "_unit": "number",
    "_columns": "numbers d n",
}
_LINEAR = {"labels": "whole m", "slopes": "numbers m w", "offsets": "floats m"}
_GAUSSIANS = {
    "labels": "whole m",
    "offsets": "floats n m",
    "means": "numbers n m w",
    "variances": "numbers n m w",
}
_QUADRATIC = {
    "labels": "whole m",
    "offsets": "floats m",
    "means": "numbers m w",
    "precisions": "numbers m w w",
}

_SAMPLING = {
    "predict": "of ClassCodes",
    "n_samples": "count",
    "risk": "number",
    "seed": "count",
}

_LEARNED = {
    "predict": "of ClassCodes",
    "weights": "floats p",
    "critical": "numbers n",
    "seed": "count",
}

STORED = (
    _MIXTURE_ENTRY,
    *(
        Stored(
            kind.__name__,
            kind,
            {"mixture_": "of GaussianMixture"},
            _check_completion,
            upgrade=_with_mixture,
        )
        for kind in (GaussianCompletion, MixtureCompletion)
    ),
    Stored("LocalQDA", LocalQDA, pack=_pack_local, build=_build_local),
    Stored("ECTS", ECTS, _ECTS, _check_ects),
    Stored(
        "FixedTime",
        FixedTime,
        {"time_": "count", "classifier_": "value", "complete_classifier_": "value"},
        _check_fixed_time,
    ),
    _FITTED_ENTRY,
    Stored("ReliableClassifier", ReliableClassifier, _RELIABLE, _check_reliable, upgrade=_upgraded),
    Stored(
        "ReliableClassifierCV",
        ReliableClassifierCV,
        {"best_candidate_": "text", "best_estimator_": "of ReliableClassifier"},
    ),
    Stored(
        "SPRT",
        SPRT,
        {"classes_": "labels k", "means_": "numbers k d", "variances_": "numbers k d"},
        _check_sprt,
    ),
    Stored(
        "ClassNearest",
        ClassNearest,
        {"classes_": "labels k", "_near": "of LocalQDA"},
        _check_class_nearest,
    ),
    Stored(
        "LocalMeans", LocalMeans, {"labels": "whole m", "model": "of ClassNearest"}, _check_labels
    ),
    Stored(
        "MinimumCostClassifier",
        MinimumCostClassifier,
        {
            "classes_": "labels k",
            "times_": "whole p",
            "costs_": "numbers p k k",
            "_policy": "of Policy",
        },
        _check_minimum_cost,
    ),
    Stored("WaitingPolicy", Policy, {"regressions": "many Regression", "fitted": "value"}),
    Stored(
        "WaitingRegression",
        Regression,
        {"mean": "numbers q", "scale": "numbers q", "known": "numbers n q"},
    ),
    Stored("EarlyCalibration", Calibration, _CALIBRATION),
    Stored(
        "PatternCache",
        PatternCache,
        pack=lambda value: {},
        build=lambda state: PatternCache(),
    ),
    Stored(
        "Layout", Layout, {"channels": "count", "length": "count", "held": "value"}, _check_layout
    ),
    Stored("Affine", Affine, {"B": "numbers d w", "b": "numbers w"}),
    Stored("Linear", Linear, _LINEAR, _check_labels),
    Stored("Gaussians", Gaussians, _GAUSSIANS, _check_labels),
    Stored("Local", Local, {"labels": "whole m", "model": "of LocalQDA"}, _check_labels),
    Stored("Opaque", Opaque, {"labels": "whole m"}, _check_labels),
    Stored("Quadratic", Quadratic, _QUADRATIC, _check_labels),
    Stored("SetRule", SetRule, {"kind": "of ChebyshevSet MahalanobisSet QuadraticSet BoxSet"}),
    Stored("PairwiseRule", PairwiseRule, {"tail": "text"}, _check_pairwise),
    Stored("IdealRule", IdealRule, _SAMPLING, _check_sampling),
    Stored("SampledRule", SampledRule, _SAMPLING, _check_sampling),
    Stored(
        "CorrectedRule",
        CorrectedRule,
        {"rule": "of SetRule PairwiseRule IdealRule SampledRule", "correction": "of Correction"},
    ),
    Stored("LearnedRule", LearnedRule, _LEARNED, _check_learned),
    Stored(
        "ThresholdRule", ThresholdRule, {"rule": "of LearnedRule", "correction": "of Thresholds"}
    ),
    Stored(
        "Thresholds", Thresholds, {"critical": "numbers p", "confidence": "number"}, _check_critical
    ),
    Stored("Correction", Correction, _CORRECTION, _check_correction),
    Stored("ClassCodes", ClassCodes, {"classes": "labels k", "classifier": "value"}),
    *(Stored(kind.__name__, kind) for kind in (ChebyshevSet, MahalanobisSet, QuadraticSet, BoxSet)),
)
