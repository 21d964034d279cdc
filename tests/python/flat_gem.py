"""Classifiers from a flat list of parameters of the classifier, of its GEM and of its logit."""

from __future__ import annotations

from typing import Any

from eigenfeat import GEM, GEMClassifier, MultinomialLogit
from eigenfeat.gem import JointGEMClassifier

_LOGIT = {"penalty", "tol", "temperature", "solver"}
_OWN = set(GEMClassifier._get_param_names()) | set(JointGEMClassifier._get_param_names())


def nested(flat: dict[str, Any], **defaults: Any) -> dict[str, Any]:
    """Parameters of a classifier, with estimators that hold those of GEM and of the logit."""
    flat = {name.removeprefix("gem__").removeprefix("logit__"): flat[name] for name in flat}
    own = {name: value for name, value in flat.items() if name in _OWN}
    logit = {name: value for name, value in flat.items() if name in _LOGIT}
    gem = {name: value for name, value in flat.items() if name not in _OWN | _LOGIT}
    given = {"tol": 1e-3, "temperature": "auto", "solver": "auto"} | defaults | logit
    return own | {"gem": GEM(**gem), "logit": MultinomialLogit(**given)}


def gem_classifier(**flat: Any) -> GEMClassifier:
    """A classifier with these parameters and the defaults of others."""
    return GEMClassifier(**nested(flat))


def joint_classifier(**flat: Any) -> JointGEMClassifier:
    """A jointly trained classifier, of temperature 1 unless given: it is trained on all samples."""
    return JointGEMClassifier(**nested(flat, temperature=1.0))


def plain_params(model: Any) -> dict[str, Any]:
    """Parameters of a classifier and of the estimators in it, without these estimators."""
    return {n: value for n, value in model.get_params().items() if not hasattr(value, "get_params")}


def with_params(model: Any, **flat: Any) -> Any:
    """The classifier with parameters of its own, of its GEM and of its logit."""
    parts = dict.fromkeys(_LOGIT, "logit__") | dict.fromkeys(_OWN, "")
    full = {n: n if "__" in n else parts.get(n, "gem__") + n for n in flat}
    return model.set_params(**{full[name]: value for name, value in flat.items()})
