"""Completion of incomplete rows by the conditional mean and covariance of missing entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from eigenfeat.incomplete._completion.conditioning import Completion
from eigenfeat.rows.estimator import unchanged_on_error, validate_data
from eigenfeat.rows.row_weights import weighted_rows

__all__ = ["GaussianCompletion", "MixtureCompletion"]


class GaussianCompletion(Completion):
    r"""Complete rows whose missing and known entries are jointly Gaussian.

    Use it to complete missing entries, and as the model of `ReliableClassifier`. Tune `shrinkage`.
    User guide: :doc:`/guide/early`.

    Given the known part z of a row, the row is Gaussian with

    .. math::

        m = \bar x + \Sigma_{xz} \Sigma_{zz}^{-1} (z - \bar z), \qquad
        R = \Sigma_{xx} - \Sigma_{xz} \Sigma_{zz}^{-1} \Sigma_{zx}

    (Parrish 2012, (5.19)). With :math:`\Sigma = L L^T` in the order of the columns, the factor L
    serves every prefix. Any other pattern of missing entries needs its own factor, which rows with
    the same pattern share, and which is kept (up to 128 MB) for later calls.

    Training rows may also be incomplete, if entries are missing at random. Mean and covariance are
    then estimated by expectation-maximisation (Little and Rubin, "Statistical analysis with missing
    data", 2002, section 11.2), with shrinkage and ridge in each iteration.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the mean variance times the identity in the covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance that is added to the diagonal.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.
    max_iter : int >= 1, default=200
        Maximum number of iterations where training rows are incomplete.
    tol : float >= 0, default=1e-4
        Iterations stop when no covariance, and no mean in standard deviations, changes by more.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations; 1 where training rows were complete.
    log_likelihoods_ : (n_iter,) array
        Mean log density of the known entries of a training row before each iteration; empty where
        training rows were complete.
    mean_ : (d,) array
        Mean of the rows.
    covariance_ : (d, d) array
        Covariance, with shrinkage and ridge.
    shrinkage_ : float
        The shrinkage that was used.
    mixture_ : object
        The fitted distribution: ``weights`` (1,), ``means`` (1, d) and ``covariances`` (1, d, d).
    n_features_in_ : int
        Number of columns, d.

    Raises
    ------
    ValueError
        If all training rows are equal, a column is never known, parameters are invalid, or the
        covariance is not positive definite.

    See Also
    --------
    MixtureCompletion : One Gaussian for each class.
    ReliableClassifier : Decides with it.
    sklearn.impute.IterativeImputer : Regressions of each column on others.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012, section 5.4.1.

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
            Rows; NaN is missing.
        y : ignored
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the rows. A row of weight w counts as w rows, also in the
            Ledoit-Wolf shrinkage: weights should sum to the number of rows that they stand for.
            (`GEMClassifier`, which depends on ratios of weights alone, completes rows with Kish's
            effective number in place of their sum.)

        Returns
        -------
        GaussianCompletion
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            rows = validate_data(self, X, **self._TRAINING)
            rows, _, weight = weighted_rows(rows, None, sample_weight)
            shares = self._keep(rows, np.zeros(len(rows), dtype=np.int32), weight)
        self.mean_, self.covariance_ = self.mixture_.means[0], self.mixture_.covariances[0]
        self.shrinkage_ = float(shares[0])
        return self


class MixtureCompletion(Completion):
    r"""Complete rows by a mixture with one Gaussian for each class.

    Use it where classes differ much in their covariances and each has many samples. Tune
    `shrinkage`. User guide: :doc:`/guide/early`.

    Given z, the row is a mixture of the classes' conditional Gaussians with weights
    :math:`p(g|z) \propto w_g\, p(z|g)`. Its mean is :math:`m = \sum_g p(g|z) m_g` and its
    covariance :math:`\sum_g p(g|z) (R_g + (m_g - m)(m_g - m)^T)` (Parrish 2012, (5.20) and
    Appendix C).

    Training rows may be incomplete, as in `GaussianCompletion`; labels must be known.

    Parameters
    ----------
    shrinkage : float in [0, 1] or "ledoit-wolf", default="ledoit-wolf"
        Weight of the class's mean variance times the identity in its covariance.
    ridge : float >= 0, default=1e-6
        Multiple of the mean variance within classes that is added to every diagonal.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.
    max_iter : int >= 1, default=200
        Maximum number of iterations where training rows are incomplete.
    tol : float >= 0, default=1e-4
        Iterations stop when no covariance, and no mean in standard deviations, changes by more.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations; 1 where training rows were complete.
    log_likelihoods_ : (n_iter,) array
        Mean log density of the known entries of a training row before each iteration; empty where
        training rows were complete.
    classes_ : (G,) array
        Labels, sorted.
    class_weights_ : (G,) array
        Frequencies of the classes.
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

    Raises
    ------
    ValueError
        If all training rows are equal, a column or a class is never known, parameters are invalid,
        or a covariance is not positive definite.

    See Also
    --------
    GaussianCompletion : One Gaussian of all samples; needs fewer samples.

    References
    ----------
    N. Parrish (2012), section 5.4.2 and Appendix C.

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
            Rows; NaN is missing.
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
            rows, labels, weight = weighted_rows(rows, labels, sample_weight)
            classes, codes = np.unique(labels, return_inverse=True)
            shares = self._keep(rows, codes.astype(np.int32), weight)
        self.classes_, self.class_weights_ = classes, self.mixture_.weights
        self.means_, self.covariances_ = self.mixture_.means, self.mixture_.covariances
        self.shrinkages_ = shares
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
