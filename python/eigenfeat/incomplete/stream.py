"""One series that arrives sample by sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from eigenfeat._base.validation import real_array
from eigenfeat.incomplete._series.results import StreamDecision
from eigenfeat.incomplete.streams import Streams

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["Stream"]


class Stream:
    """Decide one series that arrives sample by sample: see `Streams`.

    Parameters
    ----------
    model : ReliableClassifier
        Fitted model.
    reliability : float, optional
        tau; the model's by default.
    steps : ascending integers in ``1..n_timepoints_``, optional
        Numbers of samples after which the series may be decided.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from eigenfeat.incomplete import ReliableClassifier
    >>> y = np.repeat([0, 1], 50)
    >>> X = np.random.default_rng(0).standard_normal((100, 8)) + 3 * y[:, None]
    >>> stream = ReliableClassifier(LinearDiscriminantAnalysis()).fit(X, y).stream()
    >>> [decision and decision.label.item() for decision in map(stream.push, [0.1, 0.2, -0.4])]
    [None, 0, 0]
    """

    def __init__(
        self,
        model: BaseEstimator,
        reliability: float | None = None,
        *,
        steps: ArrayLike | None = None,
    ) -> None:
        self._streams = Streams(model, 1, reliability, steps=steps)
        self._channels = int(model.n_channels_)

    @property
    def seen(self) -> int:
        """Number of samples up to and including the one that decided the series."""
        return int(self._streams.seen[0])

    @property
    def decision(self) -> StreamDecision | None:
        """The decision, once there is one."""
        return self._streams.decision(0)

    def push(self, value: ArrayLike, *, time: int | None = None) -> StreamDecision | None:
        """Push the next sample.

        Parameters
        ----------
        value : float or (channels,) array-like
            Sample; NaN is missing and counts as one time step. Ignored once the series is decided.
        time : int, optional
            Number of the sample, starting at 1; skipped samples are missing. The next by default.

        Returns
        -------
        StreamDecision or None
            The decision, from the deciding sample on; None before.

        Raises
        ------
        ValueError
            If the sample is infinite or of another shape, or its time has passed; then nothing is
            pushed.
        """
        given = real_array(value, "value", np.dtype(np.float64))
        channels = self._channels
        shape = () if channels == 1 else (channels,)
        if given.shape != shape:
            wanted = "a number" if channels == 1 else f"shape {shape}"
            raise ValueError(f"value: expected {wanted}, got shape {given.shape}")
        if np.isinf(given).any() and self.decision is None:
            raise ValueError(f"value: expected finite numbers or NaN, got {given}")
        return self._streams.push_one(0, given.reshape(channels), time)

    def finish(self) -> StreamDecision:
        """Decide the series, which has ended, from its known samples: see `Streams.finish`."""
        self._streams.finish()
        decision = self.decision
        assert decision is not None
        return decision

    def outlook(self) -> StreamDecision:
        """Return the label that the series would get now, and the largest tau for it."""
        label, reliability = self._streams.outlook()
        return StreamDecision(label[0], self.seen, float(reliability[0]))

    def reset(self) -> None:
        """Start a new series."""
        self._streams.reset()
