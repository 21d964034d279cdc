"""The report: a page about a fitted model and its predictions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved_files import replacing
from eigenfeat._base.types import Rows
from eigenfeat._base.validation import check_path, counted, show
from eigenfeat.report.evidence import Evidence, evidence_of, predicts
from eigenfeat.report.held_out import origin
from eigenfeat.report.html import Html, fill_page, paragraph
from eigenfeat.samples.labelled import row_weights

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
    seen_in_fit: bool | None = None,
    holdout: float | None = None,
    cv: int | None = None,
    random_state: int = 0,
    sample_weight: ArrayLike | None = None,
    pos_label: object = None,
) -> str:
    """Write a self-contained HTML page about a fitted model and its predictions for samples.

    The page needs no network: styles and pictures are inside it. The same model and samples give
    the same page. :doc:`/guide/report` lists its sections.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or transformer of this package or of scikit-learn, or a
        pipeline or search of them. Features of a transformer are measured by the nearest neighbours
        among these samples.
    X : (n, d) array-like, sparse matrix, pandas data frame, epochs, or list of series
        Samples that had no part in the fit: measures of training samples are too good.
    y : (n,) array-like
        Labels, or the targets of a regression. Samples with labels that the model does not know are
        counted and left out.
    path : str or path-like, optional
        The file. An existing file is replaced once the new file is complete.
    title : str, optional
        Title of the page; by default "Report" and the class of the model.
    image_shape : (rows, columns), optional
        Shape of the images, if the columns are their pixels.
    sources : mapping, optional
        Further entries of the head of the page, by name, such as files.
    seen_in_fit : bool, optional
        Whether the samples, or their files, had a part in the fit, which the page states. None:
        unknown.
    holdout : float, optional
        Share of the samples to hold out; they are predicted by a new fit of the model to the other
        samples.
    cv : int, optional
        Number of folds; each fold is predicted by a new fit of the model to the other folds.
    random_state : int, default=0
        Seed of the draws of `holdout` and `cv`.
    sample_weight : (n,) array-like, optional
        Weights of the samples in the measures, and in the new fits of `holdout` and `cv`.
    pos_label : label, optional
        The class of interest, such as "fraud". The page shows its average precision, its
        calibration, and the effects of columns on its probability, against all other classes. By
        default, the page shows the average precision of the rarest class, and calibration and
        effects for the second of two classes, or for all of more classes.

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
    >>> page = write_report(model, X[1::2], y[1::2], title="Wines", seen_in_fit=False)
    >>> "<title>Wines</title>" in page
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
    if not (predicts(model) or callable(getattr(model, "transform", None))):
        raise ValueError(f"model: expected a classifier, a regressor or a transformer, got {name}")
    labels = np.asarray(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y: expected one label per sample, got {show(y)}")
    from matplotlib import rc_context

    from eigenfeat.report.sections import contents

    held_out = None
    if holdout is not None or cv is not None:
        if callable(getattr(model, "predict_early", None)):
            raise ValueError(
                "model: expected a classifier or a regressor with holdout or cv, got an early "
                "classifier"
            )
        held_out = {"holdout": holdout, "cv": cv, "random_state": random_state}
    weight = None if sample_weight is None else row_weights(sample_weight, len(labels))
    evidence = evidence_of(model, X, labels, image_shape, held_out, weight, pos_label)
    with rc_context({"text.parse_math": False}):  # labels may contain dollars
        figures, sections = contents(evidence)
    n_classes = "" if evidence.regression else f", {len(evidence.classes)} classes"
    lead = [paragraph(f"{name} on {_inputs(evidence)}{n_classes}.")]
    lead += [paragraph(f"{key}: ", value) for key, value in (sources or {}).items()]
    if evidence.features is None:
        lead.append(paragraph(origin(seen_in_fit, holdout, cv)[1]))
    head = Html("".join([*lead, figures]))
    page = fill_page(f"Report: {name}" if title is None else title, head, sections)
    if path is not None:
        with replacing(path) as file:
            file.write(page.encode())
    return page


def _inputs(evidence: Evidence) -> str:
    """What the model reads, in words: columns, or series."""
    shape = evidence.X.shape
    if len(shape) == 1:
        return "series of several lengths"
    return counted(shape[1], "channel" if len(shape) == 3 else "column")
