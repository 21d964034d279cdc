"""Completion of incomplete samples by the conditional distribution of their missing entries.

`GaussianCompletion` and `MixtureCompletion` estimate a `GaussianMixture` of complete samples, which
has the conditional distributions.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator as SklearnEstimator
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import show
from eigenfeat.early.discriminants import affine_of
from eigenfeat.early.mixture import Conditional, GaussianMixture
from eigenfeat.moments.class_moments import ClassMoments, ledoit_wolf
from eigenfeat.samples.completion import GaussianImputer, known_entries
from eigenfeat.samples.estimator import BaseEstimator, unchanged_on_error, validate_data

__all__ = [
    "Completion",
    "GaussianCompletion",
    "MixtureCompletion",
    "filled",
]

_Array = NDArray[np.float64]


class Completion(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base class of completions, which are fitted as a Gaussian mixture `mixture_`."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"ledoit-wolf"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    _TRAINING: ClassVar[dict[str, Any]] = {
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2,
    }

    n_features_in_: int

    def __init__(
        self,
        shrinkage: float | str = "ledoit-wolf",
        ridge: float = 1e-6,
        n_threads: int | None = None,
    ) -> None:
        self.shrinkage = shrinkage
        self.ridge = ridge
        self.n_threads = n_threads

    def transform(self, X: ArrayLike) -> NDArray[np.float64]:
        """Fill missing entries with their conditional means.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.

        Returns
        -------
        (n, d) array
            Completed samples; known entries are unchanged.
        """
        return filled(self, self._rows(X).copy())

    def condition(
        self, X: ArrayLike, *, features: SklearnEstimator | None = None, covariance: bool = False
    ) -> Conditional:
        """Return conditional distributions of complete samples, or of their linear features.

        One Cholesky factor serves all samples with only their last entries missing; each other
        pattern needs its own factor, which is cached for later calls.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing. Any entries may be missing.
        features : fitted transformer or None, default=None
            An affine map of the samples, such as one with ``components_`` and ``mean_``. None: the
            samples themselves.
        covariance : bool, default=False
            Whether to return full covariances in addition to the variances.

        Returns
        -------
        Conditional
            Means, variances and, if requested, covariances.

        Raises
        ------
        ValueError
            If samples have another number of columns or infinite entries, or features are not
            affine.
        """
        rows = self._rows(X)
        affine = affine_of(features, self.n_features_in_)
        return self.mixture_.condition(rows, affine, covariance, n_threads=self.n_threads)

    def _estimate(
        self, X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None = None
    ) -> _Array:
        """Estimate and factorise; return the shrinkages. Errors name the labels in `classes`."""
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)  # NaN without values
        if np.all(low == high):
            raise ValueError("X: expected samples that differ, got equal ones")
        spread = None
        if np.isnan(X).any():
            X, codes, spread = completed_classes(X, codes, classes, self.n_threads)
        means, covariances, shrinkages = class_gaussians(self, X, codes, spread)
        shares = np.bincount(codes) / len(codes)
        self.mixture_ = GaussianMixture(shares, means, covariances)
        try:
            self.mixture_.prefix_models(n_threads=self.n_threads)
        except np.linalg.LinAlgError:
            raise ValueError(self._singular(covariances, classes)) from None
        return shrinkages

    def _singular(self, covariances: _Array, classes: NDArray[Any] | None) -> str:
        """Advice about covariances that are not positive definite."""
        traces = np.trace(covariances, axis1=1, axis2=2)
        if classes is not None and not traces.any():
            return "X: expected a class of samples that differ, got equal ones in each class"
        least = np.linalg.eigvalsh(covariances)[:, 0] / np.where(traces > 0, traces, 1.0)
        whose = "" if classes is None else f" of class {show(classes[int(least.argmin())])}"
        return (
            f"ridge: expected one that makes the covariance{whose} positive definite, got "
            f"{self.ridge} with shrinkage={self.shrinkage!r}"
        )

    def _rows(self, X: Any) -> _Array:
        check_is_fitted(self)
        options = {"dtype": np.float64, "order": "C", "ensure_all_finite": "allow-nan"}
        return np.asarray(validate_data(self, X, reset=False, **options))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def filled(completion: Completion, rows: _Array) -> _Array:
    """Return samples whose missing entries are filled by conditional means."""
    missing = np.isnan(rows)
    if not missing.any():
        return rows
    means = completion.mixture_.condition(rows, None, False, n_threads=completion.n_threads).mean
    return np.where(missing, means, rows)


class GaussianCompletion(Completion):
    r"""Complete samples whose missing and known entries are jointly Gaussian.

    Use it to complete missing entries, and as the model of `ReliableClassifier`. Tune `shrinkage`.
    User guide: :doc:`/guide/early`.

    Given the known part z of a sample, the rest is Gaussian with

    .. math::

        m = \bar x + \Sigma_{xz} \Sigma_{zz}^{-1} (z - \bar z), \qquad
        R = \Sigma_{xx} - \Sigma_{xz} \Sigma_{zz}^{-1} \Sigma_{zx} .

    Training samples may also be incomplete, if entries are missing at random. Conditional means by
    a Gaussian that is estimated by expectation-maximisation then complete them, and conditional
    covariances are added to the covariance.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the mean variance times the identity in the covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance that is added to the diagonal.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    mean_ : (d,) array
        Mean.
    covariance_ : (d, d) array
        Covariance, with shrinkage and ridge.
    shrinkage_ : float
        The shrinkage that was used.
    mixture_ : object
        The fitted distribution: ``weights`` (1,), ``means`` (1, d) and ``covariances`` (1, d, d).
    n_features_in_ : int
        Number of columns, d.

    See Also
    --------
    MixtureCompletion : One Gaussian for each class.
    ReliableClassifier : Decides with it.
    sklearn.impute.SimpleImputer : Means or medians.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 5.4.1. R. Little and D. Rubin,
    "Statistical analysis with missing data", 2002, section 11.2.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import GaussianCompletion
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> model = GaussianCompletion(shrinkage=0).fit(X)
    >>> model.transform([[1.5, np.nan]]).round(3)
    array([[1.5, 3. ]])
    """

    def fit(self, X: ArrayLike, y: object = None) -> GaussianCompletion:
        """Estimate mean and covariance.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : ignored

        Returns
        -------
        GaussianCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows = validate_data(self, X, **self._TRAINING)
            shares = self._estimate(rows, np.zeros(len(rows), dtype=np.int32))
        self.mean_, self.covariance_ = self.mixture_.means[0], self.mixture_.covariances[0]
        self.shrinkage_ = float(shares[0])
        return self


class MixtureCompletion(Completion):
    r"""Complete samples by a mixture with one Gaussian for each class.

    Use it if covariances of classes differ much and each class has enough samples to estimate its
    covariance. With LDA and the correction, decisions are earlier than with one Gaussian on five
    of twelve sets, and later on seven. Tune `shrinkage`. User guide: :doc:`/guide/early`.

    Given the known part z, the sample is a mixture of the classes' conditional Gaussians with
    weights :math:`p(g|z) \propto w_g\, p(z|g)`. Its mean is :math:`m = \sum_g p(g|z) m_g`, its
    covariance :math:`\sum_g p(g|z) (R_g + (m_g - m)(m_g - m)^T)`. Training samples may be
    incomplete, as in `GaussianCompletion`; labels must be known.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the class's mean variance times the identity in its covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance within classes that is added to every diagonal.
    n_threads
        As in `GaussianCompletion`.

    Attributes
    ----------
    classes_ : (G,) array
        Labels, sorted.
    class_weights_ : (G,) array
        Frequencies of the labels.
    means_ : (G, d) array
        Means of the classes.
    covariances_ : (G, d, d) array
        Covariances of the classes, with shrinkage and ridge.
    shrinkages_ : (G,) array
        The shrinkages that were used.
    mixture_ : object
        The fitted distribution: ``weights`` (G,), ``means`` (G, d) and ``covariances`` (G, d, d).
    n_features_in_ : int
        Number of columns, d.

    See Also
    --------
    GaussianCompletion : One Gaussian of all samples; needs fewer samples.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 5.4.2 and Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.early import MixtureCompletion
    >>> X = np.array([[0.0, 0.0], [0.1, 0.1], [5.0, -5.0], [5.1, -5.1]])
    >>> model = MixtureCompletion().fit(X, [0, 0, 1, 1])
    >>> model.transform([[5.0, np.nan]]).round(1)
    array([[ 5., -5.]])
    """

    def fit(self, X: ArrayLike, y: ArrayLike) -> MixtureCompletion:
        """Estimate weights, means and covariances of the classes.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : (n,) array-like
            Labels.

        Returns
        -------
        MixtureCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, labels = validate_data(self, X, y, **self._TRAINING)
            check_classification_targets(labels)
            classes, codes = np.unique(labels, return_inverse=True)
            shares = self._estimate(rows, codes.astype(np.int32), classes)
        self.classes_, self.class_weights_ = classes, self.mixture_.weights
        self.means_, self.covariances_ = self.mixture_.means, self.mixture_.covariances
        self.shrinkages_ = shares
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


# ---- Gaussians of the classes, of complete or incomplete rows


def class_gaussians(
    completion: Completion, X: _Array, codes: NDArray[np.int32], spread: _Array | None = None
) -> tuple[_Array, _Array, _Array]:
    """Means (G, d), covariances (G, d, d) and shrinkages (G,) of classes 0, ..., G - 1.

    The ridge is a multiple of the mean variance within classes. `spread` (G, d, d), the conditional
    covariances of completed entries, is added to the covariances before they are shrunk.
    """
    d = X.shape[1]
    moments = ClassMoments().update(X, codes, n_threads=completion.n_threads)
    classes = range(int(codes.max()) + 1)
    counts = np.bincount(codes)
    means = np.stack([moments.mean(g) for g in classes])
    covariances = np.stack([moments.covariance(g) for g in classes])
    if spread is not None:
        covariances += spread
    traces = np.array([np.trace(R) for R in covariances])
    floor = completion.ridge * float((counts * traces).sum() / counts.sum()) / d
    shrinkages = np.zeros(len(counts))
    for g in classes:
        share = completion.shrinkage
        if isinstance(share, str):
            share = ledoit_wolf(X[codes == g] - means[g], covariances[g])
        shrinkages[g] = share
        covariances[g] *= 1.0 - share
        covariances[g][np.diag_indices(d)] += share * traces[g] / d + floor
    return means, covariances, shrinkages


def completed_classes(
    X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None, n_threads: int | None
) -> tuple[_Array, NDArray[np.int32], _Array]:
    """Completed samples with a known entry, their codes, and mean conditional covariances.

    A Gaussian of each class completes its samples; columns without a known entry in the class get
    the mean of all samples. Covariances (G, d, d) are those of the completed entries.
    """
    known = known_entries(X).any(axis=1)
    X, codes, n_classes = X[known], codes[known], int(codes.max()) + 1
    counts = np.bincount(codes, minlength=n_classes)
    if not counts.all():
        empty = int(counts.argmin())
        raise ValueError(
            "X: expected a row with a known entry in every class, got NaN only in class "
            f"{empty if classes is None else show(classes[empty])}"
        )
    out, spread = X.copy(), np.empty((n_classes, X.shape[1], X.shape[1]))
    for g in range(n_classes):
        own = X[codes == g]
        unknown = np.isnan(own).all(axis=0)
        own[:, unknown] = np.nanmean(X[:, unknown], axis=0)
        imputer = GaussianImputer.fit(own, n_threads=n_threads)
        out[codes == g] = imputer.filled(own, n_threads)
        one_class = np.zeros(len(own), dtype=np.int32)
        spread[g] = imputer.spread(np.isnan(own), one_class, 1, n_threads=n_threads)[0] / len(own)
    return out, codes, spread
