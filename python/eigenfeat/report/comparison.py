"""Comparison of models on a table by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.validation import check_number, check_whole, is_table, show
from eigenfeat.report.evidence import quietly
from eigenfeat.report.held_out import cross_predict, held_out_parts, target_numbers
from eigenfeat.report.measures import (
    ClassificationMeasures,
    RegressionMeasures,
    measures_of,
)
from eigenfeat.report.peers import Peer, peer_table, peers
from eigenfeat.samples.labelled import row_weights
from eigenfeat.samples.targets import task_of
from eigenfeat.tables import TableClassifier, TableRegressor

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from eigenfeat._base.types import Codes, Estimator, Rows

__all__ = ["ComparedModel", "compare", "comparison_figure"]


@dataclass(frozen=True, eq=False)
class ComparedModel:
    """One model of a comparison.

    Attributes
    ----------
    name : str
    measures : ClassificationMeasures or RegressionMeasures, or None
        Measures of all held-out samples together; None for a model that was not measured.
    fit_seconds : float
        Mean time of a fit over the folds, with the preparation of the columns.
    predict_seconds : float
        Mean time of the predictions of the held-out samples.
    n_folds : int
        Number of folds that were measured.
    note : str
        Why a model or some of its folds were not measured; empty for others.
    """

    name: str
    measures: ClassificationMeasures | RegressionMeasures | None = None
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    n_folds: int = 0
    note: str = ""

    @property
    def loss(self) -> float:
        """Log loss, or root mean squared error, by which models are sorted; infinite without it."""
        if isinstance(self.measures, ClassificationMeasures):
            return np.inf if self.measures.log_loss is None else self.measures.log_loss
        return np.inf if self.measures is None else self.measures.root_mean_squared_error


def compare(
    X: Rows,
    y: ArrayLike,
    *,
    task: str = "auto",
    models: Mapping[str, Estimator] | None = None,
    cv: int = 5,
    time_limit: float | None = None,
    random_state: int = 0,
    n_threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    progress: Callable[[ComparedModel], object] | None = None,
) -> list[ComparedModel]:
    """Compare models on a table by cross-validation.

    Use it before choosing a model: `TableClassifier` or `TableRegressor`, models of scikit-learn,
    and those of LightGBM, CatBoost and XGBoost that are installed, with default parameters and on
    the same folds. Columns are prepared as each other model requires: categories are one-hot for
    linear models and SVM, numeric for the forest and native for boosting, and medians replace
    missing numbers for models that do not take them.

    Parameters
    ----------
    X : (n, d) data frame or array
        Samples; the columns may be text, categories, dates, and have gaps.
    y : (n,) array-like
        Labels, or targets of a regression.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes many different numbers for a regression.
    models : mapping of str to estimator, optional
        Further models by name, which take `X` as it is. A model with the name of another one, such
        as "TableClassifier", takes its place.
    cv : int, default=5
        Number of folds, drawn at random and by class.
    time_limit : float, optional
        Seconds for each model. After the fold in which they end, no further fold is fitted; the
        model is measured on the folds so far. Pools of views also end their search for views.
    random_state : int, default=0
        Seed of the folds and of the models.
    n_threads : int, optional
        Number of threads; all by default.
    sample_weight : (n,) array-like, optional
        Weights of the samples in the fits and the measures.
    progress : callable, optional
        Called with each model once it is measured.

    Returns
    -------
    list of ComparedModel
        The model with the lowest log loss, or root mean squared error, comes first; models that
        were not measured come last, with the reason.

    Raises
    ------
    ValueError
        If the task is not clear, or the samples do not suffice for the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from eigenfeat.report import compare
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> rows = compare(X[["alcohol", "hue"]], y, models={"Bayes": GaussianNB()}, cv=2)
    >>> sorted(row.name for row in rows if row.measures)[0]
    'Bayes'
    """
    samples: Any = X if is_table(X) else np.asarray(X)
    if len(samples.shape) != 2:
        raise ValueError(f"X: expected a data frame or a dense array (n, d), got {show(X)}")
    labels = np.asarray(plain_labels(y))
    if labels.shape != samples.shape[:1]:
        raise ValueError(f"y: expected {samples.shape[0]} labels, one per sample, got {show(y)}")
    if time_limit is not None and not check_number(time_limit, "time_limit") > 0:
        raise ValueError(f"time_limit: expected a number > 0, got {time_limit:g}")
    if n_threads is not None:
        check_whole(n_threads, "n_threads", at_least=1)
    regression = _is_regression(task, labels)
    classes: NDArray[Any] = np.empty(0)
    target: NDArray[Any]
    if regression:
        labels = target = target_numbers(labels)
    else:
        classes, target = np.unique(labels, return_inverse=True)
        check_two_labels(classes)
    weight = None if sample_weight is None else row_weights(sample_weight, len(labels))
    parts = held_out_parts(labels, cv=cv, random_state=random_state, continuous=regression)
    options: dict[str, Any] = {"random_state": random_state, "n_threads": n_threads}
    limit = None if time_limit is None else time_limit / cv
    kind = TableRegressor if regression else TableClassifier
    ours = kind(**options, time_limit=limit)
    table = peer_table(samples)
    own = [Peer(*one) for one in ({type(ours).__name__: ours} | dict(models or {})).items()]
    taken = {peer.name for peer in own}
    known = peers(table, regression=regression, **options)
    others = [peer for peer in known if peer.name not in taken]
    out = []
    for peer in [*own, *others]:
        given = samples if peer in own else table
        one = _compared(peer, given, target, classes, parts, weight, time_limit)
        out.append(one)
        if progress is not None:
            progress(one)
    return sorted(out, key=lambda one: (one.measures is None, one.loss))


def _is_regression(task: str, labels: NDArray[Any]) -> bool:
    if task not in ("auto", "classification", "regression"):
        raise ValueError(
            f"task: expected 'auto', 'classification' or 'regression', got {show(task)}"
        )
    found, n_values = task_of(labels) if task == "auto" else (task, 0)
    if found == "unclear":
        raise ValueError(
            f"task: expected 'classification' or 'regression', got 'auto' for {n_values:,} "
            "different numbers in y"
        )
    return found == "regression"


def _compared(
    peer: Peer,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    parts: list[tuple[Codes, Codes]],
    weight: NDArray[np.float64] | None,
    time_limit: float | None,
) -> ComparedModel:
    """Measure one model; the note names an error that its fit raises."""
    if peer.model is None:
        return ComparedModel(peer.name, note=peer.reason)
    if len(classes) and is_regressor(peer.model):
        return ComparedModel(peer.name, note="a regressor, which predicts no classes")
    if peer.texts:
        X = _with_texts(X)
    try:
        with quietly():
            held = cross_predict(peer.model, X, y, parts, weight, time_limit)
    except Exception as error:  # whatever a model of another package raises
        reason = " ".join(str(error).split())[:200]
        return ComparedModel(peer.name, note=f"{type(error).__name__}: {reason}")
    weight = None if weight is None else weight[held.rows]
    predicted = held.predicted.ravel().astype(np.intp) if len(classes) else held.predicted
    measures = measures_of(classes.tolist(), y[held.rows], predicted, held.proba, weight)
    n = len(held.parts)
    note = "" if n == len(parts) else f"time limit after {n} of {len(parts)} folds"
    return ComparedModel(peer.name, measures, held.fit_seconds, held.predict_seconds, n, note)


def _with_texts(table: Any) -> Any:
    """A table with categories as text, of which "missing" is one."""
    coded = list(table.select_dtypes(include="category").columns)
    texts = {name: table[name].astype(object).fillna("missing").astype(str) for name in coded}
    return table.assign(**texts)


def comparison_figure(rows: list[ComparedModel]) -> Figure:
    """Draw the losses of models beside the times of their fits.

    Parameters
    ----------
    rows : list of ComparedModel
        As `compare` returns them.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from eigenfeat.plotting.figures import ACCENT, BLUE, new_figure, plain

    shown = [row for row in rows if row.measures is not None and np.isfinite(row.loss)][::-1]
    if not shown:
        raise ValueError("rows: expected a model that was measured, got none")
    figure = new_figure(8.0, 1.2 + 0.34 * len(shown))
    left, right = figure.subplots(1, 2, sharey=True)
    colours = [ACCENT if row.name.startswith("Table") else BLUE for row in shown]
    places = range(len(shown))
    left.scatter([row.loss for row in shown], places, 36, colours)
    left.set_yticks(places, [row.name for row in shown])
    measures = shown[0].measures
    regression = isinstance(measures, RegressionMeasures)
    left.set(xlabel="root mean squared error" if regression else "log loss")
    right.scatter([max(row.fit_seconds, 1e-4) for row in shown], places, 36, colours)
    right.set(xlabel="seconds of a fit", xscale="log")
    right.xaxis.set_major_formatter("{x:g}")
    plain(left, right, grid="both")
    return figure
