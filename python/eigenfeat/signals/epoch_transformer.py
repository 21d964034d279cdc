"""Base class of the transformers of epochs: bands, sessions and tags."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base.validation import warn_caller
from eigenfeat.samples.estimator import BaseEstimator
from eigenfeat.signals.alignment import MeanOf, SessionMeans
from eigenfeat.signals.epochs import (
    filter_bank,
    read_groups,
    read_recording,
    unit_power,
    warn_swapped,
)


class EpochTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformer of epochs, in bands and with mean covariances of sessions."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "align": [StrOptions({"session"}), None],
        "bands": ["array-like", None],
        "sfreq": [Interval(Real, 0, None, closed="neither"), None],
        "normalize": ["boolean"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    align: str | None
    bands: Sequence[tuple[float, float]] | None
    sfreq: float | None
    normalize: bool
    n_channels_: int
    alignment_: SessionMeans | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.three_d_array = True
        return tags

    def _read(self, X: Any, n_channels: int | None) -> list[NDArray[Any]]:
        """Checked epochs in each band."""
        epochs, sfreq, _ = read_recording(X, n_channels, self.sfreq)
        if n_channels is None:
            warn_swapped(X, epochs.shape, "epochs")
        return filter_bank(unit_power(epochs) if self.normalize else epochs, self.bands, sfreq)

    def _sessions(self, groups: ArrayLike | None, n: int) -> NDArray[Any] | None:
        """Sessions (n,) of the epochs; warns if they are given without `align`."""
        sessions = read_groups(groups, n)
        if sessions is not None and self.align is None:
            warn_caller(
                "groups: expected None without align, got sessions, which change nothing; "
                "align='session' aligns each session",
                UserWarning,
            )
        return sessions

    def _align(
        self, sessions: NDArray[Any] | None, weight: NDArray[np.float64], mean_of: MeanOf
    ) -> NDArray[Any]:
        """Add the means of new sessions to `alignment_`; return the names (n,) of all sessions."""
        if sessions is None:
            sessions = np.zeros(len(weight), dtype=np.int64)
        known = self.alignment_ or SessionMeans()
        self.alignment_ = known.updated(sessions, weight, mean_of)
        return sessions
