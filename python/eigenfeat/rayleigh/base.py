"""Base classes of the Rayleigh quotient estimators: moments, directions and projections."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.types import Floats, Rows, Weights
from eigenfeat._base.validation import FLOATS, take_names
from eigenfeat.expansion.features import expand
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils import rayleigh_matrices as matrices
from eigenfeat.pencils.fitted_directions import SolvedWhenRead
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.completion import ALLOW_NAN, refuse_missing
from eigenfeat.samples.estimator import (
    BaseEstimator,
    complete,
    encoded_names,
    given_blocks,
    keep_columns,
    keep_completion,
    prepare,
    unchanged_on_error,
    validate_data,
)
from eigenfeat.samples.labelled import MemorySamples, weighted_rows
from eigenfeat.samples.out_of_core import grouped_moments, one_group, over_blocks

if TYPE_CHECKING:
    from typing_extensions import Self


class FromMoments(SolvedWhenRead, BaseEstimator):
    """Base class of estimators whose results are computed from moments when first read."""

    _supervised = False
    _checks: ClassVar[dict[str, Any]] = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C"}

    def fit_moments(self, moments: ClassMoments) -> Self:
        """Fit to given moments.

        Parameters
        ----------
        moments : ClassMoments
            Moments, copied. Unsupervised estimators merge the classes.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        if not isinstance(moments, ClassMoments):
            raise TypeError(f"moments: expected ClassMoments, got {type(moments).__name__}")
        with unchanged_on_error(self):
            self._validate_params()
            matrices.check_weight(moments, "moments")
            take_names(self, moments)
            keep_completion(self, None)
            self._keep_moments(moments.copy())
            _ = self._solution
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._supervised
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = "ensure_all_finite" in self._checks
        return tags

    def _rows(self, X: Any) -> Any:
        """Return checked and completed samples."""
        rows = validate_data(self, X, reset=False, **self._checks)
        return complete(self, rows)


class RayleighTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FromMoments):
    """Base class of estimators of directions."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "scale": [StrOptions({"none", "columns"})],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    @property
    def directions_(self) -> NDArray[np.float64]:
        """(d, m) directions, one per column."""
        return self._solution.directions

    @property
    def eigenvalues_(self) -> NDArray[np.float64]:
        """(m,) eigenvalues."""
        return self._solution.eigenvalues

    @property
    def mean_(self) -> NDArray[np.float64]:
        """(d,) origin of the projections."""
        return self._solution.mean

    @property
    def offset_(self) -> NDArray[np.float64]:
        """(m,) offsets of the projections."""
        result = self._solution
        return -(result.mean @ result.directions)

    @property
    def column_scale_(self) -> NDArray[np.float64]:
        """(d,) divisors of the columns."""
        return self._solution.column_scale

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Project samples onto the directions: ``X @ directions_ + offset_``.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, m) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        rows, threads = self._rows(X), self.n_threads
        return expand(rows, self.directions_, self.offset_, expansion="none", n_threads=threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.directions_.shape[1]

    def _pencil_of(self) -> matrices.PencilOf:
        """Return the function that computes the pencil from pooled moments."""
        raise NotImplementedError

    def _options(self) -> matrices.Parameters:
        given = {"ridge": 0.0, "center": True} | self.get_params(deep=False)
        names = matrices.Parameters.__dataclass_fields__
        return matrices.Parameters(**{name: given[name] for name in names})

    def _solve(
        self, moments: ClassMoments, settings: matrices.Parameters
    ) -> matrices.RayleighDirections:
        return matrices.solve(self._pencil_of(), moments, settings, supervised=self._supervised)


class UnsupervisedRayleigh(RayleighTransformer):
    """Base class of the estimators without labels."""

    def fit(
        self,
        X: Rows | RowBlocks,
        y: object = None,
        sample_weight: Weights = None,
    ) -> Self:
        """Accumulate the moments and solve for directions.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Blocks are read once.
        y : object, default=None
            Not used.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples; None with blocks, which contain weights.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._accumulate(X, sample_weight, first=True)
            _ = self._solution
        return self

    def partial_fit(
        self,
        X: Rows,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of samples; directions are computed when they are next read.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Finite samples.
        y : object, default=None
            Not used.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._accumulate(X, sample_weight, first=not hasattr(self, "moments_"))
        return self

    def _accumulate(self, X: Any, sample_weight: ArrayLike | None, *, first: bool) -> None:
        self._validate_params()
        blocks = None
        if first:
            blocks = given_blocks(X, None, sample_weight, estimator=self, labelled=False)
        if blocks is not None:
            moments = grouped_moments(blocks, one_group, self.n_threads)
            keep_columns(self, blocks, moments.n_features_in_)
        else:
            X = validate_data(self, X, reset=first, **self._checks)
            X, _, weight = weighted_rows(X, None, sample_weight)
            moments = ClassMoments() if first else self.moments_
            # Given moments may have any classes: samples are added to the first class.
            groups = np.full(X.shape[0], 0 if first else moments.classes_[0])
            moments.update(X, groups, weight, n_threads=self.n_threads)
        self._keep_moments(moments)


class FromClassMoments(FromMoments):
    """Base class of the estimators with labels."""

    _supervised = True
    _checks = ALLOW_NAN

    def fit(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Accumulate the moments of the classes and solve with them.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples; NaN is a missing entry. Blocks with a continuous target must be complete.
            Blocks are read once, twice for a continuous target, three times with missing entries.
        y : (n,) array-like
            Targets; None with blocks, which contain targets and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            self._fit_moments(X, y, sample_weight)
            _ = self._solution
        return self

    def partial_fit(
        self,
        X: Rows,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of samples; results are computed when they are next read.

        Parameters
        ----------
        X : (n, d) array-like or sparse matrix
            Samples; NaN is a missing entry.
        y : (n,) array-like
            Targets.
        classes : array-like, optional
            All labels, given with the first batch; any other label is then an error. If None, any
            batch may add labels.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._accumulate(X, y, classes, sample_weight, first=not hasattr(self, "moments_"))
        return self

    def _accumulate(
        self, X: Any, y: Any, classes: Any, sample_weight: ArrayLike | None, *, first: bool
    ) -> None:
        self._validate_params()
        X, y = validate_data(self, X, y, reset=first, **self._checks)
        X, y, weight = weighted_rows(X, y, sample_weight)
        groups = self._groups(y, weight, classes, first)
        if first:
            names = encoded_names(self)
            samples = MemorySamples.of(X, groups, weight, self.n_threads, names)
            keep_completion(self, samples.completion)
            self._keep_moments(ClassMoments(classes).merge(samples.moments()))
        else:
            refuse_missing(X)
            self._keep_moments(self.moments_.update(X, groups, weight, n_threads=self.n_threads))

    def _fit_moments(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Accumulate the moments of the classes of all samples."""
        samples = prepare(self, X, y, sample_weight, allows_missing=True)
        self._keep_moments(samples.moments())

    def _groups(self, y: Any, weight: Any, classes: Any, first: bool) -> Any:
        """Return the classes of the samples of a batch."""
        check_classification_targets(y)
        return y

    def _keep_moments(self, moments: ClassMoments) -> None:
        super()._keep_moments(moments)
        self.classes_ = np.asarray(moments.classes_)


class SupervisedRayleigh(FromClassMoments, RayleighTransformer):
    """Base class of the transformers with labels."""
