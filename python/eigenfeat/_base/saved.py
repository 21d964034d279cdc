"""Which of this package's classes model files may hold, and what must hold of their attributes.

A class that may be in a file has ``_saved``, a table of attributes, and where attributes must fit
each other in ways that a table cannot say, ``_check_loaded``. An entry reads like a signature:

=====================  ==========================================================================
``numbers d F``        finite floats of shape (d, F); equal letters are equal lengths
``floats d F``         the same, NaN and infinity among them
``whole F``            integers
``flags d``            booleans
``labels F 2``         an array of anything
``count``              an integer >= 0
``number``             a finite number
``text``               a string
``flag``               True or False
``of Layer``           an object of that class
``many Layer``         a list or tuple of them
``estimator``          an object with parameters
``value``              anything but None
=====================  ==========================================================================

``d`` is `n_features_in_` and ``k`` the number of `classes_`, where an object has them; ``*`` is any
length. A ``?`` at the end means that the attribute may be None or not there.

Estimators also have their parameters and whatever fitted attributes end in an underscore. Other
objects have what the table lists, and no more. A class whose ``_saved`` is None checks what it is
given in ``__setstate__``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

__all__ = ["Saved", "check_attributes", "check_solution", "fits", "is_saved"]

_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,98}_")
_OF_SKLEARN = frozenset({"_sklearn_output_config", "_metadata_request"})
_KINDS = {"numbers": "f", "floats": "f", "whole": "iu", "flags": "b"}


class Saved:
    """Base class of objects that are no estimators: copies, pickles and files have `_saved` only.

    What is computed from these attributes and remembered is left out.
    """

    _saved: ClassVar[Mapping[str, str] | None] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: part for name, part in vars(self).items() if name in (self._saved or ())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        unknown = state.keys() - (self._saved or {}).keys()
        fits(not unknown, f"{type(self).__name__}.{min(unknown, default='')[:40]}")
        vars(self).update(state)


def is_saved(cls: type[Any]) -> bool:
    """Whether files may hold objects of this class: it is the package's, and has a table."""
    return hasattr(cls, "_saved") and cls.__module__.startswith("eigenfeat.")


def check_solution(value: Any, kind: type[Any]) -> None:
    """Check an estimator with moments and directions that are computed of them when needed."""
    name, solution = type(value).__name__, value._solution
    fits(value.moments_.n_features_in_ == value.n_features_in_, f"{name}.moments_")
    if solution.is_ready:
        fits(type(solution()) is kind, f"{name}._solution")
        fits(solution().directions.shape[0] == value.n_features_in_, f"{name}._solution")


def fits(condition: object, what: str) -> None:
    """ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} does not fit")


def check_attributes(value: Any) -> None:
    """ValueError unless an object of a class with `_saved` is as that says."""
    cls = type(value)
    table: Mapping[str, str] | None = cls._saved
    if table is None:
        return
    state, name = value.__getstate__(), cls.__name__
    is_estimator = hasattr(cls, "_get_param_names")
    if is_estimator:
        parameters = _parameters(cls)  # type: ignore[arg-type]
        for attribute in state.keys() - table.keys() - parameters - _OF_SKLEARN:
            if not _FITTED.fullmatch(attribute) or hasattr(cls, attribute):
                raise ValueError(f"{name}: expected known attributes, got {attribute[:40]}")
        fits(set(cls._get_param_names()) <= state.keys(), f"{name}'s parameters")
        if not state.keys() - parameters - _OF_SKLEARN:
            return  # not fitted
    lengths = _own_lengths(name, state) if is_estimator else {}
    for attribute, what in table.items():
        result = state.get(attribute)
        if result is None and what.endswith("?"):
            continue
        fits(_is_kind(result, what.rstrip("?").split(), lengths), f"{name}.{attribute}")
    if hasattr(cls, "_check_loaded"):
        value._check_loaded()


@cache
def _parameters(cls: type[Any]) -> frozenset[str]:
    """An estimator's parameters, and those that its base classes set."""
    result = (base._get_param_names() for base in cls.__mro__ if hasattr(base, "_get_param_names"))
    return frozenset().union(*result)


def _own_lengths(owner: str, state: dict[str, Any]) -> dict[str, int]:
    """`d` and `k`, and checks of the attributes that they are taken from."""
    lengths = {}
    if "n_features_in_" in state:
        d = state["n_features_in_"]
        fits(isinstance(d, Integral) and not isinstance(d, bool) and int(d) >= 0, "n_features_in_")
        lengths["d"] = int(d)
    if state.get("classes_") is not None:
        classes = state["classes_"]
        fits(isinstance(classes, np.ndarray) and classes.ndim == 1, f"{owner}.classes_")
        fits(np.all(classes[1:] > classes[:-1]), f"{owner}.classes_")
        lengths["k"] = len(classes)
    if "feature_names_in_" in state:
        names = state["feature_names_in_"]
        fits(isinstance(names, np.ndarray) and names.dtype == object, "feature_names_in_")
        fits(names.shape == (lengths.get("d"),), "feature_names_in_")
        fits(all(type(name) is str for name in names), "feature_names_in_")
    return lengths


def _is_kind(value: Any, what: list[str], lengths: dict[str, int]) -> bool:
    kind, *rest = what
    if kind == "value":
        return value is not None
    if kind == "estimator":
        return hasattr(value, "get_params") and not isinstance(value, type)
    if kind == "of":
        return is_saved(type(value)) and type(value).__name__ in rest
    if kind == "many":
        return type(value) in (list, tuple) and all(_is_kind(v, ["of", *rest], {}) for v in value)
    if kind in ("text", "flag"):
        return type(value) is (str if kind == "text" else bool)
    if kind in ("count", "number"):
        wanted = Integral if kind == "count" else Real
        sound = isinstance(value, wanted) and not isinstance(value, bool)
        return sound and bool(np.isfinite(value)) and (kind == "number" or int(value) >= 0)
    return _is_array(value, kind, rest, lengths)


def _is_array(value: Any, kind: str, shape: list[str], lengths: dict[str, int]) -> bool:
    if not isinstance(value, np.ndarray) or value.ndim != len(shape):
        return False
    if kind != "labels" and value.dtype.kind not in _KINDS[kind]:
        return False
    for result, length in zip(value.shape, shape, strict=True):
        wanted = int(length) if length.isdigit() else lengths.setdefault(length, result)
        if length != "*" and result != wanted:
            return False
    return kind != "numbers" or bool(np.isfinite(value).all())
