"""Reductions of the thesis by name: each yields fitted candidates, among which 3-NN chooses.

A family is called with training rows (n, d), their codes (n,) and `Rules`, and yields pairs of
parameters and a fitted transformer. Its columns are nested: fewer are the first of more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.papers import settings
from bench.papers.protocol import Context

__all__ = ["ByItself", "Family", "Rules"]

Codes = NDArray[np.int64]
Candidates = Iterator[tuple[dict[str, Any], Any]]


@dataclass(frozen=True)
class Rules:
    """How parameters and dimensions are chosen by 3-NN accuracy.

    Parameters are compared in `at` dimensions more than there are classes; of equal ones the last
    is taken. `steps` are candidates for the dimension, beyond the number of classes; None means
    greedily from 1 up to `most`. Without `folds` accuracies are those that rows leave to each
    other in directions of all of them; with it, those of rows that had no part in the directions.
    """

    gammas: tuple[float, ...]
    at: int
    ridges: tuple[float, ...] = ()
    steps: tuple[int, ...] | None = None
    most: int = 40
    folds: int | None = None

    def limit(self, n_classes: int) -> int:
        """Return how many directions are of use."""
        return self.most if self.steps is None else n_classes + max(self.steps)

    def quick(self) -> Rules:
        """Return rules with fewer candidates, for a run that shows that all works."""
        return replace(self, gammas=self.gammas[::2], ridges=self.ridges[::2])


Family = Callable[[NDArray[np.float64], Codes, Rules], Candidates]


def rank(X: NDArray[np.float64]) -> int:
    """Return the most directions that rows have, their number of columns where those are fewer."""
    n, d = X.shape
    return d if d < n else int(np.linalg.matrix_rank(X - X.mean(axis=0)))


def _most(X: NDArray[np.float64], codes: Codes, rules: Rules) -> int:
    return min(rules.limit(int(codes.max()) + 1), rank(X))


# ---- LDG -----------------------------------------------------------------------------------------


def ldg(context: Context) -> Family:
    """LDG in many dimensions, with the rules' gammas."""
    return partial(_ldg, seed=context.seed)


def _ldg(X: NDArray[np.float64], codes: Codes, rules: Rules, *, seed: int) -> Candidates:
    from eigenfeat.ldg import LDG

    given: dict[str, Any] = {"gamma": list(rules.gammas)}
    if len(X) <= X.shape[1] + 1:  # rows left out choose gamma, and not in all those dimensions
        chosen = LDG("greedy", random_state=seed, **given).fit(X, codes)
        given = {"gamma": chosen.gamma_, "n_neighbors": chosen.n_neighbors_}
    model = LDG(_most(X, codes, rules), random_state=seed, **given)
    yield {"gamma": model.fit(X, codes).gamma_, "n_neighbors": model.n_neighbors_}, model


@dataclass(frozen=True, eq=False)
class ByItself:
    """A reduction that chooses parameters and dimension by itself; rules have no part in it.

    `make` takes the dimension, or "cv", and returns an estimator.
    """

    make: Callable[[int | str], Any]


def ldg_by_itself(context: Context) -> ByItself:
    """LDG with its defaults, as a user has it."""
    from eigenfeat.ldg import LDG

    return ByItself(partial(LDG, random_state=context.seed))


def sparse_ldg(context: Context, deflation: str) -> Family:
    """LDG with sparse directions, as many as there are columns."""
    return partial(_sparse_ldg, deflation=deflation, seed=context.seed)


def sparsely_deflated(context: Context) -> Family:
    """SparseLDG whose matrix is deflated by sparse directions."""
    return sparse_ldg(context, "sparse")


def orthonormally_deflated(context: Context) -> Family:
    """SparseLDG in the orthogonal complement of the directions before."""
    return sparse_ldg(context, "orthonormal")


def _sparse_ldg(
    X: NDArray[np.float64], codes: Codes, rules: Rules, *, deflation: str, seed: int
) -> Candidates:
    from eigenfeat.ldg import SparseLDG

    model = SparseLDG(
        _most(X, codes, rules),
        sparsity=settings.LDG_SPARSITY,
        deflation=deflation,
        gamma=list(rules.gammas),
        n_neighbors="cv",
        random_state=seed,
    )
    yield {"gamma": model.fit(X, codes).gamma_, "n_neighbors": model.n_neighbors_}, model


# ---- what it is compared with --------------------------------------------------------------------


def all_columns(context: Context) -> Family:
    """Rows as they are."""
    return _all_columns


def _all_columns(X: NDArray[np.float64], codes: Codes, rules: Rules) -> Candidates:
    from sklearn.preprocessing import FunctionTransformer

    yield {}, FunctionTransformer().fit(X)


def pca(context: Context) -> Family:
    """Principal components."""
    return _pca


def _pca(X: NDArray[np.float64], codes: Codes, rules: Rules) -> Candidates:
    from sklearn.decomposition import PCA

    yield {}, PCA(_most(X, codes, rules), svd_solver="auto", random_state=0).fit(X)


def fisher(context: Context) -> Family:
    """Fisher's directions with as small a ridge as makes them definite."""
    return partial(_fisher, ridges=(settings.LDG_RIDGE,))


def regularized_fisher(context: Context) -> Family:
    """Fisher's directions, one candidate for each ridge."""
    return partial(_fisher, ridges=None)


def _fisher(
    X: NDArray[np.float64], codes: Codes, rules: Rules, *, ridges: Sequence[float] | None
) -> Candidates:
    from eigenfeat.ldg import RegularizedFisher

    for ridge in rules.ridges if ridges is None else ridges:
        yield {"ridge": ridge}, RegularizedFisher(ridge=ridge).fit(X, codes)


def local_fisher(context: Context) -> Family:
    """Local Fisher directions with as small a ridge as makes them definite."""
    return partial(_local_fisher, ridges=(settings.LDG_RIDGE,))


def regularized_local_fisher(context: Context) -> Family:
    """Local Fisher directions, one candidate for each ridge."""
    return partial(_local_fisher, ridges=None)


def _local_fisher(
    X: NDArray[np.float64], codes: Codes, rules: Rules, *, ridges: Sequence[float] | None
) -> Candidates:
    from eigenfeat.ldg import LocalFisher

    most = _most(X, codes, rules)
    for ridge in rules.ridges if ridges is None else ridges:
        yield {"ridge": ridge}, LocalFisher(most, ridge=ridge).fit(X, codes)


def pca_fisher(context: Context) -> Family:
    """Fisherfaces, in directions of length 1.

    As in the thesis. Of unit variance within classes, of which there is next to none, they would
    have 66% right instead of 71% over its small sets.
    """
    return _pca_fisher


def _pca_fisher(X: NDArray[np.float64], codes: Codes, rules: Rules) -> Candidates:
    from eigenfeat.ldg import PCAFisher

    model = PCAFisher().fit(X, codes)
    lengths = np.linalg.norm(model.components_, axis=1, keepdims=True)
    model.components_ = model.components_ / lengths
    yield {}, model


def direct_lda(context: Context) -> Family:
    """Direct LDA."""
    return partial(_plain, name="DirectLDA")


def gsvd(context: Context) -> Family:
    """Generalized discriminant analysis."""
    return partial(_plain, name="GSVDDiscriminant")


def _plain(X: NDArray[np.float64], codes: Codes, rules: Rules, *, name: str) -> Candidates:
    from eigenfeat import ldg

    yield {}, getattr(ldg, name)().fit(X, codes)


def pca_local_fisher(context: Context) -> Family:
    """Local Fisher directions among as many principal components as have a full scatter within."""
    return _pca_local_fisher


def _pca_local_fisher(X: NDArray[np.float64], codes: Codes, rules: Rules) -> Candidates:
    from eigenfeat.ldg import LocalFisher

    yield {}, LocalFisher(pca_components="auto", ridge=0.0).fit(X, codes)
