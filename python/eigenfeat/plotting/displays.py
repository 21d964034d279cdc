"""Pictures as objects, as scikit-learn's displays: what is drawn is kept and can be drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Floats, Labels, Rows
from eigenfeat._base.validation import real_array, show
from eigenfeat.plotting.arguments import axes_or_new, plain, root_figure
from eigenfeat.plotting.colours import CLASS_COLOURS, MARKS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sklearn.base import BaseEstimator

__all__ = ["EmbeddingDisplay", "ReliabilityDisplay", "binned"]


class EmbeddingDisplay:
    """Rows in one or two features of a reduction, coloured by class.

    Parameters
    ----------
    features : (n, m) array
        Reduced rows. With one column, each class has its own line, and points are spread in height
        so that they do not overlap; otherwise the first two are used.
    y : (n,) array
        Labels.

    Attributes
    ----------
    ax_, figure_ : axes and figure
        The axes that `plot` has drawn on.
    points_ : list of PathCollection
        Points of each class, in ascending order.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat import LDG
    >>> from eigenfeat.plotting import EmbeddingDisplay
    >>> X, y = load_wine(return_X_y=True)
    >>> display = EmbeddingDisplay.from_estimator(LDG(n_components=2).fit(X, y), X, y)
    >>> display.ax_.get_xlabel()
    'first component'
    """

    ax_: Axes
    figure_: Any
    points_: list[Any]

    def __init__(self, features: ArrayLike, y: ArrayLike) -> None:
        self.features, self.y = features, y

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        *,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EmbeddingDisplay:
        """Transform rows with a fitted transformer, and draw them.

        Parameters
        ----------
        estimator : transformer
        X, y : rows and labels
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "transform"):
            raise ValueError(f"estimator: expected a transformer, got {show(estimator)}")
        return cls.from_predictions(y, estimator.transform(X), ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls, y: ArrayLike, features: ArrayLike, *, ax: Axes | None = None, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Draw rows that are reduced already.

        Parameters
        ----------
        y : (n,) array
            Labels.
        features : (n, m) array
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        return cls(features, y).plot(ax, **kwargs)

    def plot(
        self, ax: Axes | None = None, *, title: str = "", legend: bool = True, **kwargs: Any
    ) -> EmbeddingDisplay:
        """Draw the rows.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        title : str
        legend : bool, default=True
        **kwargs
            Further arguments of `Axes.scatter`.

        Returns
        -------
        EmbeddingDisplay

        Raises
        ------
        ValueError
            If there is no column, or the numbers of rows and labels differ.
        """
        rows, labels = real_array(self.features, "features"), np.asarray(self.y)
        if rows.ndim != 2 or rows.shape[1] < 1 or labels.shape != rows.shape[:1]:
            raise ValueError(
                "features: expected rows of a column at least and a label each in y, got "
                f"{rows.shape} and {labels.shape}"
            )
        if not np.isfinite(rows).all():
            raise ValueError("features: expected finite numbers, got NaN or infinity")
        axes, classes = axes_or_new(ax, 5.6, 4.6), np.unique(labels)
        self.points_ = []
        for number, label in enumerate(classes):
            found = rows[labels == label]
            heights = found[:, 1] if rows.shape[1] > 1 else number + _spread(len(found))
            style = {
                **{"s": 17, "alpha": 0.75, "linewidths": 0, "label": f"class {label}"},
                **{"marker": MARKS[number % len(MARKS)], "color": CLASS_COLOURS[number % 7]},
                **kwargs,
            }
            self.points_.append(axes.scatter(found[:, 0], heights, **style))
        axes.set(xlabel="first component", title=title)
        if rows.shape[1] > 1:
            axes.set_ylabel("second component")
        else:
            axes.set_yticks(range(len(classes)), [str(label) for label in classes])
            axes.set(ylabel="class", ylim=(-0.6, len(classes) - 0.4))
        plain(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        if legend:
            columns = min(len(classes), 5)
            axes.figure.legend(loc="outside lower center", ncols=columns, frameon=False)
        return self


def _spread(n: int) -> NDArray[Any]:
    """Heights within -0.3 .. 0.3 that neighbouring rows do not share: the golden ratio's."""
    steps: NDArray[Any] = 0.6 * ((np.arange(n) * 0.6180339887498949) % 1.0) - 0.3
    return steps


class ReliabilityDisplay:
    """Share of rows that are right against the probability of their predicted class.

    Parameters
    ----------
    confidence : (m,) array
        Mean probability of the predicted class in each bin that has rows.
    accuracy : (m,) array
        Share of the bin's rows that are right.
    counts : (m,) array of int
        Numbers of rows.

    Attributes
    ----------
    ax_, figure_ : axes and figure
        The axes that `plot` has drawn on.
    errorbar_ : ErrorbarContainer
        The points and their standard errors.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import GEMClassifier
    >>> from eigenfeat.plotting import ReliabilityDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = GEMClassifier().fit(X[:900], y[:900])
    >>> display = ReliabilityDisplay.from_estimator(model, X[900:], y[900:])
    >>> int(display.counts.sum())
    897
    """

    ax_: Axes
    figure_: Any
    errorbar_: Any

    def __init__(
        self,
        confidence: NDArray[np.float64],
        accuracy: NDArray[np.float64],
        counts: NDArray[np.intp],
    ) -> None:
        self.confidence, self.accuracy, self.counts = confidence, accuracy, counts

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Rows,
        y: ArrayLike,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Predict probabilities of rows with a fitted classifier, and draw how right they are.

        Parameters
        ----------
        estimator : classifier with `predict_proba`
        X, y : rows and labels
        n_bins : int, default=10
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        check_is_fitted(estimator)
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(f"estimator: expected one with predict_proba, got {show(estimator)}")
        chances = estimator.predict_proba(X)
        return cls.from_predictions(y, chances, estimator.classes_, n_bins=n_bins, ax=ax, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        chances: ArrayLike,
        classes: Labels | Sequence[Hashable],
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw how right probabilities are.

        Parameters
        ----------
        y : (n,) array
            Labels.
        chances : (n, k) array
            Probabilities of the classes.
        classes : (k,) array
            Their labels.
        n_bins : int, default=10
            Bins of equal width.
        ax, **kwargs
            As of `plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        found, labels = real_array(chances, "chances"), np.asarray(y)
        if found.ndim != 2 or found.shape != (len(labels), len(classes)):
            raise ValueError(
                f"chances: expected shape ({len(labels)}, {len(classes)}), got {found.shape}"
            )
        right = np.asarray(classes)[found.argmax(axis=1)] == labels
        return cls(*binned(found.max(axis=1), right, n_bins)).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> ReliabilityDisplay:
        """Draw the shares; bars are standard errors.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new ones.
        **kwargs
            Further arguments of `Axes.errorbar`.

        Returns
        -------
        ReliabilityDisplay
        """
        axes = axes_or_new(ax, 5.2, 4.6)
        spread = np.sqrt(self.accuracy * (1 - self.accuracy) / self.counts)
        axes.plot([0, 1], [0, 1], color="#9aa5b1", lw=1, label="as promised")
        style: dict[str, Any] = {"fmt": "o-", "color": "#2166ac", "capsize": 2.5}
        style |= {"label": "share that is right", **kwargs}
        self.errorbar_ = axes.errorbar(self.confidence, self.accuracy, yerr=spread, **style)
        axes.set(xlabel="probability of the predicted class", ylabel="share that is right")
        axes.legend(frameon=False)
        plain(axes)
        self.ax_, self.figure_ = axes, root_figure(axes)
        return self


def binned(
    sure: Floats, right: NDArray[np.bool_], n_bins: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.intp]]:
    """Confidence, accuracy and number of rows of the bins of confidence that have rows."""
    at = np.clip(np.ceil(sure * n_bins).astype(int) - 1, 0, n_bins - 1)
    counts = np.bincount(at, minlength=n_bins)
    kept = counts > 0
    sums = (np.bincount(at, weights=values, minlength=n_bins)[kept] for values in (sure, right))
    confidence, accuracy = (values / counts[kept] for values in sums)
    return confidence, accuracy, counts[kept]
