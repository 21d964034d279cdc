"""Summary features of intervals of series, for classifiers that do not compute them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat.samples.estimator import check_array
from eigenfeat.signals.epochs import too_large

_SHORTEST = 4  # values of the shortest intervals


def interval_summaries(X: ArrayLike) -> NDArray[np.float64]:
    """Return values, differences, and means, standard deviations and slopes over intervals.

    The intervals have 4, 8, 16, ... values and overlap by half. The features are meant for trees,
    as in a time series forest, which draws intervals at random.

    Parameters
    ----------
    X : (n, t) or (n, channels, t) array-like
        Series, finite, of any length.

    Returns
    -------
    (n, p) array
        t values, t - 1 differences, and mean, standard deviation and least-squares slope of each
        interval, channel after channel.

    References
    ----------
    H. Deng, G. Runger, E. Tuv, M. Vladimir, "A time series forest for classification and feature
    extraction", Information Sciences 239, 2013.

    Examples
    --------
    >>> from eigenfeat.signals import interval_summaries
    >>> interval_summaries([[0.0, 1.0, 2.0, 3.0]])[0, 4:]
    array([1.        , 1.        , 1.        , 1.5       , 1.11803399,
           1.        ])
    """
    series = np.asarray(check_array(X, dtype=np.float64, order="C", allow_nd=True))
    if series.ndim > 3 or not series.size:
        raise ValueError(
            f"X: expected series of shape (n, t) or (n, channels, t), got shape {series.shape}"
        )
    if max(series.max(), -series.min()) >= 1e150:
        raise too_large(series)
    n, t = len(series), series.shape[-1]
    rows = series.reshape(-1, t)
    summaries = [rows, np.diff(rows, axis=1)]
    width = _SHORTEST
    while width <= t:
        views = np.lib.stride_tricks.sliding_window_view(rows, width, axis=1)[:, :: width // 2]
        place = np.arange(width) - (width - 1) / 2
        slope = np.einsum("niw,w->ni", views, place) / (place**2).sum()
        summaries += [views.mean(axis=2), views.std(axis=2), slope]
        width *= 2
    return np.concatenate(summaries, axis=1).reshape(n, -1)
