"""Measures of predictions, each beside the measure of a constant prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)

from eigenfeat._base.validation import check_some_weight, counted, show

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["ClassificationMeasures", "RegressionMeasures", "measures_of", "positive_class"]

_MAX_RANKED = 10_000_000  # most probabilities, n * k, that are sorted for areas under curves
_MAX_NAMED = 3  # classes of recall 0 that the verdict names

_Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClassificationMeasures:
    """Measures of a classification.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    errors : int
        Number of samples that are predicted wrongly.
    accuracy : float
        Share of the weight that is predicted correctly.
    standard_error : float
        Standard error of `accuracy`.
    most_common : object
        The most common class.
    majority_accuracy : float
        Accuracy of always predicting the most common class.
    majority_errors : int
        Errors of always predicting the most common class.
    balanced_accuracy : float
        Mean recall of the classes.
    chance : float
        Balanced accuracy of any constant prediction.
    log_loss : float or None
        Mean log loss; None without probabilities.
    prior_log_loss : float
        Log loss of the shares of the classes among these samples.
    auc : float or None
        Area under the ROC curve; with more than two classes, the mean of the classes against all
        others. A constant prediction has 0.5.
    positive : object
        The class of interest, against all others; the rarest class unless another is chosen.
    positive_is_chosen : bool
        Whether the class of interest is chosen.
    average_precision : float or None
        Area under the precision-recall curve of the class of interest.
    base_rate : float
        Share of the class of interest, which is the average precision of a constant prediction.
    by_class : pandas.DataFrame
        A row for each class, by its label: "samples"; "share" of the weight, which is the average
        precision of a constant prediction; "precision", NaN if the class is never predicted;
        "recall", NaN if the class does not occur; "f1"; and with probabilities "auc" against all
        other classes and "average_precision".
    confusion : (k, k) array of int
        Numbers of samples: true classes in rows, predicted classes in columns.
    """

    n_samples: int
    errors: int
    accuracy: float
    standard_error: float
    most_common: Any
    majority_accuracy: float
    majority_errors: int
    balanced_accuracy: float
    chance: float
    log_loss: float | None
    prior_log_loss: float
    auc: float | None
    positive: Any
    positive_is_chosen: bool
    average_precision: float | None
    base_rate: float
    by_class: DataFrame
    confusion: NDArray[np.int64]

    @property
    def classes(self) -> list[Any]:
        """Labels of the classes."""
        return self.by_class.index.tolist()

    def confused(self, count: int) -> list[tuple[int, int, int]]:
        """Return the most frequent confusions of classes.

        Parameters
        ----------
        count : int
            Number of confusions to return at most.

        Returns
        -------
        list of (int, int, int)
            Indices of the true and of the predicted class, and number of samples, descending.
        """
        wrong = self.confusion - np.diag(np.diag(self.confusion))
        order = np.argsort(-wrong, axis=None, kind="stable")[:count]
        pairs = (divmod(int(at), len(wrong)) for at in order)
        return [(i, j, int(wrong[i, j])) for i, j in pairs if wrong[i, j]]

    def verdict(self, unit: str = "sample") -> str:
        """Compare the predictions with a constant prediction, in sentences.

        Parameters
        ----------
        unit : str, default="sample"
            Noun for a sample.

        Returns
        -------
        str
            Sentences; percentages are shares of the samples' weight.
        """
        amount = (
            f"{counted(self.errors, 'error')} in {counted(self.n_samples, unit)} "
            f"({1 - self.accuracy:.1%})"
        )
        always = (
            f"always predicting {show(self.most_common)} makes {self.majority_errors:,} "
            f"({1 - self.majority_accuracy:.1%})"
        )
        if self.accuracy > self.majority_accuracy:
            sentences = [f"{amount}; {always}."]
        else:
            sentences = [f"No better than a constant: {amount}; {always}."]
        table = self.by_class
        missed = table.loc[(table["samples"] > 0) & (table["recall"] == 0), "samples"]
        for label, n in missed.head(_MAX_NAMED).items():
            sentences.append(f"None of the {counted(n, unit)} of class {show(label)} is found.")
        if len(missed) > _MAX_NAMED:
            others = counted(len(missed) - _MAX_NAMED, "other class")
            sentences.append(f"No sample of {others} is found.")
        if self.log_loss is not None and self.log_loss >= self.prior_log_loss:
            sentences.append("The probabilities are no better than the shares of the classes.")
        return " ".join(sentences)

    def compared(self) -> list[tuple[str, float, float, str]]:
        """Return measures beside those of a constant prediction.

        Returns
        -------
        list of (str, float, float, str)
            Name, value, value of a constant prediction, and name of the constant prediction.
            Measures that are poor for every constant prediction come first.
        """
        rows = [
            ("balanced accuracy", self.balanced_accuracy, self.chance, "any constant prediction")
        ]
        if self.auc is not None:
            mean = "" if len(self.by_class) == 2 else ", mean of the classes"
            rows.append((f"AUC{mean}", self.auc, 0.5, "any constant prediction"))
        is_rare = self.base_rate < 0.5 * self.chance or len(self.by_class) == 2
        if self.average_precision is not None and (is_rare or self.positive_is_chosen):
            name = f"average precision of {show(self.positive, 24)}"
            rows.append((name, self.average_precision, self.base_rate, "share of the class"))
        if self.log_loss is not None:
            rows.append(("log loss", self.log_loss, self.prior_log_loss, "shares of the classes"))
        always = f"always {show(self.most_common, 24)}"
        rows.append(("accuracy", self.accuracy, self.majority_accuracy, always))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return the measures in types of JSON.

        Returns
        -------
        dict of str to object
            Values of the attributes; None for undefined numbers.
        """
        return _json_value(asdict(self)) | {"classes": self.classes}


@dataclass(frozen=True)
class RegressionMeasures:
    """Measures of a regression.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    root_mean_squared_error : float
        Root mean squared error, in units of the target.
    mean_absolute_error : float
        Mean absolute error, in units of the target.
    r2 : float
        Share of the variance that is explained; NaN for one sample.
    mean_root_mean_squared_error : float
        Root mean squared error of predicting the mean of these samples.
    mean_mean_absolute_error : float
        Mean absolute error of predicting the mean of these samples.
    """

    n_samples: int
    root_mean_squared_error: float
    mean_absolute_error: float
    r2: float
    mean_root_mean_squared_error: float
    mean_mean_absolute_error: float

    def verdict(self, unit: str = "sample") -> str:
        """Compare the predictions with the mean of the target, in a sentence.

        Parameters
        ----------
        unit : str, default="sample"
            Noun for a sample.

        Returns
        -------
        str
        """
        better = self.root_mean_squared_error < self.mean_root_mean_squared_error
        start = "Root" if better else "No better than the mean: root"
        return (
            f"{start} mean squared error {self.root_mean_squared_error:.6g} in "
            f"{counted(self.n_samples, unit)}; the mean has "
            f"{self.mean_root_mean_squared_error:.6g}."
        )

    def compared(self) -> list[tuple[str, float, float, str]]:
        """Return measures beside those of the mean of the target.

        Returns
        -------
        list of (str, float, float, str)
            Name, value, value of the constant prediction, and name of the constant prediction.
        """
        mean = "mean of the target"
        return [
            ("R^2", self.r2, 0.0, mean),
            ("root mean squared error", self.root_mean_squared_error,
             self.mean_root_mean_squared_error, mean),
            ("mean absolute error", self.mean_absolute_error, self.mean_mean_absolute_error, mean),
        ]  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """Return the measures in types of JSON.

        Returns
        -------
        dict of str to object
            Values of the attributes; None for undefined numbers.
        """
        return dict(_json_value(asdict(self)))


def positive_class(classes: Sequence[Any], pos_label: Any) -> int | None:
    """Index of the class of interest, by its label or the text of its label; None without label.

    `classes` is empty for a regression.
    """
    if pos_label is None:
        return None
    if not len(classes):
        raise ValueError(f"pos_label: expected no label for a regression, got {show(pos_label)}")
    equal = (code for code, label in enumerate(classes) if label == pos_label)
    named = (code for code, label in enumerate(classes) if str(label) == str(pos_label))
    code = next(equal, next(named, None))
    if code is None:
        raise ValueError(
            f"pos_label: expected one of the classes {show(list(classes), 500)}, got "
            f"{show(pos_label)}"
        )
    return code


def measures_of(
    classes: Sequence[Any],
    true: NDArray[Any],
    predicted: NDArray[Any],
    proba: _Array | None,
    sample_weight: _Array | None,
    positive: int | None = None,
) -> ClassificationMeasures | RegressionMeasures:
    """Measure predictions of classes, or of numbers where there are no classes.

    `positive` is the index of the class of interest; by default the rarest class.
    """
    if not len(classes):
        return _regression_measures(true, predicted, sample_weight)
    return _classification_measures(classes, true, predicted, proba, sample_weight, positive)


def _classification_measures(
    classes: Sequence[Any],
    true: NDArray[np.integer[Any]],
    predicted: NDArray[np.integer[Any]],
    proba: _Array | None,
    sample_weight: _Array | None,
    positive: int | None,
) -> ClassificationMeasures:
    """Measure predicted classes (n,), as indices of `classes`, and probabilities (n, k)."""
    import pandas as pd

    k, n = len(classes), len(true)
    labels = np.arange(k)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    check_some_weight(bool(weight.any()))
    share = np.bincount(true, weight, minlength=k) / weight.sum()
    counts = np.bincount(true, minlength=k)
    present = share > 0
    accuracy = float(np.average(true == predicted, weights=weight))
    effective_n = weight.sum() ** 2 / (weight**2).sum()  # Kish's effective sample size
    common = int(share.argmax())
    rarest = int(np.where(present, share, np.inf).argmin())
    interest = rarest if positive is None else positive

    precision, recall, f1, _ = precision_recall_fscore_support(
        true, predicted, labels=labels, sample_weight=weight, zero_division=np.nan
    )
    recall = np.where(present, recall, np.nan)
    loss, areas = None, np.full((k, 2), np.nan)
    ranked = proba is not None and proba.size <= _MAX_RANKED
    if proba is not None:
        proba = np.asarray(proba, dtype=np.float64)
        proba = proba / proba.sum(axis=1, keepdims=True)
        loss = float(log_loss(true, proba, labels=labels, sample_weight=weight))
    if ranked and present.sum() > 1:
        assert proba is not None
        one_vs_rest = true[:, None] == labels[present], proba[:, present]
        options: dict[str, Any] = {"average": None, "sample_weight": weight}
        areas[present, 0] = roc_auc_score(*one_vs_rest, **options)
        areas[present, 1] = average_precision_score(*one_vs_rest, **options)
    columns = {"samples": counts, "share": share}
    columns |= {"precision": precision, "recall": recall, "f1": f1}
    if ranked:
        columns |= {"auc": areas[:, 0], "average_precision": areas[:, 1]}
    by_class = pd.DataFrame(columns, index=pd.Index(classes, name="label"))
    known = ~np.isnan(areas[:, 0])
    constant = np.broadcast_to(share, (n, k))
    return ClassificationMeasures(
        n_samples=n,
        errors=int((true != predicted).sum()),
        accuracy=accuracy,
        standard_error=float(np.sqrt(accuracy * (1 - accuracy) / effective_n)),
        most_common=classes[common],
        majority_accuracy=float(share[common]),
        majority_errors=int(n - counts[common]),
        balanced_accuracy=float(np.nanmean(recall)),
        chance=1.0 / int(present.sum()),
        log_loss=loss,
        prior_log_loss=float(log_loss(true, constant, labels=labels, sample_weight=weight)),
        auc=float(areas[known, 0].mean()) if known.any() else None,
        positive=classes[interest],
        positive_is_chosen=positive is not None,
        average_precision=float(areas[interest, 1]) if known[interest] else None,
        base_rate=float(share[interest]),
        by_class=by_class,
        confusion=confusion_matrix(true, predicted, labels=labels),
    )


def _regression_measures(
    true: _Array, predicted: _Array, sample_weight: _Array | None
) -> RegressionMeasures:
    """Measure predicted numbers (n,) of samples with weights (n,)."""
    check_some_weight(sample_weight is None or bool(sample_weight.any()))
    true = np.asarray(true, dtype=np.float64)
    mean = np.full_like(true, np.average(true, weights=sample_weight))
    options = {"sample_weight": sample_weight}
    return RegressionMeasures(
        n_samples=len(true),
        root_mean_squared_error=float(root_mean_squared_error(true, predicted, **options)),
        mean_absolute_error=float(mean_absolute_error(true, predicted, **options)),
        r2=float(r2_score(true, predicted, **options)) if len(true) > 1 else np.nan,
        mean_root_mean_squared_error=float(root_mean_squared_error(true, mean, **options)),
        mean_mean_absolute_error=float(mean_absolute_error(true, mean, **options)),
    )


def _json_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _json_value(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_json_value(entry) for entry in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if hasattr(value, "iloc"):
        return _json_value(value.reset_index().to_dict("records"))
    return None if isinstance(value, float) and not np.isfinite(value) else value
