"""What files keep of a class: which attributes, and what must hold between them.

A class is described by a table of attributes. An entry reads like a signature:

=====================  ==========================================================================
``numbers d F``        finite floats of shape (d, F); equal letters are equal lengths
``floats d F``         the same, NaN and infinity among them
``whole F``            integers
``flags d``            booleans
``labels F 2``         an array of anything
``count``              an integer >= 0
``number``             a finite number
``text``               a string
``of Layer``           an object of that name
``many Layer``         a list or tuple of them
``value``              anything that files can hold
=====================  ==========================================================================

``d`` is `n_features_in_` and ``k`` the number of `classes_`, where an object has them; ``*`` is any
length. A ``?`` at the end means that the attribute may be None or not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.lazy import cached_property

__all__ = ["Stored", "fits", "held"]

_FITTED = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,98}_")
_SET_OUTPUT = "_sklearn_output_config"
_KINDS = {"numbers": "f", "floats": "f", "whole": "iu", "flags": "b"}


def fits(condition: object, what: str) -> None:
    """ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"{what} does not fit")


def held(arrays: dict[str, npt.NDArray[Any]]) -> Callable[..., npt.NDArray[Any]]:
    """Arrays by name, as an open file gives them."""

    def array(name: str, shape: tuple[int, ...], dtype: str = "<f8") -> npt.NDArray[Any]:
        found = arrays[name]
        fits(found.shape == tuple(shape) and found.dtype.str == dtype, f"array {name}")
        return found

    return array


@dataclass(frozen=True, eq=False)
class Stored:
    """A class that files may hold.

    Attributes
    ----------
    name : str
        What files call it.
    cls : type
    parts : dict of str
        Attributes and what must hold of them, as above. Estimators also keep their parameters and
        whatever fitted attributes end in an underscore.
    check : callable, optional
        Takes the object that was put together; raises ValueError if its parts do not fit.
    pack, build : callables, optional
        Where attributes are not enough: from an object to a dictionary, and back.
    upgrade : callable, optional
        From what an older file keeps of an object to what `state` says today.
    keys : dict of str
        Attributes that files know by another name, and that name. Not for estimators.
    """

    name: str
    cls: type[Any]
    parts: dict[str, str] = field(default_factory=dict)
    check: Callable[[Any], None] | None = None
    pack: Callable[[Any], dict[str, Any]] | None = None
    build: Callable[[dict[str, Any]], Any] | None = None
    upgrade: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    keys: dict[str, str] = field(default_factory=dict)

    def state(self, value: Any) -> dict[str, Any]:
        """What a file keeps; ValueError if the object has attributes that files do not know."""
        if self.pack is not None:
            return self.pack(value)
        if not self._is_estimator:
            held = value.__dict__
            return {self._key(name): held[name] for name in self.parts if name in held}
        made = self._made_again(value)
        state = {
            name: part
            for name, part in vars(value).items()
            if not is_random(part) and name not in made
        }
        unknown = [name for name in state if not self._may_have(name)]
        if unknown:
            raise ValueError(f"{self.name}: expected known attributes, got {unknown[0]}")
        return state

    def restored(self, state: dict[str, Any]) -> Any:
        """The object again; ValueError or TypeError if the state is not one of its class."""
        if self.build is not None:
            return self.build(state)
        if self.upgrade is not None:
            state = self.upgrade(state)
        for name, key in self.keys.items():
            fits(name not in state, f"{self.name}.{name}")
            state = {name if part == key else part: state[part] for part in state}
        unknown = [name for name in state if not self._may_have(name)]
        fits(not unknown, f"{self.name}.{unknown[0]}" if unknown else "")
        if self._is_estimator:
            names = self._names
            value = self.cls(**{name: part for name, part in state.items() if name in names})
            fitted = {name: part for name, part in state.items() if name not in names}
            value.__dict__.update(fitted)
        else:
            value = object.__new__(self.cls)
            value.__dict__.update(state)
            fitted = state
        if set(fitted) - {_SET_OUTPUT} or not self._is_estimator:
            self.check_parts(value)
        return value

    def _key(self, name: str) -> str:
        return self.keys.get(name, name)

    def _made_again(self, value: Any) -> set[str]:
        """Attributes that the constructor makes besides parameters, as one of a base class."""
        names = self._names
        made = vars(self.cls(**{name: getattr(value, name) for name in names}))
        return {name for name in made if name not in names and name not in self.parts}

    @cached_property
    def _names(self) -> frozenset[str]:
        """Names of an estimator's parameters, which take scikit-learn long to find."""
        return frozenset(self.cls._get_param_names())

    @property
    def _is_estimator(self) -> bool:
        return hasattr(self.cls, "_get_param_names")

    def _may_have(self, name: str) -> bool:
        if name in self.parts:
            return True
        if not self._is_estimator:
            return False
        if name == _SET_OUTPUT or name in self._names:
            return True
        return bool(_FITTED.fullmatch(name)) and not hasattr(self.cls, name)

    def check_parts(self, value: object) -> None:
        """ValueError unless the attributes are what the table says, and fit together."""
        held = vars(value)
        lengths = _own_lengths(self.name, held) if self._is_estimator else {}
        for name, what in self.parts.items():
            optional, found = what.endswith("?"), held.get(name)
            if found is None and (optional or (what == "value" and name in held)):
                continue
            fits(_is_kind(found, what.rstrip("?").split(), lengths), f"{self.name}.{name}")
        if self.check is not None:
            self.check(value)


def _own_lengths(owner: str, held: dict[str, Any]) -> dict[str, int]:
    """`d` and `k`, and checks of the attributes that they are taken from."""
    lengths = {}
    if "n_features_in_" in held:
        d = held["n_features_in_"]
        fits(isinstance(d, Integral) and not isinstance(d, bool) and int(d) >= 0, "n_features_in_")
        lengths["d"] = int(d)
    if held.get("classes_") is not None:
        classes = held["classes_"]
        fits(isinstance(classes, np.ndarray) and classes.ndim == 1, f"{owner}.classes_")
        fits(np.all(classes[1:] > classes[:-1]), f"{owner}.classes_")
        lengths["k"] = len(classes)
    if "feature_names_in_" in held:
        names = held["feature_names_in_"]
        fits(isinstance(names, np.ndarray) and names.dtype == object, "feature_names_in_")
        fits(names.shape == (lengths.get("d"),), "feature_names_in_")
        fits(all(type(name) is str for name in names), "feature_names_in_")
    return lengths


def _is_kind(value: Any, what: list[str], lengths: dict[str, int]) -> bool:
    kind, *rest = what
    if kind == "value":
        return value is not None
    if kind == "of":
        return type(value).__name__ in rest
    if kind == "many":
        return type(value) in (list, tuple) and all(type(v).__name__ in rest for v in value)
    if kind == "text":
        return type(value) is str
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
    for found, length in zip(value.shape, shape, strict=True):
        wanted = int(length) if length.isdigit() else lengths.setdefault(length, found)
        if length != "*" and found != wanted:
            return False
    return kind != "numbers" or bool(np.isfinite(value).all())


def is_random(value: Any) -> bool:
    """Whether a value is a generator of random numbers, which files leave out."""
    return isinstance(value, (np.random.RandomState, np.random.Generator))
