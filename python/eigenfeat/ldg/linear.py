"""Linear LDG: directions in which samples are near their own class and far from other classes."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.labels import class_folds
from eigenfeat._base.types import Floats, RandomState, Rows, Targets
from eigenfeat._base.validation import (
    FLOATS,
    check_count,
    check_number,
    check_whole,
    random_generator,
    show,
    warn_caller,
)
from eigenfeat.expansion.features import expand
from eigenfeat.ldg._solving import selection
from eigenfeat.ldg._solving.coordinates import (
    kernel_coordinates,
    span_of,
    sparse_columns,
    standardise,
)
from eigenfeat.ldg._solving.scatters import Array, fisher_directions
from eigenfeat.ldg._solving.selection import Problem
from eigenfeat.moments.columns import signed
from eigenfeat.neighbours.local_means import LocalScatters
from eigenfeat.samples.block_samples import LabelledSamples
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import BaseEstimator, prepare, unchanged_on_error, validate_data
from eigenfeat.samples.out_of_core import over_blocks

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["LDG", "LocalDiscriminant"]

N_FOLDS = 5  # folds by which parameters are chosen


class LocalDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of LDG: chooses the parameters, and finds eigenvectors of ``V - gamma A``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"cv", "greedy"}),
            "array-like",
        ],
        "gamma": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"}), "array-like"],
        "n_neighbors": [
            Interval(Integral, 1, None, closed="left"),
            StrOptions({"cv"}),
            "array-like",
        ],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    }

    n_components: int | str | Sequence[int]
    gamma: float | str | Sequence[float]
    n_neighbors: int | str | Sequence[int]
    fisher_ridge: Any = None
    standardize: bool
    random_state: RandomState
    n_threads: int | None

    def fit(self, X: Rows | RowBlocks, y: Targets = None) -> Self:
        """Choose parameters, and solve for the directions.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. Rows of files are read into memory. `LDG` keeps sparse samples sparse if
            they have at least as many columns as samples; other sparse samples become dense, except
            for columns of zeros. With ``kernel="precomputed"``, the (n, n) kernel matrix.
        y : (n,) array-like
            Labels of at least two classes; None with blocks, which contain labels.

        Returns
        -------
        object
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            samples = prepare(self, X, y, in_memory=True)
            problem = self._problem(samples)
            candidates = self._candidates(problem)
            n_neighbors = self._choose_neighbors(problem, candidates["n_neighbors"])
            ridge = self._choose_ridge(problem, candidates | {"n_neighbors": [n_neighbors]})
            self.n_neighbors_, self.fisher_ridge_ = n_neighbors, ridge
            if ridge is not None:
                problem.first = fisher_directions(problem.coordinates, problem.samples.codes, ridge)
            scatters = problem.scatters(n_neighbors)  # V and A (3.9, 3.10)
            self.gamma_ = self._choose_gamma(problem, scatters, candidates["gamma"])
            # The smallest eigenvectors of V - gamma A (3.12).
            self.eigenvalues_, vectors = self._solve(problem, scatters, candidates["n_components"])
            self._keep(problem, vectors)
            self.n_components_, self.cv_results_ = len(self.eigenvalues_), problem.results
            self.classes_ = samples.classes
            self.short_classes_ = samples.classes[scatters.short_classes]
            if len(scatters.short_classes) and not isinstance(self.n_neighbors, str):
                warn_caller(
                    f"n_neighbors: expected more than {n_neighbors} samples of every class, got "
                    f"fewer of {show(self.short_classes_.tolist())}; their local means use all "
                    "samples",
                    RuntimeWarning,
                )
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _problem(self, samples: LabelledSamples) -> Problem:
        raise NotImplementedError

    def _candidates(self, problem: Problem) -> dict[str, Any]:
        """Check the parameters, and return the candidates of each.

        If held-out samples are needed to choose, only the best candidate is returned.
        """
        held_out = problem.separates_any_labels
        by_default: dict[str, Sequence[float | None]] = {
            "n_neighbors": selection.FOLD_NEIGHBORS if held_out else selection.NEIGHBORS,
            "gamma": selection.FOLD_GAMMAS if held_out else selection.GAMMAS,
            "n_components": selection.dimensions(problem.n_classes, problem.rank),
            "fisher_ridge": selection.FISHER_RIDGES,
        }
        chosen = {
            name: selection.members(getattr(self, name), name, values)
            for name, values in by_default.items()
        }
        for value in chosen["fisher_ridge"]:
            if value is not None and check_number(value, "fisher_ridge", at_least=0.0) == 0:
                raise ValueError("fisher_ridge: expected a positive number or None, got 0")
        for value in chosen["n_neighbors"]:
            check_count(value, "n_neighbors")
        for value in chosen["gamma"]:
            check_number(value, "gamma", at_least=0.0)
        for value in chosen["n_components"]:
            if check_whole(value, "n_components", at_least=1) > problem.rank:
                n, d = len(problem.rows), self.n_features_in_
                raise ValueError(
                    f"n_components: expected at most {problem.rank}, the rank of the centred "
                    f"samples (n_samples={n}, n_features={d}), got {value}"
                )
        several = self._greedy or any(len(values) > 1 for values in chosen.values())
        return self._choose_on_held_out(problem, chosen) if held_out and several else chosen

    def _choose_on_held_out(self, problem: Problem, candidates: dict[str, Any]) -> dict[str, Any]:
        """Return the best candidate of each parameter on held-out samples."""
        ridge, tried = self._best_ridge(problem, candidates)
        n_neighbors, gamma, dimension = tried.best()
        problem.results |= tried.results(n_neighbors, gamma)
        if self._greedy:
            most = min(selection.GREEDY_LIMIT, problem.rank)
            dimensions = range(1, most + 1)
            found = selection.fold_accuracies(problem, [n_neighbors], [gamma], dimensions, ridge)
            grown = found.values[0, 0]
            dimension, accuracies = selection.greedy_dimension(lambda m: grown[m - 1], most)
            problem.record("n_components", range(1, len(accuracies) + 1), accuracies)
        chosen = {"n_neighbors": n_neighbors, "gamma": gamma, "n_components": dimension}
        return {name: [value] for name, value in (chosen | {"fisher_ridge": ridge}).items()}

    def _best_ridge(
        self, problem: Problem, candidates: dict[str, Any]
    ) -> tuple[float | None, selection.FoldAccuracies]:
        """Return the best ridge on held-out samples, and the accuracies of candidates with it."""
        counts = selection.useful_counts(candidates["n_neighbors"], problem.samples.codes)
        given = problem, counts, candidates["gamma"], candidates["n_components"]
        ridges = candidates["fisher_ridge"]
        tried = [selection.fold_accuracies(*given, ridge) for ridge in ridges]
        best = [accuracies.values.max() for accuracies in tried]
        if len(ridges) > 1:
            problem.record("fisher_ridge", np.array(ridges, dtype=float), best)
        i = int(np.argmax(best))
        return ridges[i], tried[i]

    @property
    def _greedy(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "greedy"

    def _choose_neighbors(self, problem: Problem, candidates: list[int]) -> int:
        counts = selection.useful_counts(candidates, problem.samples.codes)
        if len(counts) == 1:
            return int(counts[0])
        folds = class_folds(problem.samples.codes, N_FOLDS, random_generator(self.random_state))
        accuracies = selection.local_qda_accuracies(problem, counts, folds)
        problem.record("n_neighbors", counts, accuracies)
        return int(counts[int(np.argmax(accuracies))])

    def _choose_ridge(self, problem: Problem, candidates: dict[str, Any]) -> float | None:
        ridges = candidates["fisher_ridge"]
        ridge: float | None = ridges[0]
        return ridge if len(ridges) == 1 else self._best_ridge(problem, candidates)[0]

    def _choose_gamma(
        self, problem: Problem, scatters: LocalScatters, candidates: list[float]
    ) -> float:
        gammas = [float(gamma) for gamma in candidates]
        if len(gammas) == 1:
            return gammas[0]
        count = problem.n_classes + 5  # directions in which values of gamma are compared
        accuracies = [problem.accuracy(problem.solve(scatters, g, count)[1]) for g in gammas]
        problem.record("gamma", gammas, accuracies)
        return selection.best_gamma(gammas, accuracies)

    def _solve(
        self, problem: Problem, scatters: LocalScatters, candidates: list[int]
    ) -> tuple[Array, Array]:
        """Return eigenvalues and directions in coordinates; their number is given or chosen."""
        greedy = self._greedy and not problem.separates_any_labels
        most = selection.GREEDY_LIMIT if greedy else max(candidates)
        values, vectors = problem.solve(scatters, self.gamma_, most)
        if greedy:
            count, accuracies = selection.greedy_dimension(
                lambda m: problem.accuracy(vectors[:, :m]), len(values)
            )
            tried = np.arange(1, len(accuracies) + 1)
        elif len(candidates) == 1:
            return values, vectors
        else:
            tried = np.unique(candidates)
            accuracies = [problem.accuracy(vectors[:, :m]) for m in tried]
            count = int(tried[int(np.argmax(accuracies))])
        problem.record("n_components", tried, accuracies)
        return values[:count], vectors[:, :count]

    def _keep(self, problem: Problem, vectors: Array) -> None:
        """Set the fitted attributes of the directions (r, m)."""
        raise NotImplementedError


class LDG(LocalDiscriminant):
    r"""Local discriminative Gaussian dimensionality reduction.

    Use it to reduce dimensions before nearest neighbours or plots, also with more features than
    samples. Cross-validation chooses parameters by default; set `n_components` first, then `gamma`.
    User guide: :doc:`/guide/reduction`.

    Directions are the smallest eigenvectors of :math:`V - \gamma A`: V is the scatter of samples
    about the mean of their nearest neighbours in their own class, A their scatter about the local
    means of all classes. There may be more directions than classes.

    Parameters
    ----------
    n_components : int, "cv", "greedy" or sequence of int, default="cv"
        Number of directions. A sequence, here and below, lists candidates. "cv": the best by
        leave-one-out 3-NN accuracy. "greedy": up to 40, as long as the accuracy does not decrease.
    gamma : float >= 0, "cv" or sequence of float, default="cv"
        Weight of A. "cv": the best of 0.2, 0.4, 0.6, 0.8 and 1, or, with at least
        ``n_samples - 1`` columns, of 0.01, 0.1, 0.3, 0.5, 0.7 and 0.9 on held-out samples.
    n_neighbors : int, "cv" or sequence of int, default="cv"
        Neighbours of a local mean. "cv": the best of 1, 2, 4, ..., 128 by the 5-fold accuracy of
        local QDA, or, with at least ``n_samples - 1`` columns, of 1, 4 and 16 by 3-fold 3-NN.
    fisher_ridge : None, float > 0, "cv" or sequence, default=None
        With a number, the first directions span the directions of `RegularizedFisher` with this
        ridge, and the LDG directions follow in the orthogonal complement. "cv": the best of None,
        0.01, 0.1 and 1.
    standardize : bool, default=True
        Whether columns are divided by their standard deviations first. Constant columns become 0.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds that choose `n_neighbors`.
    n_threads : int or None, default=None
        Number of threads; None uses all. Results do not depend on it.

    Attributes
    ----------
    components_ : (n_components, d) array
        Orthonormal directions in standardised features, one per row.
    mean_ : (d,) array
        Means of the columns; features are ``((X - mean_) / scale_) @ components_.T``.
    scale_ : (d,) array
        Standard deviations of the columns; 1 for constant columns or without `standardize`.
    eigenvalues_ : (n_components,) array
        ``v^T (V - gamma A) v`` of each direction v, ascending; Fisher directions come first.
    gamma_ : float
        The given or chosen `gamma`.
    fisher_ridge_ : float or None
        The given or chosen `fisher_ridge`.
    n_neighbors_ : int
        The given or chosen number of neighbours.
    n_components_ : int
        The given or chosen number of directions.
    cv_results_ : dict
        Candidates of each chosen parameter under its name, and their accuracies under the name with
        the suffix "_accuracy". NaN stands for None.
    classes_ : (k,) array
        Labels, sorted.
    short_classes_ : (s,) array
        Labels of classes with at most `n_neighbors_` samples; their local means use all samples of
        the class. A RuntimeWarning names these classes if `n_neighbors` was given.

    See Also
    --------
    SparseLDG : Directions with few nonzero entries.
    DiscriminativeGaussian : Better in two or three dimensions, slower.
    eigenfeat.rayleigh.FisherLDA : By class means; at most k - 1 directions; also a classifier.

    References
    ----------
    N. Parrish, "Supervised Dimensionality Reduction for Different Learning Architectures", PhD
    thesis, University of Washington, 2012, chapter 3.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from eigenfeat.ldg import LDG
    >>> X, y = load_wine(return_X_y=True)
    >>> LDG(n_components=2, n_neighbors=8).fit_transform(X, y).shape
    (178, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LocalDiscriminant._parameter_constraints,
        "fisher_ridge": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"cv"}),
            "array-like",
            None,
        ],
    }

    _in_span: ClassVar[bool] = True  # whether sparse samples may be solved in their span

    def __init__(
        self,
        n_components: int | str | Sequence[int] = "cv",
        *,
        gamma: float | str | Sequence[float] = "cv",
        n_neighbors: int | str | Sequence[int] = "cv",
        fisher_ridge: float | str | Sequence[float | None] | None = None,
        standardize: bool = True,
        random_state: RandomState = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.fisher_ridge = fisher_ridge
        self.standardize = standardize
        self.random_state = random_state
        self.n_threads = n_threads

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Project samples onto the directions: ``((X - mean_) / scale_) @ components_.T``.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, n_components) array, float32 if `X` is float32, else float64
        """
        check_is_fitted(self)
        options = {"accept_sparse": "csr", "dtype": FLOATS, "order": "C", "reset": False}
        rows = validate_data(self, X, **options)
        directions, offset = self.components_, None
        if sparse.issparse(rows):
            directions = directions / self.scale_
            offset = -(directions @ self.mean_)
        else:  # centred first, because means may be large
            rows = ((rows - self.mean_) / self.scale_).astype(rows.dtype)
        directions = np.ascontiguousarray(directions.T)
        return expand(rows, directions, offset, expansion="none", n_threads=self.n_threads)

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _problem(self, samples: LabelledSamples) -> Problem:
        X = samples.together().X
        if samples.sparse and X.shape[1] >= X.shape[0] and self._in_span:
            columns, scaled = sparse_columns(X, self.standardize)
            root, inside = kernel_coordinates(scaled)
            return Problem(samples, inside, inside, root, columns)
        columns, rows = standardise(X, self.standardize)
        if not len(columns.varying):
            raise ValueError("X: expected samples that differ, got constant columns only")
        basis, coordinates = span_of(rows)
        return Problem(samples, rows, coordinates, basis, columns)

    def _keep(self, problem: Problem, vectors: Array) -> None:
        columns = problem.columns
        self.components_ = np.zeros((vectors.shape[1], len(columns.mean)))
        self.components_[:, columns.varying] = signed(problem.basis.expand(vectors)).T
        self.mean_, self.scale_ = columns.mean, columns.scale
