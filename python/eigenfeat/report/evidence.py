"""The subject of a report: a fitted model, labelled samples, and predictions for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor
from sklearn.neighbors import KNeighborsClassifier

from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.validation import is_table, show
from eigenfeat.expansion.features import take_rows
from eigenfeat.plotting.directions import check_image_shape
from eigenfeat.report.columns import column_importances
from eigenfeat.report.held_out import Part, cross_predict, held_out_parts, target_numbers
from eigenfeat.report.measures import measures_of, positive_class
from eigenfeat.signals.epochs import item_shapes

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = [
    "Evidence",
    "codes_of",
    "evidence_of",
    "pandas_table",
    "predictions",
    "predicts",
    "quietly",
]

_N_NEIGHBORS = 3  # neighbours that predict the class of a transformed sample
_MAX_COLUMNS = 2000  # importances are measured for at most this many columns


@dataclass(frozen=True, eq=False)
class Evidence:
    """A model, samples whose labels the model knows, and predictions of these samples.

    For a regression, `true` and `predicted` are numbers, and `classes` is empty.
    """

    model: Any
    X: Any  # array, sparse matrix or data frame; series of several lengths in an array of objects
    y: NDArray[Any]
    names: list[str]  # names of the columns
    shape: tuple[int, int] | None  # shape of images, if columns are pixels
    classes: NDArray[Any]
    true: NDArray[Any]  # class indices
    predicted: NDArray[Any]
    proba: NDArray[np.float64] | None
    by: str = "the model"  # what predicts: "the model", or nearest neighbours for a transformer
    features: NDArray[np.float64] | None = None  # features of a transformer
    unknown: int = 0  # number of omitted samples, whose labels the model does not know
    weight: NDArray[np.float64] | None = None  # weights of the samples in the measures
    regression: bool = False
    positive: int | None = None  # index of the class of interest, if one is chosen
    part: Part | None = None  # one of the new fits, if any, with the samples that it predicts

    @cached_property
    def measures(self) -> Any:
        """ClassificationMeasures or RegressionMeasures of the predictions."""
        classes = self.classes.tolist()
        return measures_of(
            classes, self.true, self.predicted, self.proba, self.weight, self.positive
        )

    @property
    def drawn_class(self) -> int | None:
        """Index of the class whose probability is drawn, against all others.

        This is the class of interest, or the second of two classes; None for more classes.
        """
        return 1 if self.positive is None and len(self.classes) == 2 else self.positive

    @property
    def probe(self) -> tuple[Any, Any, NDArray[Any]]:
        """A model, and samples and labels to measure the effects of columns on its predictions."""
        if self.part is None:
            return self.model, self.X, self.y
        return self.part.model, take_rows(self.X, self.part.rows), self.y[self.part.rows]

    @cached_property
    def importances(self) -> tuple[DataFrame, str] | None:
        """Importances of the columns and their unit; None for pixels, signals and transformers."""
        if (
            len(self.X.shape) != 2
            or len(self.names) > _MAX_COLUMNS
            or self.shape is not None
            or self.by != "the model"
            or callable(getattr(self.model, "predict_early", None))
        ):
            return None
        with quietly():
            return column_importances(*self.probe, self.names)

    @property
    def right(self) -> NDArray[np.bool_]:
        """(n,) array: whether predictions are correct."""
        return np.asarray(self.predicted == self.true)

    @property
    def labels(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.classes.tolist()]

    def drawn(self, n: int) -> Evidence:
        """Return the evidence of at most n samples, drawn at random."""
        return self.taken(draw_subsample(len(self.true), n))

    def taken(self, rows: NDArray[Any]) -> Evidence:
        """Return the evidence of the samples `rows`."""
        arrays: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else take_rows(array, rows)
            for name in ("X", "y", "true", "predicted", "proba", "features", "weight")
        }
        return replace(self, **arrays, part=None)


def evidence_of(
    model: Any,
    X: Any,
    y: NDArray[Any],
    image_shape: Any = None,
    held_out: dict[str, Any] | None = None,
    weight: NDArray[np.float64] | None = None,
    pos_label: Any = None,
) -> Evidence:
    """Predict samples with a fitted model, or with new fits of the model.

    With a transformer, a sample gets the most common class of its three nearest neighbours in the
    features. `held_out` has the arguments of `held_out_parts`, and `pos_label` is the label of the
    class of interest.
    """
    X, names = _with_names(model, X)
    if X.shape[0] != len(y):
        raise ValueError(f"y: expected {X.shape[0]} labels, one per sample, got {show(y)}")
    shape = None if image_shape is None else check_image_shape(X.shape[1], image_shape)
    regression = is_regressor(model)
    if held_out is not None and not predicts(model):
        raise ValueError(
            "model: expected a classifier or a regressor with holdout or cv, got "
            f"{type(model).__name__}, which predicts nothing"
        )
    classes: NDArray[Any] = np.empty(0)
    if regression:
        y = target_numbers(y)
    elif predicts(model) and held_out is None:
        classes = np.asarray(model.classes_)
    else:
        classes = np.unique(y)
    true = y if regression else codes_of(classes, y)
    positive = positive_class(classes.tolist(), pos_label)
    evidence = Evidence(
        model, X, y, names, shape, classes, true, true, None,
        weight=weight, regression=regression, positive=positive,
    )  # fmt: skip
    if held_out is not None:
        return _of_new_fits(evidence, held_out)
    if not predicts(model):
        return _of_neighbours(evidence)
    known = np.ones(len(y), dtype=bool) if regression else true >= 0
    if not known.any():
        raise ValueError(
            f"y: expected labels among those of the model, {classes.tolist()[:20]}, got "
            f"{sorted(set(y.tolist()), key=str)[:20]}"
        )
    if not known.all():
        evidence = replace(evidence.taken(known), unknown=int((~known).sum()))
    predicted, proba = predictions(model, evidence.X)
    return replace(evidence, predicted=predicted, proba=proba)


def _with_names(model: Any, X: Any) -> tuple[Any, list[str]]:
    """Samples, with a data frame's columns in the order of the fit, and names of the columns."""
    known, X = getattr(model, "feature_names_in_", None), pandas_table(X)
    if hasattr(X, "iloc"):
        if known is not None and set(known) <= set(X.columns):
            X = X[list(known)]
        return X, [str(name) for name in X.columns]
    if len(set(item_shapes(X, "samples"))) > 1:  # series of several lengths
        items = np.empty(len(X), dtype=object)
        items[:] = X
        return items, []
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
    if X.dtype == object and len(X.shape) == 1 and len(X) and np.ndim(X[0]):
        return X, []
    if len(X.shape) < 2:
        raise ValueError(f"X: expected at least two dimensions, got shape {X.shape}")
    if known is not None and len(known) == X.shape[1]:
        return X, [str(name) for name in known]
    return X, [f"column {j}" for j in range(X.shape[1])]


def _of_new_fits(evidence: Evidence, held_out: dict[str, Any]) -> Evidence:
    """The evidence of held-out samples, predicted by new fits of the model."""
    parts = held_out_parts(evidence.y, **held_out, continuous=evidence.regression)
    with quietly():
        result = cross_predict(evidence.model, evidence.X, evidence.y, parts, evidence.weight)
    labels, first = result.predicted, result.parts[0]
    return replace(
        evidence.taken(result.rows),
        predicted=labels if evidence.regression else codes_of(evidence.classes, labels),
        proba=result.proba,
        part=Part(first.model, np.searchsorted(result.rows, first.rows)),
    )


def _of_neighbours(evidence: Evidence) -> Evidence:
    """The evidence of a transformer: the most common class among neighbours in the features."""
    with quietly():
        features = evidence.model.transform(evidence.X)
    dense = features.toarray() if hasattr(features, "toarray") else features
    features = np.asarray(dense, dtype=np.float64)
    others = len(features) - 1
    if not others:
        raise ValueError("y: expected at least two samples with a transformer, got one")
    count = min(_N_NEIGHBORS, others)
    search = KNeighborsClassifier(count).fit(features, evidence.true)
    by = f"{count} nearest neighbours in the features of the other samples"
    return replace(evidence, predicted=search.predict(None), features=features, by=by)


def pandas_table(X: Any) -> Any:
    """A table of polars or pyarrow as a pandas data frame; other samples unchanged."""
    return X.to_pandas() if is_table(X) and not hasattr(X, "iloc") else X


def codes_of(classes: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Indices of labels among classes; -1 for other labels."""
    code_of = {label: code for code, label in enumerate(np.asarray(classes).tolist())}
    return np.array([code_of.get(label, -1) for label in y.tolist()], dtype=np.intp)


def predicts(model: Any) -> bool:
    """Whether a model predicts numbers or classes; False for transformers and clusterings."""
    supervised = is_regressor(model) or is_classifier(model) or hasattr(model, "classes_")
    return supervised and callable(getattr(model, "predict", None))


def predictions(model: Any, X: Any) -> tuple[NDArray[Any], NDArray[np.float64] | None]:
    """Predicted numbers, or indices of the predicted classes; probabilities, or None."""
    with quietly():
        warnings.filterwarnings("always", "X: ")  # about the samples
        predicted = np.asarray(model.predict(X))
        if is_regressor(model):
            return predicted.ravel() if predicted.shape[1:] == (1,) else predicted, None
        codes = codes_of(model.classes_, predicted)
        if not callable(getattr(model, "predict_proba", None)):
            return codes, None
        return codes, np.asarray(model.predict_proba(X), dtype=np.float64)


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress warnings, such as those about missing feature names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
