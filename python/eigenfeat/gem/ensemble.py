"""Ensembles of GEM classifiers with different random draws."""

from __future__ import annotations

import time
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.types import Floats, RandomState, Rows
from eigenfeat._base.validation import MOST, show, take_names
from eigenfeat.gem.classifier import GEMClassifier
from eigenfeat.gem.gem import GEM
from eigenfeat.gem.joint import JointGEMClassifier
from eigenfeat.samples.blocks import is_blocks
from eigenfeat.samples.estimator import BaseEstimator, Iterative, Verbose, with_steps
from eigenfeat.samples.out_of_core import FromLogits, over_blocks

if TYPE_CHECKING:
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["GEMEnsemble"]


class GEMEnsemble(Iterative, Verbose, FromLogits, ClassifierMixin, BaseEstimator):
    """Ensemble of randomised GEM classifiers, with the geometric mean of their probabilities.

    Use it for the last points of accuracy and log loss, at `n_members` times the time. Tune the
    `estimator` alone first. User guide: :doc:`/guide/classifier`.

    The members differ in their random draws: pairs of classes (hypercubes) or, in a pipeline,
    random features before the classifier. Logits are the means of the members' logits. For each
    sample, their cross-entropy is at most the mean of the members' cross-entropies.

    Parameters
    ----------
    estimator : GEMClassifier, Pipeline that ends with a GEMClassifier, or None, default=None
        Estimator to clone for each member; None means
        ``GEMClassifier(gem=GEM(pairs="hypercube"))``. If neither the pairs nor another step is
        random, the members are nearly equal.
    n_members : int >= 1, default=5
        Number of members.
    random_state : int, RandomState or None, default=0
        Seed for the `random_state` of each member, and of each step of a pipeline.
    n_threads : int or None, default=None
        Number of threads of each member; None keeps the value of `estimator`. Results do not depend
        on it.
    verbose : int, default=0
        1 prints a line for each member on stderr.

    Attributes
    ----------
    members_ : list of GEMClassifier or of Pipeline
        Fitted members. Each is identical, bit for bit, to a member that is fitted alone.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    GEMClassifier : A single classifier.
    sklearn.ensemble.VotingClassifier : Arithmetic means, other classifiers.

    References
    ----------
    N. Karampatziakis and P. Mineiro, "Discriminative Features via Generalized Eigenvectors",
    ICML 2014, sections 4.2 (random Fourier features) and 4.3 (hypercubes).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.kernel_approximation import RBFSampler
    >>> from sklearn.pipeline import make_pipeline
    >>> from eigenfeat import GEMClassifier, GEMEnsemble
    >>> X, y = load_digits(return_X_y=True)
    >>> member = make_pipeline(RBFSampler(gamma=0.001, n_components=300), GEMClassifier())
    >>> model = GEMEnsemble(member, n_members=2).fit(X[:1000], y[:1000])
    >>> model.score(X[1000:], y[1000:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [GEMClassifier, Pipeline, None],
        "n_members": [Interval(Integral, 1, MOST, closed="both")],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: GEMClassifier | Pipeline | None = None,
        n_members: int = 5,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_members = n_members
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    @with_steps
    def fit(
        self,
        X: Rows | RowBlocks,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> GEMEnsemble:
        """Fit the members.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, as in :meth:`GEMClassifier.fit`; no blocks if `estimator` is a pipeline.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples; a pipeline passes them to its classifier.

        Returns
        -------
        GEMEnsemble
            The estimator itself.
        """
        self._validate_params()
        members = self._members()
        fit = self._fitter(members, X, y, sample_weight)
        for count, member in enumerate(members, 1):
            started = time.perf_counter()
            fit(member)
            n_directions = _classifier(member).layers_[0].directions.shape[1]
            self._log(f"member {count}: {n_directions} directions", started)
            if self._step_done():
                break
        self.members_, self.classes_ = members[:count], members[0].classes_
        take_names(self, members[0])
        return self

    def _most_steps(self) -> int:
        return self.n_members

    def _fitter(
        self, members: list[Any], X: Any, y: Any, sample_weight: Any
    ) -> Callable[[Any], object]:
        """A function that fits a member; classifiers share samples, moments, scale and constant."""
        first, last = members[0], _classifier(members[0])
        last.check_parameters()
        if last is not first:
            if is_blocks(X):
                raise ValueError(f"X: expected an array with a pipeline, got {show(X)}")
            name = f"{first.steps[-1][0]}__sample_weight"
            given = {} if sample_weight is None else {name: sample_weight}
            return lambda member: member.fit(X, y, **given)
        samples = first.prepare(X, y, sample_weight)
        moments = None
        if not isinstance(first, JointGEMClassifier):  # joint members hold out different samples
            sizes = len(samples.classes), samples.n_samples, samples.n_features
            gem = first.depth_options().layer(0, *sizes).fit_samples(samples)
            moments = gem.moments_
            for member in members:
                member.set_params(gem__scale=gem.scale_, gem__constant=gem.constant_)

        @one_blas_thread()
        def fit(member: GEMClassifier) -> None:
            member.fit_samples(samples, moments)
            take_names(member, first)

        return fit

    @over_blocks
    def decision_function(self, X: Rows | RowBlocks) -> Floats:
        """Logits of the classes: means of the members' logits.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix or RowBlocks
            Samples, with missing entries only if the training samples had missing entries. For
            blocks, an iterator over the results of the blocks is returned.

        Returns
        -------
        (n, k) array, or (n,) with two classes
            With two classes, the logit of the second class over the first.
        """
        check_is_fitted(self, "members_")
        logits = (member.decision_function(X) for member in self.members_)
        return np.asarray(sum(logits) / len(self.members_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        estimator = self.estimator
        sparse = not isinstance(estimator, Pipeline) or get_tags(estimator).input_tags.sparse
        tags.input_tags.sparse = sparse
        parts = [part for _, part in getattr(estimator, "steps", [("", estimator)])]
        tags.input_tags.allow_nan = all(
            part is None or get_tags(part).input_tags.allow_nan for part in parts
        )
        return tags

    def _members(self) -> list[Any]:
        base = (
            GEMClassifier(gem=GEM(pairs="hypercube")) if self.estimator is None else self.estimator
        )
        if isinstance(base, Pipeline):
            last = base.steps[-1][1] if base.steps else None
            if not isinstance(last, GEMClassifier):
                raise ValueError(
                    "estimator: expected a GEMClassifier, or a pipeline that ends with a "
                    f"GEMClassifier, got a pipeline that ends with {show(last)}"
                )
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_members)
        members = [_reseeded(clone(base), int(seed)) for seed in seeds]
        if self.n_threads is not None:
            for member in members:
                _classifier(member).set_params(n_threads=self.n_threads)
        return members


def _classifier(member: Any) -> Any:
    """The classifier of a member, which may be a pipeline."""
    return member[-1] if isinstance(member, Pipeline) else member


def _reseeded(member: Any, seed: int) -> Any:
    """Set the seed of a member, or of each step of a pipeline that has a `random_state`."""
    if not isinstance(member, Pipeline):
        return member.set_params(random_state=seed)
    draw = check_random_state(seed)
    names = [name for name in sorted(member.get_params()) if name.endswith("__random_state")]
    return member.set_params(**{name: int(draw.randint(2**31 - 1)) for name in names})
