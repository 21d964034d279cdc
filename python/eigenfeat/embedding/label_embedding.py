"""Label embedding: features and scores for very many classes, or many labels per sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import check_whole
from eigenfeat.embedding._cross_covariance import (
    LeadingPairs,
    PairedSamples,
    Sketching,
    affine,
    leading_pairs,
)
from eigenfeat.expansion.features import row_blocks
from eigenfeat.samples.blocks import as_blocks, is_blocks, is_collection
from eigenfeat.samples.estimator import prepare, unchanged_on_error
from eigenfeat.samples.out_of_core import BlockScores, over_blocks

if TYPE_CHECKING:
    from eigenfeat._base.types import Floats, Labels, RandomState, Rows, Targets, Weights
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["LabelEmbedding"]

_Array = NDArray[np.float64]
_EXPECTED = "y: expected labels or an indicator matrix of zeros and ones"
_MIN_NOISE = 1e-3  # variance within a class along a component, relative to the total


class LabelEmbedding(BlockScores, ClassifierMixin, Sketching):
    r"""Supervised features and a classifier for 10,000 to 1,000,000 classes or labels.

    Use it where one weight vector per class is too slow to fit, with labels or a sparse indicator
    matrix. Tune `n_components`, then `ridge`. User guide: :doc:`/guide/many_classes`.

    For centred samples X and indicators Y with n rows, features are the projections on
    :math:`A = (X^T X / n + r I)^{-1/2} U`, where :math:`U \Sigma V^T` is the leading part of the
    singular value decomposition of :math:`(X^T X / n + r I)^{-1/2} X^T Y / n`. Rows of V embed the
    labels: ``A diag(sigma) V^T`` is the best linear map from X to Y of its rank. Scores are those
    of linear discriminant analysis of the features, where means of classes with few samples are
    shrunk. With several labels per sample, a discriminant separates each label from all others.

    Parameters
    ----------
    n_components : int, default=100
        Number of features, at most the rank of ``X^T Y``. With one label per sample, the rank is
        less than the number of labels.
    ridge : float >= 0, default=1e-3
        r as a multiple of the mean variance of a column. Standardise columns of different units.
    n_oversamples : int, default=10
        Columns of the random sketch besides `n_components`.
    n_passes : int from 2 to 100, default=3
        Passes over the samples. Each pass after the second is half a power iteration. Blocks with
        one label per sample are read once more, to collect the labels.
    random_state : int, RandomState instance or None, default=0
        Seed of the sketch.
    n_threads : int or None, default=None
        Number of threads, all by default. Results do not depend on it.

    Attributes
    ----------
    components_ : (m, d) array
        Columns of A, one per row.
    mean_ : (d,) array
        Mean of the samples. Features are ``(X - mean_) @ components_.T``.
    label_vectors_ : (c, m) array
        V, a row for each label.
    singular_values_ : (m,) array
        Singular values, descending.
    coef_ : (c, m) array
        Weights of the features; scores are ``features @ coef_.T + intercept_``.
    intercept_ : (c,) array
        Intercepts of the labels.
    classes_ : (c,) array
        Labels, sorted; column numbers of an indicator matrix.
    multilabel_ : bool
        Whether `fit` got an indicator matrix.

    See Also
    --------
    RandomizedCCA : Both sides are whitened.
    eigenfeat.MultinomialLogit : For up to some hundred classes.

    References
    ----------
    P. Mineiro and N. Karampatziakis, "Fast label embeddings via randomized linear algebra",
    ECML PKDD 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from eigenfeat.embedding import LabelEmbedding
    >>> random = np.random.default_rng(0)
    >>> y = random.integers(5000, size=20_000)
    >>> means = random.standard_normal((5000, 8)) @ random.standard_normal((8, 50))
    >>> X = means[y] + 0.3 * random.standard_normal((20_000, 50))
    >>> model = LabelEmbedding(8).fit(X, y)
    >>> model.transform(X).shape, model.predict_top(X[:2], 3).shape
    ((20000, 8), (2, 3))
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        ridge: float = 1e-3,
        n_oversamples: int = 10,
        n_passes: int = 3,
        random_state: RandomState = 0,
        n_threads: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.ridge = ridge
        self.n_oversamples = n_oversamples
        self.n_passes = n_passes
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: Weights = None
    ) -> LabelEmbedding:
        """Compute the embedding and the scores.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.
        y : (n,) array-like, or (n, c) array-like or sparse matrix of zeros and ones
            One label per sample, or an indicator matrix of several labels; None with blocks, which
            contain labels or indicators.
        sample_weight : (n,) array-like, optional
            Nonnegative weights; a sample of weight 2 counts as two samples.

        Returns
        -------
        LabelEmbedding
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            self.multilabel_ = _are_indicators(X, y)
            samples: Any
            if self.multilabel_:
                samples = PairedSamples.of(self, X, y, sample_weight)
                self.classes_: Labels = np.arange(samples.n_targets)
            else:
                samples = prepare(self, X, y, sample_weight, moments=False)
                self.classes_ = samples.classes
            one_label = not self.multilabel_
            pairs = leading_pairs(samples, len(self.classes_), self, one_label=one_label)
            self._sparse_output = sparse.issparse(y) or is_blocks(X)
            self.mean_ = pairs.mean
            self.components_ = np.ascontiguousarray(pairs.left.T)
            self.label_vectors_, self.singular_values_ = pairs.right, pairs.values
            self.coef_, self.intercept_ = _discriminants(pairs, self.multilabel_)
        return self

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Scores of all labels; use `predict_top` if they need too much memory.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.

        Returns
        -------
        (n, c) array, or (n,) with two classes
            Logarithms of class probabilities up to a constant per sample; with two classes, the
            score of the second minus the first; with an indicator matrix, log odds of each label.
        """
        scores = np.concatenate(list(self._score_blocks(X)))
        two = len(self.classes_) == 2 and not self.multilabel_
        return scores[:, 1] - scores[:, 0] if two else scores

    @over_blocks
    def predict(self, X: Rows | RowBlocks) -> Labels:
        """Predict the label of the largest score, or all labels with a positive score.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.

        Returns
        -------
        (n,) array, or (n, c) indicators
            Indicators are sparse if those of `fit` were sparse or in blocks.
        """
        check_is_fitted(self)
        if not self.multilabel_:
            best = [scores.argmax(axis=1) for scores in self._score_blocks(X)]
            return self.classes_[np.concatenate(best)]
        positive = [sparse.csr_array(scores > 0) for scores in self._score_blocks(X)]
        result = sparse.vstack(positive, format="csr", dtype=np.int64)
        return result if self._sparse_output else result.toarray()

    @over_blocks
    def predict_top(self, X: Rows | RowBlocks, k: int = 5) -> Labels:
        """Labels of the k largest scores of each sample, best first.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Finite samples.
        k : int, default=5
            Number of labels, at most the number of classes.

        Returns
        -------
        (n, k) array
        """
        check_is_fitted(self)
        k = check_whole(k, "k", at_least=1, at_most=len(self.classes_))
        parts = []
        for scores in self._score_blocks(X):
            top = np.argpartition(scores, -k, axis=1)[:, -k:]
            order = np.argsort(-np.take_along_axis(scores, top, 1), axis=1, kind="stable")
            parts.append(np.take_along_axis(top, order, 1))
        return self.classes_[np.concatenate(parts)]

    def _score_blocks(self, X: Any) -> Iterator[Floats]:
        """Scores of all labels, for blocks of samples of about 64 MB."""
        features = self.transform(X)
        for rows in row_blocks(len(features), len(self.classes_)):
            yield affine(features[rows], self.coef_, self.intercept_, self.n_threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


def _are_indicators(X: Any, y: Any) -> bool:
    """Whether targets are an indicator matrix; ValueError for a matrix of other values."""
    if y is None and is_blocks(X) and not isinstance(X, Iterator):
        y = next(iter(as_blocks(X))).y
    if is_collection(X) or y is None:
        return False
    if sparse.issparse(y):
        values = y.tocsr().data
    else:
        try:
            values = np.asarray(y)
        except ValueError:
            raise ValueError(f"{_EXPECTED}, got lists of several lengths") from None
        if values.ndim != 2 or values.shape[1] < 2:
            return False
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{_EXPECTED}, got dtype {values.dtype}")
    others = values[~np.isin(values, (0, 1))]
    if others.size:
        raise ValueError(f"{_EXPECTED}, got {others[0]}")
    return True


def _discriminants(pairs: LeadingPairs, multilabel: bool) -> tuple[_Array, _Array]:
    r"""Weights (c, m) and constants (c,) of the labels' discriminants.

    The mean of the features of label l is :math:`\mu_l = \Sigma v_l / p_l`, and :math:`n_l` the
    weight of its samples. S is the covariance within classes; with several labels per sample, the
    covariance of all samples. In coordinates where S is the identity and the excess covariance of
    the means a diagonal matrix f, entry j of a mean is multiplied by
    :math:`n_l f_j / (n_l f_j + 1)`, which gives its posterior mean (Efron and Morris 1973). With
    several labels per sample, each label has the discriminant of two classes whose common
    covariance is :math:`S - p / (1 - p) \mu \mu^T`.
    """
    share, n = pairs.target_mean, pairs.weight
    counts = share * n
    means = pairs.right * pairs.values
    means = np.divide(means, share[:, None], out=np.zeros_like(means), where=share[:, None] > 0)
    between = (means.T * share) @ means
    noise = pairs.covariance if multilabel else pairs.covariance - between
    noise = noise + _MIN_NOISE * np.diag(np.diag(pairs.covariance))
    excess = (n * between - np.count_nonzero(counts) * noise) / counts.sum()
    spread, axes = linalg.eigh(excess, noise)  # axes^T noise axes = I
    gain = counts[:, None] * np.maximum(spread, 0.0)
    means = gain / (gain + 1.0) * (means @ axes)
    squares = np.einsum("lj,lj->l", means, means)
    if not multilabel:
        return means @ axes.T, np.log(share) - squares / 2
    share = (counts + 0.5) / (n + 1.0)  # odds stay finite for labels of no or of all samples
    odds = share / (1.0 - share)
    within = (1.0 - share) * np.maximum(1.0 - odds * squares, _MIN_NOISE)
    weights = means / within[:, None]
    return weights @ axes.T, np.log(odds) - (1.0 - odds) * squares / within / 2
