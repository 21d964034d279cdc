"""GEM on patches of images and signals, pooled over regions: features robust to small shifts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
    column_or_1d,
)

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.types import Floats
from eigenfeat._base.validation import FLOATS, show
from eigenfeat.gem.gem import GEM
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.samples.estimator import BaseEstimator, check_array, unchanged_on_error
from eigenfeat.samples.labelled import row_weights

__all__ = ["GEMPatches"]

_BLOCK_ENTRIES = 1 << 22  # entries of patches or of features in memory at a time


class GEMPatches(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """GEM's features of small patches, pooled over the regions of an image or a signal.

    Use it where objects shift in images or signals; where the position of a value matters, use
    `GEMClassifier`. Tune `patch_size` first, then `pool` and `padding`. User guide:
    :doc:`/guide/patches`.

    `GEM` is fitted on the patches of all samples, with the samples' labels. Its features at every
    place of a sample are pooled within the cells of a coarse grid, so that an object that moves
    within a cell keeps its features.

    Parameters
    ----------
    gem : GEM or None, default=None
        Estimator to clone and fit on the patches. None means ``GEM(n_directions=1, powers=(1,))``.
    patch_size : int or tuple of int, default=9
        Length of a patch along each axis; at most the length of the padded grid is used.
    padding : int or tuple of int, default=0
        Number of zeros added at both ends of each axis; less than the patch size and at most the
        grid size.
    stride : int or tuple of int, default=1
        Step between patches along each axis.
    pool : int or tuple of int, default=3
        Number of cells along each axis; at most the number of patch positions is used.
    pooling : {"mean", "max"}, default="mean"
        Pooling of a feature within a cell.
    grid_shape : tuple of 1 or 2 int, or None, default=None
        Length and, for images, width of the grid, if samples are flat or have channels. None: X of
        shape (n, T) has signals, (n, H, W) images, and (n, H, W, C) images with channels.
    channels : {"last", "first"}, default="last"
        Position of the channel axis, if samples have channels in addition to ``grid_shape``.

    Attributes
    ----------
    gem_ : GEM
        Estimator fitted on the patches.
    moments_ : ClassMoments
        Moments of the patches.
    grid_shape_ : tuple of int
        Lengths of the grid.
    cells_ : tuple of int
        Number of cells along each axis. Features are ordered by cell.
    n_channels_ : int
        Number of channels at each place of the grid.
    classes_ : (k,) array
        Labels, sorted.
    n_features_in_ : int
        Number of values in a sample: grid size times number of channels.

    Raises
    ------
    ValueError
        If samples do not have this grid, or differ in shape from those of `fit`.

    See Also
    --------
    GEM : Features of whole samples.
    eigenfeat.signals.ConvolutionFeatures : Random convolutions of series.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors", ICML
    2014: Algorithm 1 for the directions, section 6 on invariances.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat.gem import GEMPatches
    >>> digits = load_digits(n_class=3)
    >>> patches = GEMPatches(patch_size=4, pool=2).fit(digits.images, digits.target)
    >>> patches.transform(digits.images[:9]).shape  # 2 cells x 2 cells x 6 pairs x 2 half waves
    (9, 48)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "gem": [GEM, None],
        "patch_size": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "padding": [Interval(Integral, 0, None, closed="left"), tuple, list],
        "stride": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "pool": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "pooling": [StrOptions({"mean", "max"})],
        "grid_shape": [tuple, list, None],
        "channels": [StrOptions({"last", "first"})],
    }

    gem_: GEM
    moments_: ClassMoments
    grid_shape_: tuple[int, ...]
    n_channels_: int
    n_features_in_: int

    def __init__(
        self,
        gem: GEM | None = None,
        *,
        patch_size: int | tuple[int, ...] = 9,
        padding: int | tuple[int, ...] = 0,
        stride: int | tuple[int, ...] = 1,
        pool: int | tuple[int, ...] = 3,
        pooling: str = "mean",
        grid_shape: tuple[int, ...] | None = None,
        channels: str = "last",
    ) -> None:
        self.gem = gem
        self.patch_size = patch_size
        self.padding = padding
        self.stride = stride
        self.pool = pool
        self.pooling = pooling
        self.grid_shape = grid_shape
        self.channels = channels

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> GEMPatches:
        """Fit `gem` on the patches of all samples.

        Parameters
        ----------
        X : array-like of shape (n, T), (n, H, W), (n, H, W, C), or as set by `grid_shape`
            Finite samples.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        GEMPatches
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._accumulate(X, y, sample_weight, None, first=True)
            self._solve()
        return self

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> GEMPatches:
        """Add the patches of a batch of samples; `gem_` is available once there are two classes.

        Parameters
        ----------
        X : array-like of shape (n, T), (n, H, W), (n, H, W, C), or as set by `grid_shape`
            Finite samples.
        y : (n,) array-like
            Labels.
        classes : array-like, optional
            All labels, given with the first batch; any other label is then an error.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        GEMPatches
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            first = not hasattr(self, "moments_")
            self._accumulate(X, y, sample_weight, classes, first=first)
            if len(self.moments_.active_classes) > 1:
                self._solve()
        return self

    def transform(self, X: ArrayLike) -> Floats:
        """Compute the pooled features of the patches.

        Parameters
        ----------
        X : array-like of shape (n, T), (n, H, W), (n, H, W, C), or as set by `grid_shape`
            Finite samples.

        Returns
        -------
        (n, cells * features) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self, "gem_")
        images = self._images(X, first=False)
        columns = len(self.gem_.get_feature_names_out())
        blocks = self._blocks(images, columns)
        return np.concatenate([self._pooled(images[rows], columns) for rows in blocks])

    def _pooled(self, images: NDArray[Any], columns: int) -> Floats:
        """Pooled features of samples, (n, cells * columns)."""
        reduce_at = np.add if self.pooling == "mean" else np.maximum
        patches, places = self._patches(images)
        values = self.gem_.transform(patches).reshape(len(images), *places, columns)
        for axis, cells in enumerate(self.cells_, start=1):
            length = values.shape[axis]
            edges = np.arange(cells) * length // cells
            values = reduce_at.reduceat(values, edges, axis=axis)
            if self.pooling == "mean":
                sizes = np.diff([*edges, length])
                values /= sizes.reshape([-1] + [1] * (values.ndim - axis - 1))
        return values.reshape(len(images), int(np.prod(self.cells_)) * columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(np.prod(self.cells_)) * len(self.gem_.get_feature_names_out())

    def _accumulate(
        self, X: Any, y: Any, sample_weight: ArrayLike | None, classes: Any, *, first: bool
    ) -> None:
        """Add the patches of samples to the moments."""
        self._validate_params()
        images = self._images(X, first=first)
        labels = column_or_1d(plain_labels(y), warn=True)
        n = len(images)
        if len(labels) != n:
            raise ValueError(f"y: expected {n} labels, one per sample, got {len(labels)}")
        check_classification_targets(labels)
        weight = None
        if sample_weight is not None:
            weight = row_weights(sample_weight, len(images))
        moments = ClassMoments(classes) if first else self.moments_.copy()
        for rows in self._blocks(images):
            patches, places = self._patches(images[rows])
            n_patches = int(np.prod(places))
            moments.update(
                patches,
                np.repeat(labels[rows], n_patches),
                None if weight is None else np.repeat(weight[rows], n_patches),
            )
        self.moments_, self.classes_ = moments, np.asarray(moments.classes_)

    def _solve(self) -> None:
        default = GEM(n_directions=1, powers=(1,))
        self.gem_ = clone(default if self.gem is None else self.gem).fit_moments(self.moments_)

    def _images(self, X: Any, *, first: bool) -> NDArray[Any]:
        """Checked samples of shape (n, *grid, channels), float32 or float64."""
        if isinstance(X, (list, tuple)) and len({np.shape(row) for row in X}) > 1:
            raise ValueError("X: expected samples of one shape, got samples of different shapes")
        X = check_array(X, dtype=FLOATS, ensure_2d=False, allow_nd=True, input_name="X")
        if X.ndim < 2:
            raise ValueError(
                f"X: Expected 2D array or more, got {X.ndim}D array instead. Reshape your data: a "
                "row is a signal or an image"
            )
        grid = self._grid(X)
        size = int(np.prod(grid))
        count = int(np.prod(X.shape[1:]))
        if X.shape[1:] == grid or X.ndim == 2:
            n_channels, rest = divmod(count, size)
            fits = not rest and n_channels > 0
        else:
            inner = X.shape[1:-1] if self.channels == "last" else X.shape[2:]
            fits, n_channels = inner == grid, count // size
        if not fits:
            raise ValueError(
                f"X: expected samples of grid_shape={show(grid)} with channels {self.channels}, "
                f"got samples of shape {X.shape[1:]}"
            )
        if not first and (grid, n_channels) != (self.grid_shape_, self.n_channels_):
            raise ValueError(
                f"X has {count} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: a grid of {self.grid_shape_} with "
                f"{self.n_channels_} channels, got {grid} with {n_channels}"
            )
        if self.channels == "first":
            X = np.moveaxis(X.reshape(len(X), n_channels, *grid), 1, -1)
        if first:
            self.grid_shape_, self.n_channels_, self.n_features_in_ = grid, n_channels, count
            places = self._geometry()[-1]
            pool = _per_axis(self.pool, len(grid), "pool")
            self.cells_ = tuple(min(p, n) for p, n in zip(pool, places, strict=True))
        images: NDArray[Any] = X.reshape(len(X), *grid, n_channels)
        return images

    def _grid(self, X: NDArray[Any]) -> tuple[int, ...]:
        if self.grid_shape is None:
            if X.ndim > 4:
                raise ValueError(f"X: expected signals or images, got shape {X.shape}")
            return X.shape[1:3]
        grid = tuple(self.grid_shape)
        if len(grid) not in (1, 2) or not all(isinstance(n, Integral) and n > 0 for n in grid):
            raise ValueError(
                f"grid_shape: expected one or two positive integers, got {show(self.grid_shape)}"
            )
        return tuple(int(n) for n in grid)

    def _geometry(self) -> tuple[tuple[int, ...], ...]:
        """Padding, patch length, stride and number of patches along each axis."""
        grid = self.grid_shape_
        padding = _per_axis(self.padding, len(grid), "padding", least=0)
        size = _per_axis(self.patch_size, len(grid), "patch_size")
        stride = _per_axis(self.stride, len(grid), "stride")
        if any(p >= min(s, n + 1) for p, s, n in zip(padding, size, grid, strict=True)):
            raise ValueError(
                f"padding: expected less than patch_size, {show(self.patch_size)}, and at most "
                f"the grid, {grid}, got {show(self.padding)}"
            )
        lengths = [n + 2 * p for n, p in zip(grid, padding, strict=True)]
        patch = tuple(min(s, n) for s, n in zip(size, lengths, strict=True))
        places = tuple((n - p) // s + 1 for n, p, s in zip(lengths, patch, stride, strict=True))
        return padding, patch, stride, places

    def _patches(self, images: NDArray[Any]) -> tuple[NDArray[Any], tuple[int, ...]]:
        """Patches as rows, image by image, and the number of patches along each axis."""
        padding, patch, stride, places = self._geometry()
        axes = tuple(range(1, len(patch) + 1))
        if any(padding):
            images = np.pad(images, ((0, 0), *((p, p) for p in padding), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(images, patch, axis=axes)
        windows = windows[(slice(None), *(slice(None, None, s) for s in stride))]
        # Channels come last within a patch.
        windows = np.moveaxis(windows, len(axes) + 1, -1)
        return windows.reshape(-1, int(np.prod(patch)) * self.n_channels_), places

    def _blocks(self, images: NDArray[Any], columns: int = 1) -> Iterator[slice]:
        """Slices of samples whose patches, and `columns` features of each, have bounded size."""
        _, patch, _, places = self._geometry()
        size = int(np.prod(patch)) * self.n_channels_
        step = max(1, _BLOCK_ENTRIES // (int(np.prod(places)) * max(size, columns)))
        return (slice(first, first + step) for first in range(0, len(images), step))


def _per_axis(value: int | Sequence[int], axes: int, name: str, least: int = 1) -> tuple[int, ...]:
    """An integer for each axis."""
    values: tuple[Any, ...] = (value,) * axes
    if isinstance(value, (tuple, list)):
        values = tuple(value)
    if len(values) != axes or not all(isinstance(v, Integral) and int(v) >= least for v in values):
        raise ValueError(f"{name}: expected {axes} integers of at least {least}, got {show(value)}")
    return tuple(int(v) for v in values)
