"""Save fitted estimators to files and load them, without pickle.

The format is that of `persist`: an uncompressed npz archive
with a JSON header. Files of class moments are those that their own `save` writes, class by class;
all others are of the kind "object", whose header describes the object's attributes by a closed set
of kinds of values (`_base.files.values`). Classes are looked up by name in a table
(`models.classes`); a file cannot name anything else, and nothing in it is run.
"""

from __future__ import annotations

import os
from typing import Any

from sklearn.base import BaseEstimator

from eigenfeat._base.files import persist
from eigenfeat._base.files.values import Registry, restored, write_object
from eigenfeat._base.validation import show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.contrasts import Contrasts
from eigenfeat.pencils.eigh import PencilResult
from eigenfeat.pencils.pair_batches import PairDirections

__all__ = ["load", "save", "trusted_types"]

_NO_ESTIMATORS = (ClassMoments, Contrasts, PairDirections, PencilResult)


def save(obj: object, path: str | os.PathLike[str]) -> None:
    """Write an estimator, a completion, moments or directions to a file, without pickle.

    The same object gives the same bytes. The file has the parameters and all fitted attributes that
    predictions or `partial_fit` need. Random generators among the parameters (`RandomState`) are
    left out and have their default when loaded.

    Parameters
    ----------
    obj : object
        Any estimator of this package, fitted or not, `ClassMoments`, `PairDirections`,
        `PencilResult`, `Contrasts`, or one of the scikit-learn estimators that they may contain,
        such as pipelines, scalers, PCA, RBFSampler, Nystroem, LDA, QDA, GaussianNB,
        LogisticRegression, LinearSVC and nearest neighbours.
    path : str or path-like
        Path of the file; no suffix is added. An existing file is replaced once the new one is
        complete.

    Raises
    ------
    ValueError
        If the object, or something that it contains, is of another class, or a callable; the
        message names the attribute.
    OSError
        If the file cannot be written; an existing file is then unchanged.

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
    if type(obj) is ClassMoments:
        obj.save(path)
        return
    if not _is_public(obj):
        raise ValueError(f"obj: expected an estimator or a result of eigenfeat, got {show(obj)}")
    write_object(path, obj, _registry())


def load(path: str | os.PathLike[str]) -> Any:
    """Load a file written by `save` or by the `save` method of any class of this package.

    Predictions of the loaded object are bitwise equal on the same machine with the same libraries.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from an untrusted source: loading runs no code from it, and takes
        memory in proportion to its size. The quality of its predictions cannot be checked.

    Returns
    -------
    object

    Raises
    ------
    FileFormatError
        If the file has another format, is truncated, damaged, of a newer version, or its parts are
        inconsistent. The message is one line that begins with the path.
    OSError
        If the file cannot be read.
    """
    with persist.read(path, None) as file:
        return _loaded(file)


def _loaded(file: persist.Reader) -> Any:
    if file.kind == "class moments":
        return ClassMoments._restored(file.meta, file.array)
    value = restored(file, _registry())
    if not _is_public(value):
        raise persist.FileFormatError("it holds no object of this package")
    return value


def _registry() -> Registry:
    """The table of classes, whose modules are imported when a file is read or written."""
    from eigenfeat.models.classes import REGISTRY

    return REGISTRY


def _is_public(value: object) -> bool:
    known = _registry().of(value) is not None
    return known and (isinstance(value, (BaseEstimator, *_NO_ESTIMATORS)))


def trusted_types() -> list[str]:
    """Return the names of this package's types for the `trusted` argument of skops.

    ``skops.io.load(path, trusted=eigenfeat.models.trusted_types())`` loads every fitted estimator
    that skops wrote. The nearest neighbours of scikit-learn are not included, since the user must
    decide whether to trust their trees, depending on the source of the file.

    Returns
    -------
    list of str
    """
    from eigenfeat.models.classes import OURS

    ours = {f"{one.cls.__module__}.{one.cls.__qualname__}" for one in OURS}
    arrays = {f"scipy.sparse._{kind}.{kind}_array" for kind in ("csr", "csc")}
    wide = {"_base.sparse_rows.SparseRows", "gem.wide_directions.Combination"}
    inside = {f"eigenfeat.{name}" for name in wide}
    return sorted({*ours, *arrays, *inside, "numpy.dtype"})
