"""GEM classifiers and ensembles of files of version 1, which had a format of their own.

A classifier was the kind "gem classifier", or within other objects a state, of ``meta`` and arrays;
an ensemble a list of such. Here they become the states that `Stored` restores today. Nothing else
knows of that format, and nothing writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.files.stored import fits, held
from eigenfeat._base.labels import LabelTable
from eigenfeat.expansion.layers import Layer
from eigenfeat.gem.wide_directions import WideDirections

__all__ = ["classifier_state", "ensemble_state"]

GetArray = Callable[..., NDArray[Any]]


def classifier_state(state: dict[str, Any], logit: Callable[..., Any]) -> dict[str, Any]:
    """The state of a classifier as of today; `logit` makes the one of its parameters."""
    if "meta" not in state:
        return _parameters(state["parameters"]) if "parameters" in state else state
    meta, array = state["meta"], held(state["arrays"])
    parameters, classes = _parameters(meta["parameters"]), _labels(meta["classes"])
    model = logit(parameters)
    model.coef_ = array("coef", tuple(meta["coef"]))
    model.intercept_ = array("intercept", (len(model.coef_),))
    model.classes_, model.n_features_in_ = classes, model.coef_.shape[1]
    fits(np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all(), "coef")
    layers = [_layer(array, f"layer{i}_", one) for i, one in enumerate(meta["layers"])]
    found = {"classes_": classes, "n_features_in_": meta["n_features"], "layers_": layers}
    if meta["feature_names"] is not None:
        found["feature_names_in_"] = np.array(meta["feature_names"], dtype=object)
    return parameters | found | {"logit_": model}


def ensemble_state(state: dict[str, Any], classifier: Callable[..., Any]) -> dict[str, Any]:
    """The state of an ensemble as of today; `classifier` makes one of its state."""
    if "meta" not in state:
        if "parameters" not in state:
            return state
        found = _parameters(state["parameters"]) | {"estimator": state["estimator"]}
        members = state.get("members")
    else:
        meta, arrays = state["meta"], state["arrays"]
        found, estimator = _parameters(meta["parameters"]), meta["estimator"]
        fits("estimator" not in found, "estimator")
        found["estimator"] = None if estimator is None else classifier({"parameters": estimator})
        members = []
        for i, member in enumerate(meta["members"]):
            prefix = f"member{i}_"
            own = {name[len(prefix) :]: a for name, a in arrays.items() if name.startswith(prefix)}
            members.append(classifier({"meta": member, "arrays": own}))
    if members is None:
        return found
    fits(type(members) is list and members, "members")
    taken = ("classes_", "n_features_in_", "feature_names_in_")
    first = members[0]
    of_first = {name: getattr(first, name) for name in taken if hasattr(first, name)}
    return found | of_first | {"members_": members}


def _labels(table: dict[str, Any]) -> NDArray[Any]:
    return LabelTable.from_json(table).classes


def _layer(array: GetArray, prefix: str, entry: dict[str, Any]) -> Layer:
    d, count = entry["shape"]
    names, codes = _labels(entry["names"]), array(f"{prefix}pairs", (count, 2), "<i8")
    fits(not codes.size or 0 <= codes.min() <= codes.max() < len(names), f"array {prefix}pairs")
    directions: Any
    if "directions" in entry:
        directions = WideDirections.of_parts(
            entry["directions"], lambda name, *what: array(f"{prefix}{name}", *what)
        )
    else:
        directions = array(f"{prefix}directions", (d, count))
    return Layer(
        directions,
        array(f"{prefix}offset", (count,)),
        array(f"{prefix}eigenvalues", (count,)),
        names[codes],
        array(f"{prefix}ranks", (count,), "<i8"),
        entry["wave"],
        tuple(entry["powers"]),
    )


# ---- parameters: JSON has no tuples, and a tuple is not a list to `pairs` ------------------------


def _parameters(found: dict[str, Any]) -> dict[str, Any]:
    return {name: _from_json(value) for name, value in found.items()}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(entry) for entry in value]
    if isinstance(value, dict) and "items" in value:
        return {_from_json(key): _from_json(entry) for key, entry in value["items"]}
    if isinstance(value, dict):
        return tuple(_from_json(entry) for entry in value["tuple"])
    return value
