"""Save fitted estimators to files and load them, without pickle: skops, and what it leaves open.

skops writes a zip archive: a tree of the objects in ``schema.json``, with the names of their
classes, and a member for each array. It builds only objects of classes that are trusted. Before it
does so, `load` compares the lengths of all members and arrays (`_base.saved_files`), and lets the
classes of this package occur as plain objects only, whose constructors are not called. Afterwards
each object compares its attributes with each other (`_base.saved`).
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.base import BaseEstimator

from eigenfeat._base.saved import Saved, check_attributes, fits, is_saved
from eigenfeat._base.saved_files import (
    META,
    ArrayReader,
    FileFormatError,
    open_archive,
    reading,
    replacing,
)
from eigenfeat._base.validation import show
from eigenfeat._base.version import __version__
from eigenfeat.moments.class_moments import ClassMoments

__all__ = ["load", "save"]

SCHEMA = "schema.json"
_MODULE = re.compile(r"eigenfeat(\.[a-z_][a-z0-9_]*)+")
_JSON_KEYS = (str, int, float, np.integer, np.floating, np.str_)

# Parts of scikit-learn's estimators, of NumPy and SciPy that skops does not trust by itself, and
# how they may be built. Trees of nearest neighbours are left out of files, and grow again.
_PARTS = {
    "numpy.dtype": "DTypeNode",
    "scipy.sparse._csr.csr_array": "SparseMatrixNode",
    "scipy.sparse._csr.csr_matrix": "SparseMatrixNode",
    "scipy.sparse._csc.csc_array": "SparseMatrixNode",
    "scipy.sparse._csc.csc_matrix": "SparseMatrixNode",
    "sklearn.utils._bunch.Bunch": "DictNode",
    "sklearn.calibration._CalibratedClassifier": "ObjectNode",
    "sklearn.calibration._SigmoidCalibration": "ObjectNode",
    "sklearn.calibration._TemperatureScaling": "ObjectNode",
    "sklearn.compose._column_transformer._RemainderColsList": "ObjectNode",
    "sklearn.compose._column_transformer.make_column_selector": "ObjectNode",
    "sklearn.metrics._scorer._PassthroughScorer": "ObjectNode",
    "sklearn.model_selection._split.GroupKFold": "ObjectNode",
    "sklearn.model_selection._split.KFold": "ObjectNode",
    "sklearn.model_selection._split.StratifiedKFold": "ObjectNode",
}
_TREES = {
    "sklearn.neighbors._kd_tree.KDTree": "KDTree",
    "sklearn.neighbors._ball_tree.BallTree": "BallTree",
}
_NAMED = 20  # types that an error names
_NOTHING = {
    "__class__": "str",
    "__module__": "builtins",
    "__loader__": "JsonNode",
    "content": "null",
    "is_json": True,
}


# ---- writing -------------------------------------------------------------------------------------


def save(model: object, path: str | os.PathLike[str]) -> None:
    """Write an estimator, class moments or directions to a file, without pickle.

    The file has the parameters and all fitted attributes, and the versions of this package, NumPy
    and scikit-learn. The same object gives the same bytes.

    Parameters
    ----------
    model : object
        Any estimator of this package or of scikit-learn, such as a pipeline or a
        `CalibratedClassifierCV` with estimators of this package inside; `ClassMoments`,
        `PairDirections`, `PencilResult` or `Contrasts`.
    path : str or path-like
        Path of the file; no suffix is added. An existing file is replaced once the new one is
        complete.

    Raises
    ------
    ValueError
        If the object, or something that it contains, cannot be written; the message names it.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    See Also
    --------
    load, eigenfeat.ClassMoments.save

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
    if type(model) is ClassMoments:
        model.save(path)
        return
    if not isinstance(model, (BaseEstimator, Saved)):
        raise ValueError(f"model: expected a fitted estimator, got {show(model)}")
    from skops import io as skops_io

    _check_graph(model, _check_keys)
    buffer = io.BytesIO()
    try:
        skops_io.dump(model, buffer)
    except (TypeError, RecursionError) as error:
        detail = " ".join(str(error).split())[:200]
        raise ValueError(f"model: {type(model).__name__} cannot be saved: {detail}") from error
    with zipfile.ZipFile(buffer) as written, replacing(path) as file:
        _write(written, file)


def _write(written: zipfile.ZipFile, file: IO[bytes]) -> None:
    """What skops wrote, with numbers in place of addresses, dates and random names."""
    schema = json.loads(written.read(SCHEMA))
    numbers: dict[Any, int] = {}
    members: dict[str, str] = {}
    for node in _nodes(schema):
        if _name(node) in _TREES:
            identity = node.get("__id__")
            node.clear()
            node.update(_NOTHING, __id__=identity)
        if "__id__" in node:
            node["__id__"] = numbers.setdefault(node["__id__"], len(numbers) + 1)
        if isinstance(node.get("file"), str):
            suffix = node["file"].rpartition(".")[2]
            node["file"] = members.setdefault(node["file"], f"{len(members)}.{suffix}")
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
    """An archive, such as of a sparse matrix, with uncompressed members."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as packed, zipfile.ZipFile(out, "w") as archive:
        for name in packed.namelist():
            archive.writestr(zipfile.ZipInfo(name), packed.read(name))
    return out.getvalue()


# ---- reading -------------------------------------------------------------------------------------


def load(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str | type[Any]] = (),
) -> Any:
    """Load a file that `save` or `ClassMoments.save` wrote.

    Predictions of the loaded object are bitwise equal on the same machine with the same libraries.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from an untrusted source: loading runs no code from it. The quality of
        its predictions cannot be checked.
    trusted : sequence of str or type, default=()
        Further classes and functions that the file may contain, such as
        ``"mypackage.Transformer"``. Those of this package are trusted, and those of NumPy, SciPy
        and scikit-learn that are harmless whatever they contain.

    Returns
    -------
    object

    Raises
    ------
    FileFormatError
        If the file has another format, is truncated, damaged or compressed, has parts that are
        inconsistent, or types that are not trusted, which the message names.
    OSError
        If the file cannot be read.

    See Also
    --------
    save, eigenfeat.ClassMoments.load
    """
    with reading(path) as file, open_archive(file) as archive:
        if META in archive.namelist():
            reader = ArrayReader(archive)
            if reader.kind != "class moments":
                raise FileFormatError(f"it holds {reader.kind[:40]!r}, no model")
            moments = ClassMoments._restored(reader.meta, reader.array)
            reader.finish()
            return moments
        if SCHEMA not in archive.namelist():
            raise ValueError(f"it has no member {SCHEMA}")
        ours, source = _checked_names(archive), archive.fp
        model = _built(source, [*ours, *_PARTS, *trusted])
        _check_graph(model, lambda value: None)
        return model


def _built(source: Any, trusted: list[str | type[Any]]) -> Any:
    from skops import io as skops_io
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        source.seek(0)
        return skops_io.load(source, trusted=trusted)
    except UntrustedTypesFoundException:
        source.seek(0)
        unknown = set(skops_io.get_untrusted_types(file=source))
        known = (o if isinstance(o, str) else f"{o.__module__}.{o.__name__}" for o in trusted)
        untrusted = sorted(unknown - set(known))
        names = [name if name.isprintable() else repr(name) for name in untrusted[:_NAMED]]
        more = f" and {len(untrusted) - _NAMED} more" if len(untrusted) > _NAMED else ""
        raise FileFormatError(
            f"it contains types that are not trusted: {', '.join(names)}{more}; if its source is "
            f"trusted, load(path, trusted={names if more else untrusted}) reads it"
        ) from None


def _checked_names(archive: zipfile.ZipFile) -> list[str]:
    """Names of this package's classes in a file of skops's; ValueError for what it never writes.

    Each member belongs to one object, so that reading takes no more memory than the file is long.
    """
    ours: set[str] = set()
    owners: dict[str, Any] = {}
    for node in _nodes(json.loads(archive.read(SCHEMA))):
        name, member = _name(node), node.get("file")
        wanted = "ObjectNode" if name.startswith("eigenfeat.") else _PARTS.get(name)
        if wanted is not None and node["__loader__"] != wanted:
            raise ValueError(f"{name[:100]} as a {node['__loader__'][:40]}")
        if name.startswith("eigenfeat.") and _is_ours(node["__module__"], node["__class__"]):
            ours.add(name)
        if isinstance(member, str) and owners.setdefault(member, node["__id__"]) != node["__id__"]:
            raise ValueError(f"member {member[:40]!r} belongs to two objects")
    return sorted(ours)


def _is_ours(module: str, name: str) -> bool:
    """Whether that is a class of this package that files may contain."""
    if not _MODULE.fullmatch(module):
        return False
    try:
        kind = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return False
    return isinstance(kind, type) and kind.__module__ == module and is_saved(kind)


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All descriptions of objects in a schema, outer ones first."""
    left = [schema]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            if isinstance(item.get("__loader__"), str):
                yield item
            left.extend(reversed(item.values()))
        elif isinstance(item, list):
            left.extend(reversed(item))


def _name(node: dict[str, Any]) -> str:
    return f"{node['__module__']}.{node['__class__']}"


# ---- objects -------------------------------------------------------------------------------------


def _check_graph(root: Any, also: Callable[[Any], None]) -> None:
    """ValueError unless all objects that `root` contains are sound, the inner ones first."""
    seen: dict[int, Any] = {}  # with the objects, whose ids others must not get

    def visit(value: Any) -> None:
        if value is None or isinstance(value, (str, bytes, int, float, type, np.generic)):
            return
        if id(value) in seen or (isinstance(value, np.ndarray) and value.dtype != object):
            return
        seen[id(value)] = value
        also(value)
        for part in _parts(value):
            visit(part)
        if is_saved(type(value)):
            check_attributes(value)
        elif sparse.issparse(value) and value.format in ("csr", "csc"):
            value.check_format(full_check=True)
        elif hasattr(value, "_fit_method"):
            _grow_tree(value)

    visit(root)


def _parts(value: Any) -> list[Any]:
    """What an object consists of."""
    if isinstance(value, np.ndarray):
        return list(value.ravel())
    parts = list(value.values()) if isinstance(value, dict) else []
    if isinstance(value, (list, tuple, set)):
        parts = list(value)
    if is_saved(type(value)):
        state = value.__getstate__() if type(value)._saved is not None else {}
    else:
        state = getattr(value, "__dict__", {})
    return parts + list(state.values())


def _check_keys(value: Any) -> None:
    """ValueError for keys of dictionaries that would come back as others."""
    for key in value if isinstance(value, dict) else ():
        if not isinstance(key, _JSON_KEYS) or isinstance(key, bool):
            raise ValueError(f"model: expected keys that are text or numbers, got {show(key)}")


def _grow_tree(value: Any) -> None:
    """Check the rows of nearest neighbours, and grow the tree that files leave out."""
    from sklearn import neighbors

    rows: Any = getattr(value, "_fit_X", None)
    codes = getattr(value, "_y", None)
    labels = getattr(value, "classes_", None)
    if isinstance(labels, np.ndarray) and isinstance(codes, np.ndarray) and codes.size:
        whole = codes.dtype.kind in "iu" and codes.shape == (rows.shape[0],)
        fits(whole and codes.min() >= 0 and codes.max() < len(labels), f"{type(value).__name__}._y")
    kinds = {"kd_tree": neighbors.KDTree, "ball_tree": neighbors.BallTree}
    if getattr(value, "_tree", None) is None and value._fit_method in kinds:
        metric, more = value.effective_metric_, value.effective_metric_params_
        value._tree = kinds[value._fit_method](rows, value.leaf_size, metric=metric, **more)
