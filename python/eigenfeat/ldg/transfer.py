"""LDG for two domains: many labelled samples of a source, and few of the target.

Parrish (2012), chapter 4. Local means of samples of both domains are means of source samples. The
scatters of target and source samples about these means have the weights ``1 - alpha`` and
``alpha``:

    V = (1 - alpha) V_T + alpha V_S,    A = (1 - alpha) A_T + alpha A_S.

The sample's own class g has the weight ``1 - gamma p_g``, as in (4.4) and later equations. In
(4.3), from which the thesis derives (4.4), this weight is ``1 - p_g``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import check_two_labels, class_folds
from eigenfeat._base.types import Floats, Targets
from eigenfeat._base.validation import FLOATS, MOST, check_number, check_vector, show
from eigenfeat.ldg._solving.base import Reducer, components_of
from eigenfeat.ldg._solving.coordinates import smallest_eigenpairs, spanning_rows
from eigenfeat.ldg._solving.scatters import Array, PrincipalBasis
from eigenfeat.ldg._solving.selection import best_gamma, members
from eigenfeat.moments.columns import deviations
from eigenfeat.neighbours.local_means import (
    LocalScatters,
    knn_correct,
    local_neighbours,
    local_scatters,
    scatters_of_neighbours,
)
from eigenfeat.pencils.rayleigh_matrices import count_components
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import prepare, unchanged_on_error, validate_data

__all__ = ["TransferLDG"]

_ALPHAS = (0.0, 0.1, 0.3, 0.5)  # candidates of alpha
_GAMMAS = (0.2, 0.4, 0.6, 0.8, 0.9)  # candidates of gamma
_GAMMA_FOR_ALPHA = 0.9  # gamma while alpha is chosen
_EXTRA_DIMENSIONS = 5  # dimensions in addition to one per class, to choose alpha and gamma
_MAX_FOLDS = 5  # folds by which alpha and gamma are chosen
_EXPECTED = "numbers above 0 (source) or below 0 (target)"


@dataclass(eq=False)
class TwoDomains:
    """Standardised samples of source and target, to choose alpha and gamma and to solve with."""

    source: Array
    source_codes: NDArray[np.int64]
    target: Array
    target_codes: NDArray[np.int64]
    n_neighbors: int
    n_threads: int | None = None
    results: dict[str, Any] = field(default_factory=dict)  # see `TransferLDG.cv_results_`

    def __post_init__(self) -> None:
        self.n_classes = int(self.source_codes.max()) + 1
        samples = self.source, self.source_codes, self.n_classes, self.n_neighbors
        self.source_scatters = local_scatters(*samples, n_threads=self.n_threads)
        self.neighbours = local_neighbours(*samples, queries=self.target, n_threads=self.n_threads)

    def target_scatters(self, rows: NDArray[np.intp]) -> LocalScatters:
        """Return V_T and A_T of samples of the target, with the source's priors."""
        return scatters_of_neighbours(
            self.source, self.source_codes, self.neighbours[rows], queries=self.target[rows],
            query_codes=self.target_codes[rows], n_threads=self.n_threads,
        )  # fmt: skip

    def solve(
        self, target: LocalScatters, alpha: float, gamma: float, m: int
    ) -> tuple[Array, Array]:
        """Return the m smallest eigenpairs of V - gamma A, or of LDG without target samples."""
        source, alpha = self.source_scatters, alpha if len(self.target) else 1.0
        V = (1.0 - alpha) * target.within + alpha * source.within
        A = (1.0 - alpha) * target.weighted + alpha * source.weighted
        return smallest_eigenpairs(V - gamma * A, m)

    def accuracies(
        self, name: str, values: list[float], pairs: list[tuple[float, float]], m: int
    ) -> Array:
        """Return the accuracy on held-out target samples for each pair (alpha, gamma).

        Samples are reduced to m dimensions. The accuracies are recorded with the `values` of the
        parameter `name`. For one pair, or fewer than two samples, the accuracies are 0 and are not
        recorded.
        """
        hits = np.zeros(len(pairs))
        if len(pairs) == 1 or len(self.target) < 2:
            return hits
        counts = np.bincount(self.target_codes)
        n_folds = int(np.clip(counts[counts > 0].min(), 2, _MAX_FOLDS))
        folds = class_folds(self.target_codes, n_folds)
        for number in range(n_folds):
            known, held_out = np.flatnonzero(folds != number), np.flatnonzero(folds == number)
            scatters = self.target_scatters(known)
            for i, (alpha, gamma) in enumerate(pairs):
                hits[i] += self._hits(self.solve(scatters, alpha, gamma, m)[1], known, held_out)
        accuracies = hits / len(self.target)
        self.results |= {name: np.array(values), f"{name}_accuracy": accuracies}
        return accuracies

    def _hits(self, directions: Array, known: NDArray[np.intp], held_out: NDArray[np.intp]) -> int:
        """Number of `held_out` target samples that 3-NN on other samples classifies correctly."""
        references = np.vstack([self.source, self.target[known]])
        codes = np.concatenate([self.source_codes, self.target_codes[known]])
        correct = knn_correct(
            references, codes, directions, queries=self.target[held_out],
            query_codes=self.target_codes[held_out], n_threads=self.n_threads,
        )  # fmt: skip
        return int(correct.sum())


class TransferLDG(Reducer):
    """LDG for transfer learning, from a source domain to a target domain with few labels.

    Use it where one domain has many labels and the other few. Cross-validation chooses `alpha` and
    `gamma` by default; set `n_components` first. User guide: :doc:`/guide/reduction`.

    Directions are the smallest eigenvectors of ``V - gamma A`` with
    ``V = (1 - alpha) V_T + alpha V_S`` and ``A = (1 - alpha) A_T + alpha A_S``: scatters of target
    and source samples about the means of their nearest source samples of each class. Each domain is
    standardised separately. Classify target samples by reduced samples of both domains.

    Parameters
    ----------
    n_components : int or None, default=None
        Number of directions; by default the number of classes plus five, at most the rank of the
        samples.
    n_neighbors : int, default=16
        Source samples of a local mean.
    alpha : float in [0, 1], "cv" or sequence of float, default="cv"
        The source's weight. "cv": the best of 0, .1, .3, .5 by the cross-validated 3-NN accuracy on
        target samples in ``classes + 5`` dimensions. A sequence: the candidates.
    gamma : float >= 0, "cv" or sequence of float, default="cv"
        Weight of A. "cv": the best of .2, .4, .6, .8 and .9 by the accuracy with the chosen alpha;
        .9 without target samples. A sequence: the candidates.
    standardize : bool, default=True
        Whether each domain is standardised.
    n_threads : int or None, default=None
        Number of threads; None uses all OpenMP threads. Results do not depend on it.

    Attributes
    ----------
    components_ : (ell, d) array
        Orthonormal directions for standardised samples, one per row; 0 for columns that are
        constant in either domain. The entry of largest magnitude is positive.
    eigenvalues_ : (ell,) array
        Eigenvalues of ``V - gamma A``, ascending.
    alpha_ : float
        The given or chosen weight of the source.
    gamma_ : float
        The given or chosen weight of A.
    n_components_ : int
        The given or chosen number of directions.
    cv_results_ : dict
        Candidates of each chosen parameter under its name, and their accuracies under the name with
        the suffix "_accuracy".
    classes_ : (k,) array
        Labels of the source, sorted.
    mean_ : (d,) array
        Means of the target's columns.
    source_mean_ : (d,) array
        Means of the source's columns.
    scale_ : (d,) array
        Standard deviations of the target's columns; infinite for columns left out.
    source_scale_ : (d,) array
        Standard deviations of the source's columns; infinite for columns left out.

    See Also
    --------
    LDG : One domain.

    References
    ----------
    N. Parrish, thesis, University of Washington, 2012, sections 4.2 to 4.5.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.ldg import TransferLDG
    >>> y, domain = np.arange(68) % 2, np.repeat([1, -1], [60, 8])
    >>> X = np.random.default_rng(0).standard_normal((68, 5)) + y[:, None] * domain[:, None]
    >>> TransferLDG(n_components=1).fit(X, y, sample_domain=domain).transform(X[60:]).shape
    (8, 1)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Reducer._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, MOST, closed="both")],
        "alpha": [Interval(Real, 0, 1, closed="both"), StrOptions({"cv"}), "array-like"],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"}), "array-like"],
        "standardize": ["boolean"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 16,
        alpha: float | str | Sequence[float] = "cv",
        gamma: float | str | Sequence[float] = "cv",
        standardize: bool = True,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.gamma = gamma
        self.standardize = standardize
        self.n_threads = n_threads

    def fit(
        self,
        X: ArrayLike | RowBlocks,
        y: Targets = None,
        sample_domain: ArrayLike | None = None,
    ) -> TransferLDG:
        """Find the components of samples of both domains.

        Parameters
        ----------
        X : (n, d) array-like or RowBlocks
            Finite samples of both domains. Rows of files are read into memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels.
        sample_domain : (n,) array-like of integers, optional
            Above 0 for samples of the source, below 0 for samples of the target. By default there
            is only one domain.

        Returns
        -------
        TransferLDG
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            samples = prepare(self, X, y, in_memory=True, dense=True)
            rows = samples.together().X
            source = _source_rows(sample_domain, len(rows), by_default=True)
            for name, domain in (("source", source), ("target", ~source)):
                if sample_domain is not None and not domain.any():
                    raise ValueError(
                        f"sample_domain: expected {_EXPECTED}, got no sample of the {name}"
                    )
            self.classes_, codes = _encode(samples, source)
            self._keep_units(rows, source)
            self._solve(self._standardised(rows, source), codes, source)
        return self

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
        (n, ell) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=FLOATS, order="C", reset=False)
        source = _source_rows(sample_domain, len(rows), by_default=False)
        return self._projected(self._standardised(rows, source).astype(rows.dtype, copy=False))

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, sample_domain: ArrayLike | None = None
    ) -> Floats:
        """Fit, and transform the samples, each standardised in its domain.

        Parameters
        ----------
        X : (n, d) array-like
            Finite samples of both domains.
        y : (n,) array-like
            Labels.
        sample_domain : (n,) array-like of integers, optional
            Above 0 for samples of the source, below 0 for samples of the target. By default there
            is only one domain.

        Returns
        -------
        (n, ell) array, float32 if `X` is float32, else float64
        """
        return self.fit(X, y, sample_domain).transform(X, sample_domain)

    def _keep_units(self, X: NDArray[Any], source: NDArray[np.bool_]) -> None:
        """Set means and standard deviations of the columns in both domains.

        A column that is constant in either domain is left out (section 4.5.3).
        """
        domains = X[source], X[source if source.all() else ~source]
        means, scales = np.zeros((2, X.shape[1])), np.ones((2, X.shape[1]))
        if self.standardize:
            means = np.array([rows.mean(axis=0, dtype=np.float64) for rows in domains])
            scales = np.array([deviations(rows) for rows in domains])
            constant = scales.min(axis=0) == 0
            if constant.all():
                raise ValueError("X: expected a column that varies in every domain, got none")
            scales[:, constant] = np.inf
        self.source_mean_, self.mean_ = means
        self.source_scale_, self.scale_ = scales

    def _standardised(self, X: NDArray[Any], source: NDArray[np.bool_]) -> Array:
        """Return samples (n, d), each in the units of its domain."""
        rows = X.astype(np.float64)
        rows[source] = (rows[source] - self.source_mean_) / self.source_scale_
        rows[~source] = (rows[~source] - self.mean_) / self.scale_
        return rows

    def _solve(self, X: Array, codes: NDArray[np.int64], source: NDArray[np.bool_]) -> None:
        """Choose alpha and gamma, and keep the directions of standardised samples."""
        varying = np.isfinite(self.scale_)
        rows = X[:, varying]
        # With fewer samples than columns or dependent columns, solve in the span of the samples.
        n, d = rows.shape
        spanned = n < d or spanning_rows(rows) is not None
        basis = PrincipalBasis.of(rows).basis if spanned else None
        rows = rows if basis is None else rows @ basis
        parts = rows[source], codes[source], rows[~source], codes[~source]
        domains = TwoDomains(*parts, int(self.n_neighbors), self.n_threads)
        alphas = _candidates(self.alpha, "alpha", _ALPHAS)
        gammas = _candidates(self.gamma, "gamma", _GAMMAS)
        if alphas[-1] > 1:
            raise ValueError(f"alpha: expected numbers from 0 to 1, got {show(self.alpha)}")
        r = rows.shape[1]
        default_m = min(r, domains.n_classes + _EXTRA_DIMENSIONS)
        m = count_components(self.n_components or default_m, r, "rank of the samples")
        pairs = [(alpha, _GAMMA_FOR_ALPHA) for alpha in alphas]
        alpha = alphas[int(np.argmax(domains.accuracies("alpha", alphas, pairs, default_m)))]
        pairs = [(alpha, gamma) for gamma in gammas]
        gamma = best_gamma(gammas, domains.accuracies("gamma", gammas, pairs, default_m))
        scatters = domains.target_scatters(np.arange(len(domains.target)))
        values, vectors = domains.solve(scatters, alpha, gamma, m)
        directions = np.zeros((len(varying), m))
        directions[varying] = vectors if basis is None else basis @ vectors
        self.components_ = components_of(directions)
        self.eigenvalues_, self.cv_results_ = values, domains.results
        self.alpha_, self.gamma_, self.n_components_ = alpha, gamma, m


def _source_rows(sample_domain: ArrayLike | None, n: int, *, by_default: bool) -> NDArray[np.bool_]:
    """Return the mask (n,) of the samples of the source; `by_default` without `sample_domain`."""
    if sample_domain is None:
        return np.full(n, by_default)
    numbers = check_vector(sample_domain, n, "sample_domain", positive=False)
    wrong = (numbers == 0) | (numbers != np.round(numbers))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_domain: expected {_EXPECTED}, got {numbers[row]:g} in row {row}")
    return np.asarray(numbers > 0)


def _candidates(given: Any, name: str, by_default: tuple[float, ...]) -> list[float]:
    """Return the ascending candidates of a parameter."""
    values = members(given, name, by_default)
    return sorted(check_number(value, name, at_least=0.0) for value in values)


def _encode(
    samples: LabelledSamples, source: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the source's classes, and the codes of all samples."""
    present = np.unique(samples.codes[source])
    classes = samples.classes[present]
    check_two_labels(classes, "source samples")
    unknown = samples.codes[~np.isin(samples.codes, present)]
    if len(unknown):
        raise ValueError(
            f"y: expected labels of the target among the source's {show(classes.tolist())}, "
            f"got {show(samples.classes[unknown[0]])}"
        )
    return classes, np.searchsorted(present, samples.codes)
