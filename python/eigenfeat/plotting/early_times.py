"""Times and labels of early decisions about many series."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_whole, show
from eigenfeat.plotting import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

__all__ = ["EarlyTimesDisplay"]

UNDECIDED = "#e3e7eb"
MAX_LINES = 3000  # lines of the image; screens have fewer pixels


class EarlyTimesDisplay:
    """Early decisions about many series: a line for each series, sorted by class and time.

    A line is grey until the series is decided, and then has the colour of its early label. A cross
    marks an early label that differs from the label of the complete series.

    Parameters
    ----------
    time : (n,) array of int
        Number of samples at the decision of each series.
    label : (n,) array
        Early labels.
    n_samples : int
        Number of samples of a complete series.
    final : (n,) array, optional
        Labels of the complete series.
    y : (n,) array, optional
        True labels, by which lines are grouped; by default the final or early labels.
    reliability : float, optional
        Required reliability of the early labels, for the title.

    Attributes
    ----------
    ax_ : Axes
        Axes of the drawing.
    figure_ : Figure
        Figure of the axes.
    image_ : AxesImage
        The lines: 0 before the decision, and 1 + the index of the label after it.
    order_ : (n,) array of int
        Series of each line, from the top.
    crosses_ : Line2D or None
        Crosses at early labels that differ from the label of the complete series.

    See Also
    --------
    eigenfeat.early.reliability_curve : Average times and scores at several reliabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.early import ReliableClassifier
    >>> from eigenfeat.plotting import EarlyTimesDisplay
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.standard_normal((200, 8)) + y[:, None]
    >>> model = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X[:100], y[:100])
    >>> display = EarlyTimesDisplay.from_estimator(model, X[100:], y[100:])
    >>> display.image_.get_array().shape
    (100, 8)
    """

    def __init__(
        self,
        time: ArrayLike,
        label: ArrayLike,
        n_samples: int,
        final: ArrayLike | None = None,
        y: ArrayLike | None = None,
        reliability: float | None = None,
    ) -> None:
        self.time, self.label, self.n_samples, self.final, self.y = time, label, n_samples, final, y
        self.reliability = reliability

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        reliability: float | None = None,
        ax: Axes | None = None,
        **kwargs: Any,
    ) -> EarlyTimesDisplay:
        """Decide series early with a fitted model, and draw the decisions.

        Parameters
        ----------
        estimator : classifier with `predict_early`
            Fitted model, such as ReliableClassifier or MinimumCostClassifier, or a search, whose
            best estimator is used.
        X : (n, d) or (n, channels, d) array-like
            Complete series.
        y : (n,) array-like, optional
            True labels.
        reliability : float, optional
            tau of a ReliableClassifier; by default as in its `predict_early`.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Further arguments of `Axes.imshow`.

        Returns
        -------
        EarlyTimesDisplay
        """
        if not callable(getattr(estimator, "predict_early", None)):
            raise ValueError(
                f"estimator: expected a classifier with predict_early, got {show(estimator)}"
            )
        check_is_fitted(estimator)
        model = getattr(estimator, "best_estimator_", estimator)
        tau = getattr(model, "reliability_", getattr(model, "reliability", None))
        if reliability is not None and tau is None:
            raise ValueError(f"reliability: expected None with {show(model)}, got {reliability}")
        tau = tau if reliability is None else reliability
        early = model.predict_early(X) if tau is None else model.predict_early(X, tau)
        final = model.predict(X)
        return cls(early.time, early.label, model.n_timepoints_, final, y, tau).plot(ax, **kwargs)

    def plot(self, ax: Axes | None = None, **kwargs: Any) -> EarlyTimesDisplay:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; by default new axes.
        **kwargs
            Further arguments of `Axes.imshow`.

        Returns
        -------
        EarlyTimesDisplay
        """
        time, label, final, groups = self._checked()
        classes = np.unique(np.concatenate([label, groups]))
        names = [figures.short(name) for name in classes.tolist()]
        group, code = (np.searchsorted(classes, values) for values in (groups, label))
        order = np.lexsort((time, group))
        self.order_ = order = order[:: -(-len(order) // MAX_LINES)]
        self.ax_ = axes = figures.axes_or_new(ax, 6.4, 4.6)
        self.figure_ = figures.root_figure(axes)
        keys = self._draw_image(time[order], code[order], names, kwargs)
        self._mark_groups(group[order], names)
        self.crosses_, titles = None, []
        if self.reliability is not None:
            titles.append(f"required reliability {figures.short_tau(self.reliability)}")
        if final is not None:
            titles.append(f"{np.mean(label == final):.1%} of early labels are final")
            (places,) = np.nonzero((label != final)[order])
            if len(places):
                (self.crosses_,) = axes.plot(
                    time[order][places], places + 0.5, "x", color="black", ms=5, mew=1.2,
                    clip_on=False, label="label not final",
                )  # fmt: skip
                keys.append(self.crosses_)
        name = "early label" if final is None else "label of complete series"
        name = name if self.y is None else "true class"
        axes.set(xlabel="samples", ylabel=name, title=": ".join(titles), xlim=(0, self.n_samples))
        figures.legend_above(axes, keys)
        return self

    def _checked(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None, NDArray[Any]]:
        """Return times, early labels, final labels, and the labels that group the lines."""
        check_whole(self.n_samples, "n_samples", at_least=1)
        time, label = np.asarray(self.time), np.asarray(self.label)
        if time.ndim != 1 or not time.size or time.dtype.kind not in "iu":
            raise ValueError(f"time: expected integers in one dimension, got {show(self.time)}")
        if time.min() < 1 or time.max() > self.n_samples:
            raise ValueError(f"time: expected integers in 1..{self.n_samples}, got {show(time)}")
        final = None if self.final is None else np.asarray(self.final)
        groups = label if final is None else final
        groups = groups if self.y is None else np.asarray(self.y)
        for values, name in ((label, "label"), (final, "final"), (groups, "y")):
            if values is not None and values.shape != time.shape:
                raise ValueError(f"{name}: expected {len(time)} labels, got {show(values)}")
        return time, label, final, groups

    def _draw_image(
        self, time: NDArray[Any], code: NDArray[Any], names: list[str], kwargs: dict[str, Any]
    ) -> list[Any]:
        """Draw lines that change their colour at their times, and return keys of the colours."""
        from matplotlib.colors import ListedColormap
        from matplotlib.patches import Patch

        decided = np.arange(self.n_samples) >= time[:, None]
        image = np.where(decided, 1 + code[:, None], 0)
        colours = [UNDECIDED, *(figures.class_style(number)[0] for number in range(len(names)))]
        options: dict[str, Any] = {"aspect": "auto", "interpolation": "nearest", "vmin": 0}
        options |= {"vmax": len(names), "cmap": ListedColormap(colours), **kwargs}
        self.image_ = self.ax_.imshow(image, extent=(0, self.n_samples, len(image), 0), **options)
        labels = ["no decision yet", *names]
        return [Patch(color=c, label=label) for c, label in zip(colours, labels, strict=True)]

    def _mark_groups(self, group: NDArray[Any], names: list[str]) -> None:
        """Separate the groups of lines, and write their names beside them."""
        starts = np.searchsorted(group, np.arange(len(names) + 1))
        for edge in starts[1:-1]:
            self.ax_.axhline(edge, color="black", lw=0.8)
        occurring = np.flatnonzero(np.diff(starts))
        middles = 0.5 * (starts[occurring + 1] + starts[occurring])
        self.ax_.set_yticks(middles, [names[k] for k in occurring])
        self.ax_.tick_params(axis="y", length=0)
