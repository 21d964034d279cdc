"""The report: a page about a fitted model and its predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved_files import replacing
from eigenfeat._base.types import Rows
from eigenfeat._base.validation import check_path, show
from eigenfeat.report.html import Html, fill_page, paragraph

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["write_report"]


def write_report(
    model: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    image_shape: tuple[int, int] | None = None,
    sources: Mapping[str, object] | None = None,
) -> str:
    """Write a self-contained HTML page about a fitted model and its predictions for samples.

    The page needs no network: styles and pictures are inside it. The same model and samples give
    the same page. :doc:`/guide/report` lists its sections.

    Parameters
    ----------
    model : estimator
        A fitted classifier or transformer of this package or of scikit-learn, or a pipeline or
        search of them. Features of a transformer are measured by the nearest neighbours among these
        samples.
    X : (n, d) array-like, sparse matrix or pandas data frame
        Samples that had no part in the fit: figures of training samples are too good.
    y : (n,) array-like
        Labels. Samples with labels that the model does not know are counted and left out.
    path : str or path-like, optional
        The file. An existing file is replaced once the new one is complete.
    title : str, optional
        Title of the page; by default "Report" and the class of the model.
    image_shape : (rows, columns), optional
        Shape of the images, if the columns are their pixels.
    sources : mapping, optional
        Further entries of the head of the page, by name, such as files.

    Returns
    -------
    str
        The page.

    Raises
    ------
    ValueError
        If the model is not fitted, or samples, labels or parameters are invalid.
    OSError
        If the file cannot be written; an existing file is then unchanged.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import TableClassifier
    >>> from eigenfeat.report import write_report
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TableClassifier().fit(X[::2], y[::2])
    >>> "<title>Wines</title>" in write_report(model, X[1::2], y[1::2], title="Wines")
    True
    """
    if path is not None:
        check_path(path)
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title: expected text or None, got {show(title)}")
    if not hasattr(model, "fit") or not hasattr(model, "get_params"):
        raise ValueError(f"model: expected a fitted estimator, got {show(model)}")
    check_is_fitted(model)
    name = type(model).__name__
    predicts = callable(getattr(model, "predict", None)) and hasattr(model, "classes_")
    if is_regressor(model) or not (predicts or callable(getattr(model, "transform", None))):
        raise ValueError(f"model: expected a classifier or a transformer, got {name}")
    labels = np.asarray(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y: expected one label per sample, got {show(y)}")
    from matplotlib import rc_context

    from eigenfeat.report.evidence import evidence_of
    from eigenfeat.report.sections import contents

    evidence = evidence_of(model, X, labels, image_shape)
    with rc_context({"text.parse_math": False}):  # labels may contain dollars
        figures, sections = contents(evidence)
    k = len(evidence.classes)
    lead = [paragraph(f"{name} on {len(evidence.names):,} columns, {k} classes.")]
    lead += [paragraph(f"{key}: ", value) for key, value in (sources or {}).items()]
    head = Html("".join([*lead, figures]))
    page = fill_page(f"Report: {name}" if title is None else title, head, sections)
    if path is not None:
        with replacing(path) as file:
            file.write(page.encode())
    return page
