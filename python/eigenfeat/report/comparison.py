"""Comparison of models on a table by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_regressor

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.validation import check_number, check_whole, is_table, show
from eigenfeat.report.evidence import pandas_table, quietly
from eigenfeat.report.held_out import cross_predict, held_out_parts, target_numbers
from eigenfeat.report.measures import measures_of, positive_class
from eigenfeat.report.peers import Peer, peer_table, peers
from eigenfeat.samples.labelled import row_weights
from eigenfeat.samples.targets import task_of
from eigenfeat.tables import TableClassifier, TableRegressor

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from eigenfeat._base.types import Codes, Estimator, Rows

__all__ = ["compare", "comparison_figure"]

# Columns of measures; models are sorted by the first measure.
_CLASSIFICATION_MEASURES = ("log_loss", "auc", "balanced_accuracy", "accuracy")
_REGRESSION_MEASURES = ("root_mean_squared_error", "mean_absolute_error", "r2")


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
    pos_label: object = None,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> DataFrame:
    """Compare models on a table by cross-validation.

    The models are `TableClassifier` or `TableRegressor`, models of scikit-learn, and LightGBM,
    CatBoost and XGBoost if they are installed, with default parameters and on the same folds.
    Columns are prepared for each model of another package: categories are one-hot for linear
    models, SVM and the forest, and native for boosting; columns of more than 250 categories become
    numeric codes. Medians replace missing numbers for models that do not take NaN. If all missing
    numbers of a column are in the held-out fold, the mean of the other folds replaces them.

    Parameters
    ----------
    X : (n, d) data frame or array
        Samples; the columns may be text, categories or dates, and have missing entries.
    y : (n,) array-like
        Labels, or targets of a regression.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is a regression if y has many distinct numbers.
    models : mapping of str to estimator, optional
        Further models by name, which are fitted to `X` unchanged. A model with the name of a
        default model, such as "TableClassifier", replaces it.
    cv : int, default=5
        Number of folds, drawn at random and by class.
    time_limit : float, optional
        Seconds for each model. After this time no further fold is fitted, and the model is measured
        on the folds so far. Pools of views also stop adding views.
    random_state : int, default=0
        Seed of the folds and of the models.
    n_threads : int, optional
        Number of threads; all by default.
    sample_weight : (n,) array-like, optional
        Weights of the samples in the fits and the measures.
    pos_label : label, optional
        The class of interest, such as "fraud". The result then has a column "average_precision",
        the area under the precision-recall curve of this class against all others.
    progress : callable, optional
        Called with the row of each model, as a dictionary, once the model is measured. The entry
        "measures" of a model that could be fitted is a dictionary of further measures, for JSON.

    Returns
    -------
    pandas.DataFrame
        A row for each model, the lowest log loss or root mean squared error first. Columns are
        measures of all held-out samples together ("log_loss", "auc", "balanced_accuracy",
        "accuracy"; for a regression "root_mean_squared_error", "mean_absolute_error", "r2"), the
        mean seconds of a fold ("fit_seconds" with the preparation of the columns,
        "predict_seconds"), the number of measured folds ("n_folds"), and the reason if not all
        folds were measured ("note").

    Raises
    ------
    ValueError
        If the task is not clear, the samples do not suffice for the folds, or y has no label
        `pos_label`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from eigenfeat.report import compare
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> table = compare(X[["alcohol", "hue"]], y, models={"Bayes": GaussianNB()}, cv=2)
    >>> bool(table.loc["Bayes", "accuracy"] > table.loc["class shares", "accuracy"])
    True
    """
    import pandas as pd

    samples: Any = pandas_table(X) if is_table(X) else np.asarray(X)
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
    positive = positive_class(classes.tolist(), pos_label)
    weight = None if sample_weight is None else row_weights(sample_weight, len(labels))
    parts = held_out_parts(labels, cv=cv, random_state=random_state, continuous=regression)
    options: dict[str, Any] = {"random_state": random_state, "n_threads": n_threads}
    limit = None if time_limit is None else time_limit / cv
    estimator = TableRegressor if regression else TableClassifier
    model = estimator(**options, time_limit=limit)
    unprepared = {type(model).__name__: model} | dict(models or {})
    table = peer_table(samples)
    inputs = [(Peer(*item), samples) for item in unprepared.items()]
    for peer in peers(table, regression=regression, **options):
        if peer.name not in unprepared:
            inputs.append((peer, table))
    lines = []
    for peer, columns in inputs:
        line = _measured(peer, columns, target, classes, parts, weight, time_limit, positive)
        if progress is not None:
            progress(line)
        lines.append({name: value for name, value in line.items() if name != "measures"})
    frame = pd.DataFrame(lines).set_index("model")
    return frame.sort_values(frame.columns[0], kind="stable")


def _is_regression(task: str, labels: NDArray[Any]) -> bool:
    if task not in ("auto", "classification", "regression"):
        raise ValueError(
            f"task: expected 'auto', 'classification' or 'regression', got {show(task)}"
        )
    detected, n_values = task_of(labels) if task == "auto" else (task, 0)
    if detected == "unclear":
        raise ValueError(
            f"task: expected 'classification' or 'regression', got 'auto' for {n_values:,} "
            f"distinct {'numbers' if labels.dtype.kind in 'iuf' else 'texts'} in y"
        )
    return detected == "regression"


def _measured(
    peer: Peer,
    X: Any,
    y: NDArray[Any],
    classes: NDArray[Any],
    parts: list[tuple[Codes, Codes]],
    weight: NDArray[np.float64] | None,
    time_limit: float | None,
    positive: int | None,
) -> dict[str, Any]:
    """Row of a model in the comparison; its note is the error that the model raises, if any."""
    names: tuple[str, ...] = _CLASSIFICATION_MEASURES if len(classes) else _REGRESSION_MEASURES
    names += () if positive is None else ("average_precision",)
    line = {"model": peer.name} | dict.fromkeys((*names, "fit_seconds", "predict_seconds"), np.nan)
    line |= {"n_folds": 0, "note": peer.reason}
    if peer.model is None:
        return line
    if len(classes) and is_regressor(peer.model):
        return line | {"note": "a regressor, which predicts no classes"}
    if peer.texts:
        X = _with_texts(X)
    try:
        with quietly():
            held_out = cross_predict(peer.model, X, y, parts, weight, time_limit)
    except Exception as error:  # models of other packages may raise any error
        return line | {"note": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    weight = None if weight is None else weight[held_out.rows]
    predicted = held_out.predicted
    predicted = predicted.ravel().astype(np.intp) if len(classes) else predicted
    true, proba = y[held_out.rows], held_out.proba
    measures = measures_of(classes.tolist(), true, predicted, proba, weight, positive)
    n = len(held_out.parts)
    note = "" if n == len(parts) else f"time limit after {n} of {len(parts)} folds"
    seconds = {"fit_seconds": held_out.fit_seconds, "predict_seconds": held_out.predict_seconds}
    values = np.array([getattr(measures, name) for name in names], dtype=float)  # None: NaN
    line |= dict(zip(names, values.tolist(), strict=True))
    return line | seconds | {"n_folds": n, "note": note, "measures": measures.as_dict()}


def _with_texts(table: Any) -> Any:
    """A table with categories as text, and "missing" in place of missing categories."""
    coded = list(table.select_dtypes(include="category").columns)
    texts = {name: table[name].astype(object).fillna("missing").astype(str) for name in coded}
    return table.assign(**texts)


def comparison_figure(found: DataFrame) -> Figure:
    """Draw the losses of models beside the times of their fits.

    Parameters
    ----------
    found : pandas.DataFrame
        Result of `compare`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from eigenfeat.plotting.figures import ACCENT, BLUE, new_figure, plain

    loss = found.columns[0]
    shown = found[np.isfinite(found[loss])][::-1]
    if not len(shown):
        raise ValueError("found: expected a model that was measured, got none")
    figure = new_figure(8.0, 1.2 + 0.34 * len(shown))
    left, right = figure.subplots(1, 2, sharey=True)
    colours = [ACCENT if str(name).startswith("Table") else BLUE for name in shown.index]
    places = range(len(shown))
    left.scatter(shown[loss], places, 36, colours)
    left.set_yticks(places, shown.index)
    left.set(xlabel=loss.replace("_", " "))
    right.scatter(shown["fit_seconds"].clip(lower=1e-4), places, 36, colours)
    right.set(xlabel="seconds of a fit", xscale="log")
    right.xaxis.set_major_formatter("{x:g}")
    plain(left, right, grid="both")
    return figure
