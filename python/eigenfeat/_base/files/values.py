"""Values as JSON and arrays: a closed set of kinds, and objects of classes that are registered.

JSON's own null, booleans, strings, integers and finite floats stand for themselves, lists for
lists. Everything else is a JSON object whose keys say what it is:

``{"float": "nan"}``, ``{"bytes": text}``, ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``,
``{"scalar": dtype, "hex": bytes}`` or ``{"scalar": "str", "text": text}`` for NumPy's scalars,
``{"dtype": name}``, ``{"array": name}`` for a member of the archive (with ``"order": "F"`` its
transpose), ``{"labels": dtype, "shape": [...], "values": [...]}`` for arrays of strings or objects,
``{"sparse": class, "shape": [...], "data": ..., "indices": ..., "indptr": ...}``,
``{"object": name, "id": number, "state": {...}}``, and ``{"same": number}`` for an object that
occurred before.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.files import persist
from eigenfeat._base.files.stored import Stored
from eigenfeat._base.labels import label_dtype
from eigenfeat._base.validation import show

__all__ = ["Decoder", "Encoder", "Registry", "read_object", "restored", "write_object"]

KIND = "object"
OLD_KINDS = {"gem classifier": "GEMClassifier", "gem ensemble": "GEMEnsemble"}  # of version 1

MAX_DEPTH = 60
SPARSE = ("csr_matrix", "csc_matrix", "csr_array", "csc_array")
DTYPE = re.compile(r"[|<][biuf]\d")
_PLAIN = (type(None), bool, str)
_LABELS = (*_PLAIN, int, float, bytes)


class Registry:
    """Classes that may occur, by their objects and by their names."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        stored = tuple(stored)
        self._by_class = {one.cls: one for one in stored}
        self._by_name = {one.name: one for one in stored}
        assert len(self._by_class) == len(self._by_name) == len(stored)

    def joined(self, *more: Stored) -> Registry:
        """A registry with more classes."""
        return Registry((*self._by_name.values(), *more))

    def of(self, value: object) -> Stored | None:
        """Description of the object's class, if files may hold it."""
        return self._by_class.get(type(value))

    def named(self, name: str) -> Stored | None:
        """Description of the class that files call so."""
        return self._by_name.get(name)


class Encoder:
    """From values to what JSON can hold; ``arrays`` are the arrays that it refers to, by name."""

    def __init__(self, registry: Registry) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._registry = registry
        self._names: dict[tuple[int, bool], str] = {}
        self._objects: dict[int, int] = {}
        self._alive: list[Any] = []  # ids are of objects that live

    def encode(self, value: Any, path: str) -> Any:
        """One value; `path` says where it is, for errors and names of arrays."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is int and -(2**63) <= value < 2**64:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is bytes:
            return {"bytes": value.decode("latin-1")}
        if kind in (list, tuple):
            items = [self.encode(item, f"{path}.{i}") for i, item in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            pairs = [(key, self.encode(item, f"{path}.{key}")) for key, item in value.items()]
            return {"dict": [[self.encode(key, f"{path} key"), item] for key, item in pairs]}
        if isinstance(value, np.generic):
            return self._scalar(value, path)
        if kind is np.ndarray:
            return self._array(value, path)
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if kind.__name__ in SPARSE:
            return self._sparse(value, path)
        return self._object(value, path)

    def _refuse(self, value: Any, path: str) -> ValueError:
        return ValueError(f"{path}: expected what files can hold, got {show(value)}")

    def _scalar(self, value: Any, path: str) -> Any:
        if type(value) is np.str_:
            return {"scalar": "str", "text": str(value)}
        dtype = value.dtype.newbyteorder("<")
        if not DTYPE.fullmatch(dtype.str):
            raise self._refuse(value, path)
        return {"scalar": dtype.str, "hex": value.astype(dtype).tobytes().hex()}

    def _array(self, value: NDArray[Any], path: str) -> Any:
        if value.dtype.kind in "USO":
            items = value.ravel().tolist()
            if not all(type(item) in _LABELS for item in items):
                raise self._refuse(value, path)
            values = [self.encode(item, path) for item in items]
            dtype = value.dtype.newbyteorder("<").str
            return {"labels": dtype, "shape": list(value.shape), "values": values}
        if not DTYPE.fullmatch(value.dtype.newbyteorder("<").str):
            raise self._refuse(value, path)
        transposed = value.flags.f_contiguous and not value.flags.c_contiguous
        key = id(value), transposed
        if key not in self._names:
            self._names[key] = self._name(path)
            self._alive.append(value)
            self.arrays[self._names[key]] = value.T if transposed else value
        node = {"array": self._names[key]}
        return node | {"order": "F"} if transposed else node

    def _name(self, path: str) -> str:
        stem = re.sub(r"[^a-z0-9]+", "_", path.lower()).strip("_")[-80:].lstrip("_0123456789")
        name, count = stem or "array", 1
        while name in self.arrays:
            count += 1
            name = f"{stem or 'array'}_{count}"
        return name

    def _sparse(self, value: Any, path: str) -> Any:
        name = type(value).__name__
        if type(value) is not _sparse_class(name):
            raise self._refuse(value, path)
        parts = {
            part: self.encode(getattr(value, part), f"{path}.{part}")
            for part in ("data", "indices", "indptr")
        }
        return {"sparse": name, "shape": list(value.shape)} | parts

    def _object(self, value: Any, path: str) -> Any:
        if id(value) in self._objects:
            return {"same": self._objects[id(value)]}
        stored = self._registry.of(value)
        if stored is None:
            raise self._refuse(value, path)
        state = stored.state(value)
        inside = {name: self.encode(state[name], f"{path}.{name}") for name in sorted(state)}
        number = self._objects[id(value)] = len(self._objects)
        self._alive.append(value)
        return {"object": stored.name, "id": number, "state": inside}


class Decoder:
    """From what `Encoder` made to values; ValueError, TypeError or LookupError for all else.

    Parameters
    ----------
    registry : Registry
    array : callable
        From a name to the array of the archive.
    """

    def __init__(self, registry: Registry, array: Callable[[str], NDArray[Any]]) -> None:
        self._registry = registry
        self._array = array
        self._arrays: dict[str, NDArray[Any]] = {}
        self._objects: dict[int, Any] = {}

    def decode(self, node: Any, depth: int = 0) -> Any:
        """One value."""
        if depth > MAX_DEPTH:
            raise ValueError("values lie too deep in each other")
        if type(node) in (*_PLAIN, int, float):
            return node
        if type(node) is list:
            return [self.decode(item, depth + 1) for item in node]
        kinds = [kind for kind in self._KINDS if kind in node]
        if len(kinds) != 1 or not set(node) <= self._KINDS[kinds[0]][0] | {kinds[0]}:
            raise ValueError(f"a value of an unknown kind: {sorted(node)[:3]}")
        value: Any = self._KINDS[kinds[0]][1](self, node, depth + 1)
        return value

    def _float(self, node: Any, depth: int) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[node["float"]]

    def _bytes(self, node: Any, depth: int) -> bytes:
        return _text(node["bytes"]).encode("latin-1")

    def _tuple(self, node: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(_listed(node["tuple"]), depth))

    def _dict(self, node: Any, depth: int) -> dict[Any, Any]:
        pairs = [(self.decode(k, depth), self.decode(v, depth)) for k, v in node["dict"]]
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key occurs twice")
        return found

    def _scalar(self, node: Any, depth: int) -> Any:
        if node["scalar"] == "str":
            return np.str_(_text(node["text"]))
        if not DTYPE.fullmatch(node["scalar"]):
            raise ValueError("a scalar of an unknown dtype")
        data = bytes.fromhex(node["hex"])
        (value,) = np.frombuffer(data, dtype=node["scalar"])
        return value

    def _dtype(self, node: Any, depth: int) -> np.dtype[Any]:
        return label_dtype(_text(node["dtype"]), [])

    def _ndarray(self, node: Any, depth: int) -> NDArray[Any]:
        name = _text(node["array"])
        if name not in self._arrays:
            self._arrays[name] = self._array(name)
        array = self._arrays[name]
        if "order" in node and node["order"] != "F":
            raise ValueError("an array of an unknown order")
        return array.T if "order" in node else array

    def _labels(self, node: Any, depth: int) -> NDArray[Any]:
        values, shape = _listed(node["values"]), _listed(node["shape"])
        items = [self.decode(value, depth) for value in values]
        dtype = label_dtype(_text(node["labels"]), items)
        if dtype.kind not in "USO" or any(type(size) is not int or size < 0 for size in shape):
            raise ValueError("labels of an unknown dtype or shape")
        if not all(type(item) in _LABELS for item in items):
            raise ValueError("labels of an unknown kind")
        array = np.empty(len(items), dtype=dtype)
        array[:] = items
        if array.tolist() != items and dtype.kind != "O":
            raise ValueError("labels longer than their dtype")
        return array.reshape(shape)

    def _sparse(self, node: Any, depth: int) -> Any:
        parts = [self.decode(node[part], depth) for part in ("data", "indices", "indptr")]
        if not all(type(part) is np.ndarray and part.ndim == 1 for part in parts):
            raise ValueError("a sparse matrix of other parts")
        if any(part.dtype.kind not in "iu" for part in parts[1:]):
            raise ValueError("a sparse matrix without whole indices")
        rows, columns = node["shape"]
        matrix = _sparse_class(node["sparse"])(tuple(parts), shape=(rows, columns), copy=False)
        matrix.check_format(full_check=True)
        return matrix

    def _object(self, node: Any, depth: int) -> Any:
        stored = self._registry.named(_text(node["object"]))
        if stored is None:
            raise ValueError(f"it holds an object of unknown class {show(node['object'])}")
        state = {name: self.decode(part, depth) for name, part in node["state"].items()}
        if type(node["id"]) is not int or node["id"] in self._objects:
            raise ValueError("two objects have the same number")
        value = self._objects[node["id"]] = stored.restored(state)
        return value

    def _same(self, node: Any, depth: int) -> Any:
        return self._objects[node["same"]]

    _KINDS: ClassVar[dict[str, tuple[set[str], Callable[[Any, Any, int], Any]]]] = {
        "float": (set(), _float),
        "bytes": (set(), _bytes),
        "tuple": (set(), _tuple),
        "dict": (set(), _dict),
        "scalar": ({"hex", "text"}, _scalar),
        "dtype": (set(), _dtype),
        "array": ({"order"}, _ndarray),
        "labels": ({"shape", "values"}, _labels),
        "sparse": ({"shape", "data", "indices", "indptr"}, _sparse),
        "object": ({"id", "state"}, _object),
        "same": (set(), _same),
    }


def _sparse_class(name: str) -> Any:
    from scipy import sparse

    if name not in SPARSE:
        raise ValueError("a sparse matrix of an unknown class")
    return getattr(sparse, name)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"expected text, got {show(value)}")
    return value


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise ValueError(f"expected a list, got {show(value)}")
    return value


# ---- files of one object -------------------------------------------------------------------------


def write_object(path: str | os.PathLike[str], value: object, registry: Registry) -> None:
    """Write an object to a file; ValueError, with the attribute's name, for what none can hold."""
    encoder = Encoder(registry)
    tree = encoder.encode(value, type(value).__name__)
    persist.write(path, KIND, {"object": tree}, encoder.arrays.items())


def read_object(path: str | os.PathLike[str], registry: Registry, cls: type[Any]) -> Any:
    """Read an object of this class that `write_object` wrote; FileFormatError for all else."""
    with persist.read(path, None) as file:
        what = OLD_KINDS.get(file.kind, file.kind)
        what = _text(file.meta["object"]["object"]) if what == KIND else what
        if what != cls.__name__:
            raise persist.FileFormatError(f"it holds {what[:40]!r}, not {cls.__name__!r}")
        return restored(file, registry)


def restored(file: persist.Reader, registry: Registry) -> Any:
    """The object of an open file."""
    old = registry.named(OLD_KINDS.get(file.kind, "")) if file.version == 1 else None
    if old is not None:
        arrays = {name: file.array(name, None, None) for name in file.names}
        return old.restored({"meta": file.meta, "arrays": arrays})
    if file.kind != KIND:
        raise persist.FileFormatError(f"it holds {file.kind!r}, which this release does not know")
    if set(file.meta) != {"object"}:
        raise persist.FileFormatError("its header is incomplete or has more than it may")
    decoder = Decoder(registry, lambda name: file.array(name, None, None))
    return decoder.decode(file.meta["object"])
