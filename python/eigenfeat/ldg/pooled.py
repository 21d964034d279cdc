"""PCA and Fisher's discriminant of two pooled domains, for transfer learning.

Parrish (2012), sections 4.5.2 and 4.5.3: the samples of source and target, each standardised
separately, are pooled as if they were of one domain. Transfer LDG is compared with these.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.saved import fits
from eigenfeat._base.types import Floats, Targets
from eigenfeat._base.validation import FLOATS
from eigenfeat.ldg._solving.base import Reducer
from eigenfeat.ldg._solving.domains import DomainScaler, domain_rows, split_domains, stack_domains
from eigenfeat.ldg._solving.scatters import (
    Array,
    ClassRows,
    Reduction,
    Span,
    count_components,
    regularized_fisher,
)
from eigenfeat.samples.estimator import unchanged_on_error, validate_data

__all__ = ["PooledFisher", "PooledPCA"]


_PooledReducer = TypeVar("_PooledReducer", bound="PooledReducer")


class PooledReducer(Reducer):
    """A `Reducer` of samples of two domains: ``(X - mean_) / scale_ @ components_.T``."""

    _saved: ClassVar[dict[str, str]] = Reducer._saved | {"_scaler": "of DomainScaler"}

    scale_: Array
    source_mean_: Array
    source_scale_: Array

    def fit(
        self: _PooledReducer,
        X: ArrayLike,
        y: Targets = None,
        sample_domain: ArrayLike | None = None,
    ) -> _PooledReducer:
        """Standardise each domain separately, and find the components of the pooled samples.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples of both domains.
        y : (n,) array-like
            Labels; ignored by methods without supervision.
        sample_domain : (n,) array-like of integers, optional
            Above 0 for samples of the source, below 0 for samples of the target. By default there
            is only one domain.

        Returns
        -------
        object
            The estimator itself. If an error is raised, it is unchanged.

        Raises
        ------
        ValueError, TypeError
            If samples, labels, domains or parameters are invalid, no column varies in both domains,
            or samples are sparse.
        """
        with unchanged_on_error(self):
            self._validate_params()
            if self._supervised:
                rows, labels = validate_data(self, X, y, dtype=FLOATS, ensure_min_samples=2)
            else:
                rows, labels = validate_data(self, X, dtype=FLOATS, ensure_min_samples=2), None
            self._learn(rows, labels, split_domains(rows, labels, sample_domain))
        return self

    def fit_transfer(
        self: _PooledReducer, Xs: ArrayLike, ys: ArrayLike, Xt: ArrayLike, yt: ArrayLike
    ) -> _PooledReducer:
        """Find the components from separate arrays of source and target samples.

        Parameters
        ----------
        Xs, Xt : (ns, d) and (nt, d) array-like
            Samples of the source and of the target.
        ys, yt : (ns,) and (nt,) array-like
            Labels; None for both in methods without supervision.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            As `fit`.
        """
        return self.fit(*stack_domains(Xs, ys, Xt, yt))

    def transform(  # type: ignore[override]  # not of blocks
        self, X: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> Floats:
        """Standardise samples with the means and scales of their domain, and project them.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples.
        sample_domain : (n,) array-like of integers, optional
            As in `fit`, but one domain may be missing. By default all samples are of the target.

        Returns
        -------
        (n, ell) array of float32 or float64, as `X`

        Raises
        ------
        ValueError, TypeError
            If samples or domains are invalid, or samples are sparse.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        if sample_domain is None:
            source = np.zeros(len(rows), dtype=bool)
        else:
            source = domain_rows(sample_domain, len(rows))
        return self._projected(self._scaler.apply(rows, source).astype(rows.dtype, copy=False))

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_domain: ArrayLike | None = None
    ) -> Floats:
        """Fit, and transform the same samples, each standardised as in its domain.

        Parameters
        ----------
        X, y, sample_domain
            As in `fit`.

        Returns
        -------
        (n, ell) array of float32 or float64, as `X`
        """
        return self.fit(X, y, sample_domain).transform(X, sample_domain)

    def _learn(self, X: NDArray[Any], y: Any, source: NDArray[np.bool_]) -> None:
        scaler = DomainScaler.learn(X, source)
        self._keep_scaled(self._reduce(scaler.apply(X, source)[:, scaler.varying], y), scaler)

    def _keep_scaled(self, result: Reduction, scaler: DomainScaler) -> None:
        """Keep directions for the standardised columns that vary, and the units of both domains."""
        directions = np.zeros((len(scaler.varying), result.directions.shape[1]))
        directions[scaler.varying] = result.directions
        self._keep(Reduction(directions, result.attributes), scaler.means[1])
        self._scaler = scaler
        self.source_mean_, self.source_scale_ = scaler.means[0], scaler.scales[0]
        self.scale_ = scaler.scales[1]

    def _reduce(self, Z: Array, y: Any) -> Reduction:
        raise NotImplementedError

    def _check_loaded(self) -> None:
        fits(self._scaler.varying.shape == (self.n_features_in_,), f"{type(self).__name__}._scaler")


class PooledPCA(PooledReducer):
    """PCA of the pooled samples of two domains, each standardised separately.

    Use it as a baseline for two domains. Set `n_components`. User guide: :doc:`/guide/reduction`.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the pooled samples.

    Attributes
    ----------
    components_ : (ell, d) array
        Orthonormal directions, one per row, for standardised samples; 0 for columns that are
        constant in either domain. The entry of largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Variances of the pooled standardised samples along the directions, descending.
    mean_, scale_ : (d,) arrays
        Means and standard deviations of the target's columns; deviations are infinite for columns
        left out.
    source_mean_, source_scale_ : (d,) arrays
        The same for the source's columns.
    n_features_in_ : int
        d.

    Raises
    ------
    ValueError
        If samples, domains or parameters are invalid, or no column varies in both domains.

    See Also
    --------
    PooledFisher : With labels.
    TransferLDG : Learns how much the domains share.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, sections 4.5.2 and 4.5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.ldg import PooledPCA
    >>> X = np.random.default_rng(0).standard_normal((40, 5))
    >>> domain = np.repeat([1, -1], 20)
    >>> PooledPCA(n_components=2).fit_transform(X, sample_domain=domain).shape
    (40, 2)
    """

    _supervised = False

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = n_components

    def _reduce(self, Z: Array, y: Any) -> Reduction:
        span = Span.of(Z)
        m = count_components(self.n_components, len(span.sizes), "rank of the pooled rows")
        return Reduction(span.basis[:, :m], {"eigenvalues_": span.sizes[:m] ** 2})


class PooledFisher(PooledReducer):
    """Fisher's discriminant of the pooled samples of two domains, each standardised separately.

    Use it as a baseline for two domains with labels. Tune `ridge`. User guide:
    :doc:`/guide/reduction`.

    Parameters
    ----------
    n_components : int or None, default=None
        Directions to keep; by default the rank of the scatter between classes, k - 1.
    ridge : float >= 0, default=1e-3
        As in `RegularizedFisher`.

    Attributes
    ----------
    components_ : (ell, d) array
        Directions, one per row, for standardised samples, of unit variance within classes (the
        ridge counts as variance); 0 for columns that are constant in either domain. The entry of
        largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Variance between classes over variance within, descending.
    classes_ : (k,) array
        Labels, sorted.
    mean_, scale_, source_mean_, source_scale_, n_features_in_
        As in `PooledPCA`.

    Raises
    ------
    ValueError
        If there are fewer than two classes, their means are equal, or samples, domains or
        parameters are invalid.
    SingularDenominatorError
        If the scatter within classes is singular and `ridge` too small.

    See Also
    --------
    PooledPCA : Without labels.
    TransferLDG : Learns how much the domains share.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, sections 4.5.2 and 4.5.3.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.ldg import PooledFisher
    >>> X = np.random.default_rng(0).standard_normal((40, 5))
    >>> y, domain = np.tile([0, 1], 20), np.repeat([1, -1], 20)
    >>> PooledFisher().fit_transform(X, y, sample_domain=domain).shape
    (40, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PooledReducer._parameter_constraints,
        "ridge": [Interval(Real, 0, None, closed="left")],
    }

    classes_: NDArray[Any]

    def __init__(self, n_components: int | None = None, *, ridge: float = 1e-3) -> None:
        self.n_components = n_components
        self.ridge = ridge

    def _reduce(self, Z: Array, y: Any) -> Reduction:
        rows = ClassRows.of(Z, y)
        self.classes_ = rows.classes
        return regularized_fisher(rows, self.n_components, self.ridge)
