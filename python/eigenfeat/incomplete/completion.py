"""Completion of incomplete samples by the conditional mean and covariance of missing entries."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator as SklearnEstimator
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base import threads as _threads
from eigenfeat._base.saved import fits
from eigenfeat._base.validation import show
from eigenfeat.incomplete.mixture import (
    Conditional,
    GaussianMixture,
    PrefixConditional,
    affine_of,
    patterns_of,
)
from eigenfeat.incomplete.series import ascending_steps
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.moments.shrinkage import ledoit_wolf
from eigenfeat.regions.prefix_gaussian import PrefixGaussian
from eigenfeat.rows.completion import known_entries
from eigenfeat.rows.estimator import BaseEstimator, unchanged_on_error, validate_data
from eigenfeat.rows.row_weights import weighted_rows

__all__ = ["Completion", "GaussianCompletion", "MixtureCompletion"]

_Array = NDArray[np.float64]


class Completion(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What completions share: a fitted one is the Gaussian mixture `mixture_`."""

    _saved: ClassVar[dict[str, str]] = {"mixture_": "of GaussianMixture"}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shrinkage": [Interval(Real, 0, 1, closed="both"), StrOptions({"ledoit-wolf"})],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    _TRAINING: ClassVar[dict[str, Any]] = {
        "dtype": np.float64,
        "order": "C",
        "ensure_all_finite": "allow-nan",
        "ensure_min_samples": 2,
    }

    shrinkage: Any
    ridge: float
    n_threads: int | None
    max_iter: int
    tol: float
    n_features_in_: int
    mixture_: GaussianMixture
    n_iter_: int
    log_likelihoods_: _Array

    def __init__(
        self,
        shrinkage: float | str = "ledoit-wolf",
        ridge: float = 1e-6,
        n_threads: int | None = None,
        *,
        max_iter: int = 200,
        tol: float = 1e-4,
    ) -> None:
        self.shrinkage = shrinkage
        self.ridge = ridge
        self.n_threads = n_threads
        self.max_iter = max_iter
        self.tol = tol

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
        rows = self._rows(X)
        affine = affine_of(None, self.n_features_in_)
        filled = self.mixture_.condition(rows, affine, False, n_threads=self.n_threads).mean
        return np.asarray(np.where(np.isnan(rows), filled, rows))

    def condition(
        self, X: ArrayLike, *, features: SklearnEstimator | None = None, covariance: bool = False
    ) -> Conditional:
        """Return conditional distributions of complete samples, or of linear features of them.

        One Cholesky factor serves all samples of which only the last entries are missing; every
        other pattern needs its own factor, which is cached for later calls.

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

    def condition_prefixes(
        self,
        X: ArrayLike,
        steps: ArrayLike | None = None,
        *,
        features: SklearnEstimator | None = None,
        covariance: bool = False,
    ) -> PrefixConditional:
        """Return conditional distributions of every sample after several numbers of values.

        Prefixes are nested: one Cholesky factor serves all of them, and each further sample costs
        O(d + ell) for each sample.

        Parameters
        ----------
        X : (n, d) array-like
            Samples, known at least as far as the largest of `steps`; later entries may be NaN.
        steps : ascending integers in 0..d, or None
            Numbers of known leading entries. None: 1, 2, ..., d.
        features, covariance
            As in `condition`.

        Returns
        -------
        PrefixConditional
            Means of every sample and step; variances and covariances of every step.

        Raises
        ------
        ValueError
            If steps are out of range, or a required entry is missing.
        """
        rows = self._rows(X)
        at = ascending_steps(steps, self.n_features_in_)
        known = rows[:, : at[-1]]
        if np.isnan(known).any():
            i, j = np.argwhere(np.isnan(known))[0]
            raise ValueError(f"X: expected {at[-1]} leading entries, got NaN in row {i}, entry {j}")
        affine = affine_of(features, self.n_features_in_)
        return self.mixture_.after(rows, at, affine, covariance, n_threads=self.n_threads)

    def _estimate(
        self,
        X: _Array,
        codes: NDArray[np.int32],
        weight: _Array | None,
        classes: NDArray[Any] | None = None,
    ) -> _Array:
        """Estimate and factorise; return the shrinkages. Errors name the labels in `classes`."""
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)  # NaN where all are
        if np.all(low == high):
            raise ValueError("X: expected rows that are not all the same, got one point")
        if np.isnan(X).any():
            how = self.shrinkage, self.ridge, self.max_iter, self.tol, self.n_threads
            estimate = fit_incomplete(X, codes, *how, weight, classes)
            gaussians, self.log_likelihoods_ = estimate[:3], estimate.log_likelihoods
        else:
            options = self.shrinkage, self.ridge, self.n_threads
            gaussians = class_gaussians(X, codes, *options, weight=weight)
            self.log_likelihoods_ = np.empty(0)
        counts = np.bincount(codes, weight)
        shares = counts / (len(codes) if weight is None else counts.sum())
        self.n_iter_ = max(1, len(self.log_likelihoods_))
        self.mixture_ = GaussianMixture(shares, *gaussians[:2])
        try:
            self.mixture_.prefix_models(n_threads=self.n_threads)
        except np.linalg.LinAlgError:
            raise ValueError(self._singular(gaussians[1], classes)) from None
        return gaussians[2]

    def _singular(self, covariances: _Array, classes: NDArray[Any] | None) -> str:
        """What is to be done about covariances that are not positive definite."""
        traces = np.trace(covariances, axis1=1, axis2=2)
        if classes is not None and not traces.any():
            return "X: expected a class of rows that are not all the same, got one point a class"
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

    def _check_loaded(self) -> None:
        fits(self.mixture_.means.shape[1] == self.n_features_in_, "completion.mixture_")


class GaussianCompletion(Completion):
    r"""Complete samples whose missing and known entries are jointly Gaussian.

    Use it to complete missing entries, and as the model of `ReliableClassifier`. Tune `shrinkage`.
    User guide: :doc:`/guide/early`.

    Given the known part z of a sample, the rest is Gaussian with

    .. math::

        m = \bar x + \Sigma_{xz} \Sigma_{zz}^{-1} (z - \bar z), \qquad
        R = \Sigma_{xx} - \Sigma_{xz} \Sigma_{zz}^{-1} \Sigma_{zx} .

    Training samples may also be incomplete, if entries are missing at random. Mean and covariance
    are then estimated by expectation-maximisation.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the mean variance times the identity in the covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance that is added to the diagonal.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.
    max_iter : int >= 1, default=200
        Maximum number of iterations where training samples are incomplete.
    tol : float >= 0, default=1e-4
        Iterations stop when no covariance, and no mean in standard deviations, changes by more.

    Attributes
    ----------
    mean_, covariance_ : (d,) and (d, d) arrays
        Mean and covariance, with shrinkage and ridge.
    shrinkage_ : float
        The shrinkage that was used.
    n_iter_, log_likelihoods_ : int, (n_iter,) array
        Number of iterations, and mean log density of the known entries before each; 1 and empty
        where training samples were complete.
    mixture_ : object
        The fitted distribution: ``weights`` (1,), ``means`` (1, d) and ``covariances`` (1, d, d).
    n_features_in_ : int
        Number of columns, d.

    Raises
    ------
    ValueError
        If all training samples are equal, a column is never known, parameters are invalid, or the
        covariance is not positive definite.

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
    >>> from eigenfeat.incomplete import GaussianCompletion
    >>> X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    >>> model = GaussianCompletion(shrinkage=0).fit(X)
    >>> model.transform([[1.5, np.nan]]).round(3)
    array([[1.5, 3. ]])
    """

    def fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> GaussianCompletion:
        """Estimate mean and covariance.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : ignored
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. A sample of weight w counts as w samples, also in
            the Ledoit-Wolf shrinkage: weights should sum to the number of samples that they stand
            for. (`GEMClassifier`, which depends on ratios of weights alone, completes samples with
            Kish's effective number in place of their sum.)

        Returns
        -------
        GaussianCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows = validate_data(self, X, **self._TRAINING)
            weight = None
            if sample_weight is not None:
                rows, _, weight = weighted_rows(rows, None, sample_weight)
            shares = self._estimate(rows, np.zeros(len(rows), dtype=np.int32), weight)
        self.mean_, self.covariance_ = self.mixture_.means[0], self.mixture_.covariances[0]
        self.shrinkage_ = float(shares[0])
        return self


class MixtureCompletion(Completion):
    r"""Complete samples by a mixture with one Gaussian for each class.

    Use it where classes differ much in their covariances and each has samples enough to estimate
    its own: with LDA decisions come earlier on ChlorineConcentration, and later on nine of eleven
    sets. Tune `shrinkage`. User guide: :doc:`/guide/early`.

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
    n_threads, max_iter, tol
        As in `GaussianCompletion`.

    Attributes
    ----------
    classes_, class_weights_ : (G,) arrays
        Labels, sorted, and their frequencies.
    means_, covariances_ : (G, d) and (G, d, d) arrays
        Means and covariances of the classes, with shrinkage and ridge.
    shrinkages_ : (G,) array
        The shrinkages that were used.
    n_iter_, log_likelihoods_ : int, (n_iter,) array
        As in `GaussianCompletion`.
    mixture_ : object
        The fitted distribution: ``weights`` (G,), ``means`` (G, d) and ``covariances`` (G, d, d).
    n_features_in_ : int
        Number of columns, d.

    Raises
    ------
    ValueError
        If all training samples are equal, a column or a class is never known, parameters are
        invalid, or a covariance is not positive definite.

    See Also
    --------
    GaussianCompletion : One Gaussian of all samples; needs fewer samples.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, section 5.4.2 and Appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.incomplete import MixtureCompletion
    >>> X = np.array([[0.0, 0.0], [0.1, 0.1], [5.0, -5.0], [5.1, -5.1]])
    >>> model = MixtureCompletion().fit(X, [0, 0, 1, 1])
    >>> model.transform([[5.0, np.nan]]).round(1)
    array([[ 5., -5.]])
    """

    def fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> MixtureCompletion:
        """Estimate weights, means and covariances of the classes.

        Parameters
        ----------
        X : (n, d) array-like
            Samples; NaN is missing.
        y : (n,) array-like
            Labels.
        sample_weight : (n,) array-like, optional
            As in `GaussianCompletion.fit`. Classes without weight are left out.

        Returns
        -------
        MixtureCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows, labels = validate_data(self, X, y, **self._TRAINING)
            check_classification_targets(labels)
            weight = None
            if sample_weight is not None:
                rows, labels, weight = weighted_rows(rows, labels, sample_weight)
            classes, codes = np.unique(labels, return_inverse=True)
            shares = self._estimate(rows, codes.astype(np.int32), weight, classes)
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
    X: _Array,
    codes: NDArray[np.int32],
    shrinkage: float | str,
    ridge: float,
    n_threads: int | None,
    spread: _Array | None = None,
    weight: _Array | None = None,
) -> tuple[_Array, _Array, _Array]:
    """Means (G, d), covariances (G, d, d) and shrinkages (G,) of classes 0, ..., G - 1.

    The ridge is a multiple of the mean variance within classes, the same for all. `spread`
    (G, d, d) is added to the covariances before they are shrunk: of entries that were filled in.
    A sample of weight w (n,) counts as w samples.
    """
    d = X.shape[1]
    moments = ClassMoments().update(X, codes, weight, n_threads=n_threads)
    classes = range(int(codes.max()) + 1)
    counts = np.bincount(codes, weight)
    means = np.stack([moments.mean(g) for g in classes])
    covariances = np.stack([moments.covariance(g) for g in classes])
    if spread is not None:
        covariances += spread
    traces = np.array([np.trace(R) for R in covariances])
    floor = ridge * float((counts * traces).sum() / counts.sum()) / d
    shrinkages = np.zeros(len(counts))
    for g in classes:
        if isinstance(shrinkage, str):
            own, rows = None, codes == g
            if weight is not None:
                own = weight[rows] / counts[g]
            count = None if own is None else float(counts[g])
            share = ledoit_wolf(X[rows] - means[g], covariances[g], own, count)
        else:
            share = shrinkage
        shrinkages[g] = share
        covariances[g] *= 1.0 - share
        covariances[g][np.diag_indices(d)] += share * traces[g] / d + floor
    return means, covariances, shrinkages


class Expectation(NamedTuple):
    """Means (G, d), covariances (G, d, d), shrinkages (G,), and a log-likelihood an iteration."""

    means: _Array
    covariances: _Array
    shrinkages: _Array
    log_likelihoods: _Array


def fit_incomplete(
    X: _Array,
    codes: NDArray[np.int32],
    shrinkage: float | str,
    ridge: float,
    max_iter: int,
    tol: float,
    n_threads: int | None,
    weight: _Array | None = None,
    classes: NDArray[Any] | None = None,
) -> Expectation:
    """Estimate as `class_gaussians` does, from samples with NaN.

    Each iteration fills samples with their conditional means, and adds the conditional covariances
    of what was missing to those of the filled samples; one factor serves all samples of a class and
    pattern. Shrinkage and ridge are applied anew each time. A sample of weight w counts as w
    samples.

    Raises
    ------
    ValueError
        If a class, or a column, has no known entry, or a covariance is not positive definite.
    """
    known = _known_rows(X, codes, classes)
    rows, codes = X[known], codes[known]
    weight = None if weight is None else weight[known]
    how = shrinkage, ridge, n_threads
    current = class_gaussians(_first_guess(rows, codes, weight), codes, *how, weight=weight)
    likelihoods: list[float] = []
    for _ in range(max_iter):
        filled, spread, likelihood = _expected(rows, codes, current, n_threads, weight, classes)
        likelihoods.append(likelihood)
        fresh = class_gaussians(filled, codes, *how, spread, weight)
        moved = _moved(current, fresh)
        current = fresh
        if moved <= tol:
            break
    else:
        warnings.warn(
            f"no convergence after max_iter={max_iter} iterations: the last one moved means or "
            f"covariances by {moved:.2g} of their size, tol={tol:g}",
            ConvergenceWarning,
            stacklevel=4,
        )
    return Expectation(*current, np.array(likelihoods))


def _known_rows(
    X: _Array, codes: NDArray[np.int32], classes: NDArray[Any] | None
) -> NDArray[np.bool_]:
    """Which samples have a known entry; others carry no information and slow the convergence."""
    known = known_entries(X).any(axis=1)
    counts = np.bincount(codes[known], minlength=int(codes.max()) + 1)
    if not counts.all():
        empty = int(counts.argmin())
        raise ValueError(
            "X: expected a row with a known entry in every class, got NaN only in class "
            f"{empty if classes is None else show(classes[empty])}"
        )
    return np.asarray(known)


def _first_guess(X: _Array, codes: NDArray[np.int32], weight: _Array | None) -> _Array:
    """Fill samples with the means of their classes' known entries, or of all if none is known."""
    filled = X.copy()
    w = np.ones(len(X)) if weight is None else weight
    some = ~np.isnan(X)
    overall = (w @ np.where(some, X, 0.0)) / (w @ some)
    for g in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == g)
        part = X[rows]
        known = ~np.isnan(part)
        counts = w[rows] @ known
        sums = w[rows] @ np.where(known, part, 0.0)
        mean = np.where(counts > 0, sums / np.where(counts > 0, counts, 1.0), overall)
        filled[rows] = np.where(known, part, mean)
    return filled


def _expected(
    X: _Array,
    codes: NDArray[np.int32],
    current: tuple[_Array, _Array, _Array],
    n_threads: int | None,
    weight: _Array | None,
    classes: NDArray[Any] | None,
) -> tuple[_Array, _Array, float]:
    """Filled rows, mean conditional covariances (G, d, d), and the mean log density of a row."""
    w = np.ones(len(X)) if weight is None else weight
    means, covariances, _ = current
    threads = _threads.resolve(n_threads)
    filled, spread, likelihood = X.copy(), np.zeros_like(covariances), 0.0
    for g in range(len(means)):
        rows = np.flatnonzero(codes == g)
        for pattern, members in patterns_of(~np.isnan(X[rows])):
            some, t = rows[members], pattern.known
            model = PrefixGaussian.of(means[g], covariances[g], None, pattern.permutation, threads)
            if model is None:
                whose = "" if classes is None else f" of class {show(classes[g])}"
                raise ValueError(
                    f"ridge: expected one that makes the covariance{whose} of incomplete rows "
                    "positive definite, got a smaller one"
                )
            e = model.innovations(X[np.ix_(some, pattern.order[:t])], t)
            likelihood += float(w[some] @ model.log_densities(e, t).ravel())
            if pattern.missing:
                missing = pattern.order[t:]
                filled[np.ix_(some, missing)] = model.means(e, t)[:, 0][:, missing]
                spread[g] += float(w[some].sum()) * model.covariances(t)[0]
        spread[g] /= w[rows].sum()
    return filled, spread, likelihood / float(w.sum())


def _moved(before: tuple[_Array, ...], after: tuple[_Array, ...]) -> float:
    """The largest step of a covariance, and of a mean in standard deviations, of their sizes."""
    steps = []
    for mean, R, other, S in zip(*before[:2], *after[:2], strict=True):
        size = np.trace(S)  # first, so that no square is out of range
        steps.append(np.linalg.norm((S - R) / size) / np.linalg.norm(S / size))
        steps.append(np.linalg.norm((other - mean) / np.sqrt(size)))
    return float(max(steps))
