"""Reductions of the thesis by name, and its classifier, 3-NN on reduced samples.

A family is called with training samples (n, d), their codes (n,) and `Rules`, and yields pairs of
parameters and a fitted transformer: the candidates from which 3-NN chooses. A transformer's columns
are nested: the first m columns are the reduction to m dimensions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import FunctionTransformer

from eigenfeat import ldg as reductions
from eigenfeat._base.labels import class_folds
from eigenfeat.ldg.metric_learning import ranked_by_information
from eigenfeat.neighbours.local_means import knn_correct

RIDGE = 1e-3  # of Fisher's and local Fisher's scatters, for which the thesis has none
SPARSITY = 3  # section 3.4.1
SLACKS = (0.1, 1.0, 10.0)  # of ITML; the thesis uses the values of ITML's code
SLACK_FOLDS = 3
UNION_GAMMAS = (0.01, 0.3, 0.7)
MAX_NCA_DIMENSIONS = 40

# ---- 3-NN ----------------------------------------------------------------------------------------


def accuracy(rows, codes, queries=None, asked=None):
    """Return the share of queries (m, d) of codes `asked` that 3-NN by rows (n, d) gets right.

    Without queries, each row is classified by the other rows. Two of three neighbours decide, or
    the nearest neighbour if all three differ.
    """
    return float(knn_correct(rows, codes, queries=queries, query_codes=asked).mean())


# ---- rules ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rules:
    """Rules by which 3-NN accuracy chooses parameters and dimensions.

    Parameters are compared in `at` dimensions more than there are classes; of equal accuracies the
    last candidate is taken. `steps` are candidates for the dimension, relative to the number of
    classes; None means greedily from 1 up to `most`. Without `folds`, directions of all samples
    have leave-one-out accuracies; with `folds`, directions are fitted without the queries.
    """

    gammas: tuple[float, ...]
    at: int
    ridges: tuple[float, ...] = ()
    steps: tuple[int, ...] | None = None
    most: int = 40
    folds: int | None = None

    def limit(self, n_classes):
        """Return the largest number of directions that is compared."""
        return self.most if self.steps is None else n_classes + max(self.steps)

    def quick(self):
        """Return rules with fewer candidates, for a quick run."""
        return replace(self, gammas=self.gammas[::2], ridges=self.ridges[::2])


@dataclass(frozen=True, eq=False)
class ByItself:
    """A reduction that chooses parameters and dimension by itself, without rules.

    `make` takes the dimension, or "cv", and returns an estimator.
    """

    make: Callable[[int | str], Any]


def family(candidates):
    """Turn a generator of candidates (context, samples, codes, rules) into a method's `build`."""

    @wraps(candidates)
    def build(context, **given):
        return partial(candidates, context, **given)

    return build


def _max_directions(X, codes, rules):
    """Return the rules' limit on directions, or the rank of the samples if it is smaller."""
    n, d = X.shape
    rank = d if d < n else int(np.linalg.matrix_rank(X - X.mean(axis=0)))
    return min(rules.limit(int(codes.max()) + 1), rank)


def chosen_by(model, *names):
    """Return the parameters of these names that a fitted estimator has chosen by itself."""
    found = {name: getattr(model, f"{name}_", None) for name in names or ("gamma", "n_neighbors")}
    return {name: value for name, value in found.items() if value is not None}


# ---- LDG -----------------------------------------------------------------------------------------


@family
def ldg(context, X, codes, rules):
    """LDG in many dimensions, with the rules' gammas."""
    given = {"gamma": list(rules.gammas)}
    if len(X) <= X.shape[1] + 1:  # left-out samples choose gamma, in few dimensions
        chosen = reductions.LDG("greedy", random_state=context.seed, **given).fit(X, codes)
        given = {"gamma": chosen.gamma_, "n_neighbors": chosen.n_neighbors_}
    model = reductions.LDG(_max_directions(X, codes, rules), random_state=context.seed, **given)
    yield chosen_by(model.fit(X, codes)), model


def ldg_by_itself(context):
    """LDG with its defaults."""
    return ByItself(partial(reductions.LDG, random_state=context.seed))


@family
def ldg_and_fisher(context, X, codes, rules):
    """Fisher's directions of length 1, then LDG's of their orthogonal complement."""
    for ridge in rules.ridges:
        first = reductions.RegularizedFisher(ridge=ridge).fit(X, codes)
        units = np.linalg.qr(first.components_.T)[0].T
        rest = X - (X @ units.T) @ units
        for gamma in UNION_GAMMAS:
            most = max(_max_directions(X, codes, rules) - len(units), 1)
            given = {"gamma": gamma, "n_neighbors": 4}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                second = reductions.LDG(most, standardize=False, **given).fit(rest, codes)
            yield {"ridge": ridge, **given}, Directions(np.vstack([units, second.components_]))


@dataclass(frozen=True, eq=False)
class Directions:
    """Projections on given directions."""

    components_: Any

    def transform(self, X):
        """Return the projections."""
        return X @ self.components_.T


@family
def sparse_ldg(context, X, codes, rules, *, deflation):
    """SparseLDG, its matrix deflated by sparse directions or in their orthogonal complement."""
    given = {"sparsity": SPARSITY, "gamma": list(rules.gammas), "n_neighbors": "cv"}
    most = _max_directions(X, codes, rules)
    model = reductions.SparseLDG(most, deflation=deflation, random_state=context.seed, **given)
    yield chosen_by(model.fit(X, codes)), model


# ---- other reductions ----------------------------------------------------------------------------


@family
def all_columns(context, X, codes, rules):
    """All columns, without a reduction."""
    yield {}, FunctionTransformer().fit(X)


@family
def pca(context, X, codes, rules):
    """Principal components."""
    yield {}, PCA(_max_directions(X, codes, rules), svd_solver="auto", random_state=0).fit(X)


@family
def plain(context, X, codes, rules, *, kind, **given):
    """An estimator of this class."""
    yield {}, kind(**given).fit(X, codes)


@family
def ridged(context, X, codes, rules, *, kind, ridges=()):
    """RegularizedFisher or LocalFisher, a candidate for each ridge."""
    most = (_max_directions(X, codes, rules),) if kind is reductions.LocalFisher else ()
    for ridge in ridges or rules.ridges:
        yield {"ridge": ridge}, kind(*most, ridge=ridge).fit(X, codes)


@family
def pca_fisher(context, X, codes, rules):
    """Fisherfaces, in directions of length 1; the thesis does not state their scale.

    On its small sets, directions of length 1 have a mean accuracy of 71%, and directions with unit
    variance within classes 66%.
    """
    model = reductions.PCAFisher().fit(X, codes)
    lengths = np.linalg.norm(model.components_, axis=1, keepdims=True)
    model.components_ = model.components_ / lengths
    yield {}, model


fisher = partial(ridged, kind=reductions.RegularizedFisher, ridges=(RIDGE,))
local_fisher = partial(ridged, kind=reductions.LocalFisher, ridges=(RIDGE,))
regularized_fisher = partial(ridged, kind=reductions.RegularizedFisher)
regularized_local_fisher = partial(ridged, kind=reductions.LocalFisher)
direct_lda = partial(plain, kind=reductions.DirectLDA)
gsvd = partial(plain, kind=reductions.GSVDDiscriminant)
# With as many principal components as possible whose scatter within classes is regular.
pca_local_fisher = partial(plain, kind=reductions.LocalFisher, pca_components="auto", ridge=0.0)


@family
def itml(context, X, codes, rules):
    """ITML, a candidate for each slack; features are ranked by mutual information."""
    for slack in SLACKS:
        model = reductions.ITML(slack=slack, random_state=context.seed).fit(X, codes)
        model.components_ = model.components_[
            _rank_features(model, X, codes, _max_directions(X, codes, rules))
        ]
        yield {"slack": slack}, model


def _rank_features(model, X, codes, count):
    """Return places of features of a whole metric by mutual information with the classes.

    Features outside the span of the samples are left out.
    """
    rank = min(len(X) - 1, X.shape[1])
    return ranked_by_information(model.transform(X)[:, :rank], codes, min(count, rank))


def itml_by_itself(context):
    """ITML with a slack chosen by folds: its whole metric, or its first features by rank."""
    return ByItself(partial(ChosenITML, context.seed, {}))


class ChosenITML:
    """ITML in `dimension` dimensions, or its whole metric ("cv"), with a slack chosen by folds.

    `metrics` has whole metrics by slack and fold, which all dimensions of a split share.
    """

    def __init__(self, seed, metrics, dimension):
        self.seed = seed
        self.metrics = metrics
        self.dimension = None if dimension == "cv" else dimension

    def _fit_metric(self, X, codes, slack, fold=None):
        if (slack, fold) not in self.metrics:
            self.metrics[slack, fold] = reductions.ITML(slack=slack, random_state=self.seed).fit(
                X, codes
            )
        model = self.metrics[slack, fold]
        if self.dimension is None:
            return model
        few = copy(model)
        few.components_ = model.components_[_rank_features(model, X, codes, self.dimension)]
        return few

    def fit(self, X, codes):
        """Choose the slack, of equally good slacks the smallest, and fit all samples."""
        hits = np.zeros(len(SLACKS))
        folds = class_folds(codes, SLACK_FOLDS)
        for number in range(SLACK_FOLDS):
            fold = folds == number
            for place, slack in enumerate(SLACKS):
                model = self._fit_metric(X[~fold], codes[~fold], slack, number)
                known, asked = (np.ascontiguousarray(model.transform(X[f])) for f in (~fold, fold))
                hits[place] += fold.sum() * accuracy(known, codes[~fold], asked, codes[fold])
        self.gamma_ = SLACKS[int(np.argmax(hits))]
        self.model_ = self._fit_metric(X, codes, self.gamma_)
        return self

    def transform(self, X):
        """Return the reduced samples."""
        return self.model_.transform(X)


def nca(context):
    """NCA, fitted separately in each dimension, from 1 until the accuracy falls."""
    return ByItself(partial(GreedyNCA, context.seed))


class GreedyNCA:
    """NCA in `dimension` dimensions, or greedily ("cv") by leave-one-out accuracy."""

    def __init__(self, seed, dimension):
        self.seed = seed
        self.dimension = dimension

    def fit(self, X, codes):
        """Fit a number of dimensions, or increasing numbers until the accuracy falls."""
        from sklearn.neighbors import NeighborhoodComponentsAnalysis

        greedy = self.dimension == "cv"
        before, size = -1.0, float(np.sqrt(X.var()))
        for m in range(1, min(X.shape[1], MAX_NCA_DIMENSIONS) + 1) if greedy else (self.dimension,):
            search = NeighborhoodComponentsAnalysis(m, max_iter=50, random_state=self.seed)
            model = search.fit(X / size, codes)
            model.components_ /= size
            score = accuracy(np.ascontiguousarray(model.transform(X)), codes)
            if score < before:
                break
            self.model_, before = model, score
        return self

    def transform(self, X):
        """Return the reduced samples."""
        return self.model_.transform(X)
