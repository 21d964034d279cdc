"""GEM classifiers as files: parameters, labels, layers and weights, without pickle."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.files import persist
from eigenfeat._base.labels import LabelTable
from eigenfeat._base.validation import check_whole
from eigenfeat.expansion.layers import Layer
from eigenfeat.expansion.waves import WAVES, check_powers

__all__ = ["DIRECTIONS", "SavedEnsemble", "SavedModel", "jsonable", "plain_parameters"]

# Asked for an array by name, shape and dtype, it returns the array or raises ValueError.
GetArray = Callable[..., npt.NDArray[Any]]

# Directions that are no array are kept by parts: `meta()` with a "kind", and `arrays()` by name.
# Here is what puts each kind together again.
DIRECTIONS: dict[str, Callable[[dict[str, Any], GetArray], Any]] = {}

_KIND = "gem classifier"
_ENSEMBLE = "gem ensemble"


@dataclass(frozen=True)
class SavedModel:
    """What a file holds.

    ``parameters`` are those that JSON can hold (numbers, strings, lists and tuples of them).
    ``coef`` (q, p) and ``intercept`` (q,) have one row for two classes, as in `MultinomialLogit`.
    """

    parameters: dict[str, Any]
    classes: npt.NDArray[Any]
    n_features: int
    feature_names: list[str] | None
    layers: list[Layer]
    coef: npt.NDArray[np.float64]
    intercept: npt.NDArray[np.float64]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; an older one there is replaced once this is complete."""
        persist.write(path, _KIND, self.meta(), self.arrays())

    @classmethod
    def read(cls, path: str | os.PathLike[str], names: Iterable[str]) -> SavedModel:
        """Read what `write` wrote; FileFormatError for anything else.

        Parameters
        ----------
        path : str or path-like
            The file.
        names : iterable of str
            The parameters that the classifier has.
        """
        with persist.read(path, _KIND) as file:
            return cls.of(file.meta, file.array, names)

    @classmethod
    def of(
        cls, meta: dict[str, Any], array: GetArray, names: Iterable[str], prefix: str = ""
    ) -> SavedModel:
        """What `meta` and `arrays` say; ValueError, LookupError or TypeError for nonsense."""
        coef = array(f"{prefix}coef", tuple(meta["coef"]))
        found = cls(
            plain_parameters(meta["parameters"], names),
            LabelTable.from_json(meta["classes"]).classes,
            check_whole(meta["n_features"], "n_features", at_least=1),
            meta["feature_names"],
            [_layer(array, f"{prefix}layer{i}_", entry) for i, entry in enumerate(meta["layers"])],
            coef,
            array(f"{prefix}intercept", (len(coef),)),
        )
        found._check()
        return found

    def _check(self) -> None:
        """FileFormatError unless the parts fit together."""
        k, names = len(self.classes), self.feature_names
        widths = [self.n_features, *(layer.width for layer in self.layers)]
        if self.parameters.get("include_input", False):
            widths[-1] += widths[-2]
        fits = (
            len(self.layers) > 0
            and [layer.directions.shape[0] for layer in self.layers] == widths[:-1]
            and k >= 2
            and self.coef.shape == (1 if k == 2 else k, widths[-1])
            and (names is None or [type(name) for name in names] == [str] * self.n_features)
        )
        sizes = [self.coef, self.intercept]
        sizes += [layer.offset for layer in self.layers]
        sizes += [one.directions for one in self.layers if isinstance(one.directions, np.ndarray)]
        fits = fits and all(np.isfinite(part).all() for part in sizes)
        if not fits:
            raise persist.FileFormatError("its layers, labels and weights do not fit together")

    def meta(self) -> dict[str, Any]:
        """All but the arrays."""
        return {
            "parameters": jsonable(self.parameters),
            "classes": _table(self.classes).to_json(),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "coef": list(self.coef.shape),
            "layers": [
                {
                    "shape": list(layer.directions.shape),
                    "wave": layer.wave,
                    "powers": [int(power) for power in layer.powers],
                    "names": _table(np.unique(layer.pairs)).to_json(),
                }
                | _kind_of_directions(layer)
                for layer in self.layers
            ],
        }

    def arrays(self, prefix: str = "") -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Arrays by name."""
        for i, layer in enumerate(self.layers):
            _, codes = np.unique(layer.pairs, return_inverse=True)
            part = f"{prefix}layer{i}_"
            if isinstance(layer.directions, np.ndarray):
                yield f"{part}directions", layer.directions.astype(np.float64, copy=False)
            else:
                yield from ((f"{part}{name}", a) for name, a in layer.directions.arrays())
            yield f"{part}offset", layer.offset
            yield f"{part}eigenvalues", layer.eigenvalues
            yield f"{part}pairs", codes.reshape(layer.pairs.shape).astype(np.int64)
            yield f"{part}ranks", layer.ranks.astype(np.int64)
        yield f"{prefix}coef", self.coef
        yield f"{prefix}intercept", self.intercept


@dataclass(frozen=True)
class SavedEnsemble:
    """What a file of several classifiers holds.

    ``estimator`` has the parameters of the classifier whose clones the members are, or is None.
    """

    parameters: dict[str, Any]
    estimator: dict[str, Any] | None
    members: list[SavedModel]

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write to a file; an older one there is replaced once this is complete."""
        persist.write(path, _ENSEMBLE, self.meta(), self.arrays())

    def meta(self) -> dict[str, Any]:
        """All but the arrays."""
        return {
            "parameters": jsonable(self.parameters),
            "estimator": None if self.estimator is None else jsonable(self.estimator),
            "members": [member.meta() for member in self.members],
        }

    def arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        """Arrays by name."""
        return (a for i, m in enumerate(self.members) for a in m.arrays(f"member{i}_"))

    @classmethod
    def read(
        cls, path: str | os.PathLike[str], names: Iterable[str], member_names: Iterable[str]
    ) -> SavedEnsemble:
        """Read what `write` wrote; FileFormatError for anything else.

        Parameters
        ----------
        path : str or path-like
            The file.
        names, member_names : iterables of str
            The parameters that the ensemble has but `estimator`, and those of its members.
        """
        with persist.read(path, _ENSEMBLE) as file:
            return cls.of(file.meta, file.array, names, member_names)

    @classmethod
    def of(
        cls,
        meta: dict[str, Any],
        array: GetArray,
        names: Iterable[str],
        member_names: Iterable[str],
    ) -> SavedEnsemble:
        """What `meta` and `arrays` say; ValueError, LookupError or TypeError for nonsense."""
        known = set(member_names)
        members = [
            SavedModel.of(entry, array, known, f"member{i}_")
            for i, entry in enumerate(meta["members"])
        ]
        same = {(tuple(m.classes.tolist()), m.n_features) for m in members}
        if len(same) != 1:
            raise persist.FileFormatError("its members do not fit together")
        estimator = meta["estimator"]
        if estimator is not None:
            estimator = plain_parameters(estimator, known)
        return cls(plain_parameters(meta["parameters"], names), estimator, members)


def _table(labels: npt.NDArray[Any]) -> LabelTable:
    return LabelTable.of(labels) if len(labels) else LabelTable()


def _kind_of_directions(layer: Layer) -> dict[str, Any]:
    directions: Any = layer.directions
    return {} if isinstance(directions, np.ndarray) else {"directions": directions.meta()}


def _directions(array: GetArray, prefix: str, entry: dict[str, Any], shape: tuple[int, int]) -> Any:
    """An array, or what stands for one."""
    if "directions" not in entry:
        return array(f"{prefix}directions", shape)

    def part(name: str, *what: Any) -> npt.NDArray[Any]:
        return array(f"{prefix}{name}", *what)

    found = DIRECTIONS[entry["directions"]["kind"]](entry["directions"], part)
    if found.shape != shape:
        raise persist.FileFormatError("its directions do not fit together")
    return found


def _layer(array: GetArray, prefix: str, entry: dict[str, Any]) -> Layer:
    d, count = entry["shape"]
    names = LabelTable.from_json(entry["names"]).classes
    codes = array(f"{prefix}pairs", (count, 2), "<i8")
    wave, powers = entry["wave"], check_powers(entry["powers"])
    if wave not in WAVES or (codes.size and not 0 <= codes.min() <= codes.max() < len(names)):
        raise persist.FileFormatError("it has an expansion or pairs that this format does not know")
    return Layer(
        _directions(array, prefix, entry, (d, count)),
        array(f"{prefix}offset", (count,)),
        array(f"{prefix}eigenvalues", (count,)),
        names[codes],
        array(f"{prefix}ranks", (count,), "<i8"),
        wave,
        tuple(powers),
    )


# ---- parameters: JSON has no tuples, and a tuple is not a list to `pairs` ------------------------


def jsonable(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that JSON can hold, as it can hold them."""
    out = {}
    for name, value in parameters.items():
        try:
            out[name] = _to_json(value)
        except TypeError:
            continue
    return out


def _to_json(value: Any) -> Any:
    if isinstance(value, (np.generic, np.ndarray)):
        value = value.tolist()
    if isinstance(value, tuple):
        return {"tuple": [_to_json(entry) for entry in value]}
    if isinstance(value, list):
        return [_to_json(entry) for entry in value]
    if isinstance(value, dict):
        return {"items": [[_to_json(key), _to_json(entry)] for key, entry in value.items()]}
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError("not in JSON")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError("not in JSON")


def plain_parameters(found: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The parameters that `jsonable` wrote; FileFormatError if one is not among `names`."""
    unknown = set(found) - set(names)
    if unknown:
        raise persist.FileFormatError(f"it has parameters that are unknown: {sorted(unknown)}")
    return {name: _from_json(value) for name, value in found.items()}


def _from_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_from_json(entry) for entry in value]
    if isinstance(value, dict) and "items" in value:
        return {_from_json(key): _from_json(entry) for key, entry in value["items"]}
    if isinstance(value, dict):
        return tuple(_from_json(entry) for entry in value["tuple"])
    return value
