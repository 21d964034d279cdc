"""A GEM classifier as a file: parameters, labels, layers and weights, without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import persist
from ._labels import LabelTable
from .layers import Layer

__all__ = ["SavedModel"]

_KIND = "gem classifier"


@dataclass(frozen=True)
class SavedModel:
    """What a file holds.

    ``parameters`` are those that JSON can hold (numbers, strings, lists of them). ``coef`` (q, p)
    and ``intercept`` (q,) have one row for two classes, as in `MultinomialLogit`.
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
        persist.write(path, _KIND, self._meta(), self._arrays())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> SavedModel:
        """Read what `write` wrote; FileFormatError for anything else."""
        with persist.read(path, _KIND) as file:
            meta = file.meta
            classes = LabelTable.from_json(meta["classes"]).classes
            layers = [_layer(file, i, entry) for i, entry in enumerate(meta["layers"])]
            coef = file.array("coef", tuple(meta["coef"]))
            return cls(
                _tuples(meta["parameters"]),
                classes,
                int(meta["n_features"]),
                meta["feature_names"],
                layers,
                coef,
                file.array("intercept", (len(coef),)),
            )

    def _meta(self) -> dict[str, Any]:
        return {
            "parameters": {k: v for k, v in self.parameters.items() if _in_json(v)},
            "classes": _table(self.classes).to_json(),
            "n_features": self.n_features,
            "feature_names": self.feature_names,
            "coef": list(self.coef.shape),
            "layers": [
                {
                    "shape": list(layer.directions.shape),
                    "wave": layer.wave,
                    "powers": list(layer.powers),
                    "names": _table(np.unique(layer.pairs)).to_json(),
                }
                for layer in self.layers
            ],
        }

    def _arrays(self) -> Iterator[tuple[str, npt.NDArray[Any]]]:
        for i, layer in enumerate(self.layers):
            _, codes = np.unique(layer.pairs, return_inverse=True)
            yield f"directions{i}", layer.directions
            yield f"offset{i}", layer.offset
            yield f"eigenvalues{i}", layer.eigenvalues
            yield f"pairs{i}", codes.reshape(layer.pairs.shape).astype(np.int64)
            yield f"ranks{i}", layer.ranks.astype(np.int64)
        yield "coef", self.coef
        yield "intercept", self.intercept


def _table(labels: npt.NDArray[Any]) -> LabelTable:
    return LabelTable.of(labels) if len(labels) else LabelTable()


def _layer(file: persist.Reader, i: int, entry: dict[str, Any]) -> Layer:
    d, count = entry["shape"]
    names = LabelTable.from_json(entry["names"]).classes
    return Layer(
        file.array(f"directions{i}", (d, count)),
        file.array(f"offset{i}", (count,)),
        file.array(f"eigenvalues{i}", (count,)),
        names[file.array(f"pairs{i}", (count, 2), "<i8")],
        file.array(f"ranks{i}", (count,), "<i8"),
        str(entry["wave"]),
        tuple(entry["powers"]),
    )


def _in_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == _lists(value))
    except (TypeError, ValueError):
        return False


def _lists(value: Any) -> Any:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_lists(entry) for entry in value]
    return value


def _tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in parameters.items()}
