"""Any fitted estimator in a file, and back, without pickle.

One function to save and one to load. The format is that of `persist`: an uncompressed npz archive
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
from eigenfeat.pencils.pencils import PairDirections

__all__ = ["load", "save", "trusted_types"]

_NO_ESTIMATORS = (ClassMoments, Contrasts, PairDirections, PencilResult)


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Write an estimator, a completion, moments or directions to a file, without pickle.

    The same object gives the same bytes. What is written: parameters, and everything that `fit`
    made and predictions or `partial_fit` need. Random generators among the parameters
    (`RandomState`) are left out and have their default when loaded.

    Parameters
    ----------
    obj : object
        Any of this package's estimators, fitted or not, `ClassMoments`, `PairDirections`,
        `PencilResult`, `Contrasts`, or one of the scikit-learn estimators that ours may hold: among
        them pipelines, scalers, PCA, RBFSampler, Nystroem, LDA, QDA, GaussianNB,
        LogisticRegression, LinearSVC and nearest neighbours.
    path : str or path-like
        Used as it is; no suffix is added. An older file there is replaced once the new one is
        complete.

    Raises
    ------
    ValueError
        If the object, or something that it holds, is of another class, or a callable; it says
        which attribute.
    OSError
        If the file cannot be written; an older one is then untouched.

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
    """Read what `save`, or the `save` of any class of this package, wrote.

    Predictions of what is loaded are the same bits, on the same machine with the same libraries.

    Parameters
    ----------
    path : str or path-like
        The file. It may come from a stranger: it runs nothing, and takes memory in proportion to
        its size. Whether its numbers predict anything sensible is another question.

    Returns
    -------
    object

    Raises
    ------
    FileFormatError
        If the file is foreign, truncated, damaged, of a newer version, or its parts do not fit
        together. One line that begins with the path.
    OSError
        If it cannot be read.
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
    """Names of this package's types as skops asks for them.

    ``skops.io.load(path, trusted=eigenfeat.models.trusted_types())`` loads every fitted estimator
    that skops wrote. Nearest neighbours of scikit-learn's are left out, whose trees have to be
    trusted by those who know where the file comes from.

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
