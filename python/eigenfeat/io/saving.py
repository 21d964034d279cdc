"""Save fitted estimators and moments to files and load them, without pickle.

skops writes a zip archive: a tree of nodes in ``schema.json``, a node for each object with the name
of its class, and a member for each array. `load` checks the tree before skops builds objects from
it: all types are trusted (`io.trusted_types`), sizes are within the limits below, and each array is
as long as its member. The attributes of a loaded object can still be inconsistent. As the bindings
check the arguments of the compiled core, the object then raises an error or computes wrong numbers.
"""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator

from eigenfeat._base.saved_files import (
    FileFormatError,
    check_array,
    open_archive,
    reading,
    replacing,
)
from eigenfeat._base.validation import show
from eigenfeat._base.version import __version__
from eigenfeat.io.trusted_types import LOADERS, is_trusted

__all__ = ["load", "save"]

SCHEMA = "schema.json"

# Limits on the tree of a file. skops needs about 1 kB of memory for a node and 3 kB for a node of
# an object or a function; its recursion is as deep as the tree.
_MAX_NODES = 500_000
_MAX_OBJECTS = 20_000
_MAX_DEPTH = 100
_MAX_BRACKETS = 2 * _MAX_NODES

_PROTOCOL = 2  # version of skops's format of nodes
# Nodes that do not count as objects.
_VALUE_NODES = {"DictNode", "JsonNode", "ListNode", "NdArrayNode", "TupleNode", "TypeNode"}
_MT19937_WORDS = 624  # size of the state of NumPy's RandomState
_MAX_NAMES = 20  # types that an error names


# ---- writing -------------------------------------------------------------------------------------


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Write an estimator, class moments or directions to a file, without pickle.

    The file has the parameters and all fitted attributes, or the exact sums of the moments, and the
    versions of this package, NumPy and scikit-learn. Saving is deterministic.

    Parameters
    ----------
    model : object
        Any estimator of this package or of scikit-learn, such as a pipeline or a
        `CalibratedClassifierCV` with estimators of this package inside; `ClassMoments`,
        `PairDirections`, `PencilResult` or `Contrasts`; or a dictionary of these.
    path : str or path-like
        Path of the file; no suffix is added. An existing file is replaced once the new file is
        complete.

    Raises
    ------
    ValueError
        If the object or a part of it, such as a lambda or a class label that is a date, cannot be
        written; the message names the attribute.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    See Also
    --------
    load

    Examples
    --------
    >>> import tempfile, os
    >>> import eigenfeat
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = eigenfeat.LDG(n_components=2).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.efm")
    ...     eigenfeat.save(model, path)
    ...     loaded = eigenfeat.load(path)
    >>> bool((loaded.transform(X) == model.transform(X)).all())
    True
    """
    kind = type(model)
    known = is_trusted("ObjectNode", kind.__module__, kind.__name__)
    if not (known or isinstance(model, (BaseEstimator, dict))):
        raise ValueError(f"model: expected a fitted estimator, got {show(model)}")
    from skops import io as skops_io

    buffer = io.BytesIO()
    try:
        skops_io.dump(model, buffer)
    except (TypeError, RecursionError) as error:
        detail = " ".join(str(error).split())[:200]
        raise ValueError(f"{_unsaved(model, 'model')} cannot be saved: {detail}") from error
    with zipfile.ZipFile(buffer) as written, replacing(path) as file:
        _write(written, file)


def _unsaved(part: Any, name: str) -> str:
    """Name of the innermost attribute or entry that skops cannot write."""
    from skops import io as skops_io

    if isinstance(part, (list, tuple)):
        inner = {f"{name}[{i}]": value for i, value in enumerate(part)}
    else:
        parts = part if isinstance(part, dict) else getattr(part, "__dict__", {})
        inner = {f"{name}.{key}": value for key, value in parts.items()}
    for inner_name, value in inner.items():
        try:
            skops_io.dumps(value)
        except RecursionError:
            return inner_name
        except TypeError:
            return _unsaved(value, inner_name)
    return name


def _check_names(node: Any, name: str) -> None:
    """ValueError for functions, types, keys and class labels that `load` could not restore.

    `node` is a part of the schema of a model; the message begins with its `name`.
    """
    if isinstance(node, list):
        for i, part in enumerate(node):
            _check_names(part, f"{name}[{i}]")
    if not isinstance(node, dict):
        return
    loader, kind = node.get("__loader__"), node.get("__class__")
    if loader in ("ConstructorFromReduceNode", "FunctionNode", "ObjectNode", "TypeNode"):
        imported = getattr(sys.modules.get(node["__module__"]), str(kind), None)
        is_equal = loader not in ("FunctionNode", "TypeNode") or id(imported) == node["__id__"]
        if imported is None or not is_equal:
            what = "function" if loader == "FunctionNode" else "type"
            raise ValueError(
                f"{name}: expected a {what} that can be imported, got {node['__module__']}.{kind}"
            )
    if loader == "DictNode":
        for key in node["key_types"]["content"]:
            if key["__class__"] in ("bool", "bool_", "NoneType"):
                what = key["__class__"]
                raise ValueError(f"{name}: expected keys that are text or numbers, got {what}")
    if kind == "ClassMoments":
        for part in _nodes(node["content"]["content"]["labels"]):
            if not is_trusted(part["__loader__"], part["__module__"], part["__class__"]):
                what = f"{part['__module__']}.{part['__class__']}"
                raise ValueError(f"{name}: expected classes that are numbers or text, got {what}")
    for key, part in node.items():
        _check_names(part, name if key == "content" else f"{name}.{key}")


def _write(written: zipfile.ZipFile, file: IO[bytes]) -> None:
    """Copy the archive of skops, with numbers in place of memory addresses and random names."""
    schema = json.loads(written.read(SCHEMA))
    numbers: dict[tuple[int, int], int] = {}
    first: dict[int, dict[str, Any]] = {}
    repeated = []
    members: dict[str, str] = {}
    try:
        nodes = list(_nodes(schema))
    except FileFormatError as error:
        raise ValueError(f"model: cannot be saved: {error}") from None
    _check_names(schema, "model")
    for node in nodes:
        # Python may store equal numbers or texts as one object or as several objects: each node of
        # a number or text gets its own number.
        own = id(node) if node["__loader__"] == "JsonNode" else 0
        number = node["__id__"] = numbers.setdefault((node["__id__"], own), len(numbers) + 1)
        if first.setdefault(number, node) is not node:
            repeated.append(node)
        elif isinstance(node.get("file"), str):
            suffix = node["file"].rpartition(".")[2]
            node["file"] = members.setdefault(node["file"], f"{len(members)}.{suffix}")
    for node in repeated:
        node.update(first[node["__id__"]])
    schema["_versions"] = {
        "eigenfeat": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(SCHEMA), json.dumps(schema))
        for old, new in members.items():
            data = written.read(old)
            archive.writestr(zipfile.ZipInfo(new), _stored(data) if new.endswith(".npz") else data)


def _stored(data: bytes) -> bytes:
    """Copy an archive, such as a sparse matrix, without compression."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as packed, zipfile.ZipFile(out, "w") as archive:
        for name in packed.namelist():
            archive.writestr(zipfile.ZipInfo(name), packed.read(name))
    return out.getvalue()


# ---- reading -------------------------------------------------------------------------------------


def load(path: str | os.PathLike[str], *, trusted: Sequence[str | type[Any]] = ()) -> Any:
    """Load a file that `save` wrote.

    Predictions of the loaded object are bit-for-bit identical on the same machine with the same
    libraries.

    Parameters
    ----------
    path : str or path-like
        The file. Files from untrusted sources are safe to load and to predict with: no code from
        the file is run, and the memory that loading takes is at most a small multiple of the file's
        length. Whether predictions are right cannot be checked.
    trusted : sequence of str or type, default=()
        Further classes and functions that the file may contain, such as
        ``"mypackage.Transformer"``. To trust a type means to trust its author and the source of the
        file: functions are run, and scikit-learn's compiled code uses arrays of `KMeans`,
        `OneHotEncoder`, nearest neighbours, kernel machines and trees without checking them, so
        that a forged file can corrupt memory. Trusted by default are the types of this package,
        containers and arrays, functions of NumPy that act on each entry, and the types of
        scikit-learn that compute with NumPy, such as pipelines, scalers, `PCA` and linear models.

    Returns
    -------
    object

    Raises
    ------
    FileFormatError
        If the file has another format, is truncated, damaged or compressed, has inconsistent parts,
        or has types that are not trusted. The message names these types.
    OSError
        If the file cannot be read.

    See Also
    --------
    save
    """
    with reading(path) as file, open_archive(file) as archive:
        if SCHEMA not in archive.namelist():
            raise ValueError(f"it has no member {SCHEMA}")
        named = [o if isinstance(o, str) else f"{o.__module__}.{o.__name__}" for o in trusted]
        names = _checked_types(archive, named)
        from skops import io as skops_io

        file.seek(0)
        return skops_io.load(file, trusted=[*names, *named])


def _untrusted(names: list[str]) -> FileFormatError:
    """Return the error of a file that contains types of these names."""
    shown = [name if name.isprintable() else repr(name) for name in names[:_MAX_NAMES]]
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return FileFormatError(
        f"it contains types that are not trusted: {', '.join(shown)}{more}; if its source is "
        f"trusted, load(path, trusted={shown}) reads it"
    )


def _checked_types(archive: zipfile.ZipFile, trusted: Sequence[str]) -> list[str]:
    """Check all nodes of a model file; return the names of its types, which are all trusted.

    Nodes with equal numbers must be equal, as they describe one object, and each member must belong
    to one object. The file's length then bounds the memory of the objects.
    """
    text = archive.read(SCHEMA)
    if text.count(b"{") + text.count(b"[") > _MAX_BRACKETS:
        raise FileFormatError(f"it has more than {_MAX_NODES:,} objects")
    schema = json.loads(text)
    if type(schema["protocol"]) is not int or schema["protocol"] != _PROTOCOL:
        raise FileFormatError(f"it has protocol {schema['protocol']!r:.20}, not {_PROTOCOL}")
    names: set[str] = set()
    untrusted: set[str] = set()
    first: dict[int, dict[str, Any]] = {}
    owners: dict[str, int] = {}
    for node in _nodes(schema):
        loader, module, name = node["__loader__"], node["__module__"], node["__class__"]
        path = f"{module}.{name}"
        if loader == "MethodNode":
            path = f"{path}.{node['content']['func']}"
        if is_trusted(loader, module, name):
            names.add(path)
        elif path not in trusted:
            untrusted.add(path)
            if loader == "CachedNode" or any(is_trusted(o, module, name) for o in LOADERS):
                raise FileFormatError(f"it has {path[:100]} as a {loader[:40]}")
        number = node.get("__id__")
        if "__id__" in node and (type(number) is not int or number < 1):
            raise FileFormatError("it has an object whose number is not a positive integer")
        if number is not None and first.setdefault(number, node) != node:
            raise FileFormatError(f"it describes object {number} in two ways")
        owner, member = id(node) if number is None else number, node.get("file")
        if member is not None and owners.setdefault(member, owner) != owner:
            raise FileFormatError(f"member {member[:40]!r} belongs to two objects")
        if number is None or first[number] is node:
            _check_node(archive, node)
    if untrusted:
        raise _untrusted(sorted(untrusted))
    return sorted(names)


def _check_node(archive: zipfile.ZipFile, node: dict[str, Any]) -> None:
    """FileFormatError for content that skops, NumPy or SciPy would expand or read out of bounds."""
    loader = node["__loader__"]
    if loader == "RandomStateNode":
        state = node["content"]["content"]["state"]["content"]
        if not 0 <= int(json.loads(state["pos"]["content"])) <= _MT19937_WORDS:
            raise FileFormatError("it has a state of random numbers with an invalid position")
    elif loader == "JsonNode":
        if not isinstance(node["content"], str) or node["content"].lstrip()[:1] in ("[", "{"):
            raise FileFormatError("it has JSON content that is not a number or text")
    elif loader == "DictNode":
        if any(key["__loader__"] != "TypeNode" for key in node["key_types"]["content"]):
            raise FileFormatError("it has keys of dictionaries that are not text or numbers")
    elif loader == "SparseMatrixNode":
        _check_sparse(archive.read(node["file"]), node["__class__"])
    elif loader == "NdArrayNode" and node["type"] == "numpy":
        shape = check_array(archive, node["file"])
        if node["__class__"] != "ndarray" and shape != ():
            raise FileFormatError(f"it has a number that is an array of shape {shape}")
    elif loader == "NdArrayNode" and len(node["shape"]["content"]) != 1:
        inner = {part["__loader__"] for part in _nodes(node["content"])}
        if "NdArrayNode" in inner:
            raise FileFormatError("it has arrays within an array of several dimensions")


def _check_sparse(data: bytes, kind: str) -> None:
    """FileFormatError unless a member is a sparse matrix of this class with valid indices."""
    with open_archive(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            check_array(archive, member)
    matrix = sparse.load_npz(io.BytesIO(data))
    if type(matrix).__name__ != kind:
        raise FileFormatError(f"it has a {type(matrix).__name__} as a {kind[:40]}")
    matrix.check_format(full_check=True)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All nodes of a schema, outer nodes first; FileFormatError if they exceed a limit."""
    n_nodes = n_objects = 0
    unread = [(schema, 1)]
    while unread:
        item, depth = unread.pop()
        if isinstance(item, dict):
            loader = item.get("__loader__")
            if isinstance(loader, str):
                n_nodes += 1
                n_objects += loader not in _VALUE_NODES
                depth += 1
                if n_nodes > _MAX_NODES or n_objects > _MAX_OBJECTS:
                    limit = _MAX_NODES if n_nodes > _MAX_NODES else _MAX_OBJECTS
                    raise FileFormatError(f"it has more than {limit:,} objects")
                if depth > _MAX_DEPTH:
                    raise FileFormatError(f"it nests objects deeper than {_MAX_DEPTH} levels")
                yield item
            elif not isinstance(item.get("__id__", {}), dict):
                raise FileFormatError("it has an object without a type")
            unread.extend((part, depth) for part in reversed(item.values()))
        elif isinstance(item, list):
            unread.extend((part, depth) for part in reversed(item))
