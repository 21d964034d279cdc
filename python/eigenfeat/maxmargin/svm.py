"""The multiclass support vector machine of Crammer and Singer, with its duals and its gap."""

from __future__ import annotations

import time
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from eigenfeat._base import threads
from eigenfeat._base.types import ClassWeight, Labels, RandomState, Rows, Targets, Weights
from eigenfeat._base.validation import warn_caller
from eigenfeat.linear.logistic import Features, LinearModel
from eigenfeat.maxmargin._dual_svm import SOLVERS, DualSvm
from eigenfeat.moments.columns import deviations
from eigenfeat.samples.blocks import RowBlocks
from eigenfeat.samples.estimator import (
    Iterative,
    Verbose,
    prepare,
    unchanged_on_error,
    with_steps,
)
from eigenfeat.samples.labelled import class_weighted
from eigenfeat.samples.out_of_core import over_blocks

__all__ = ["MulticlassSVM", "hinge_costs"]

PATIENCE = 30  # epochs without progress after which a fit ends


class MulticlassSVM(Iterative, Verbose, LinearModel):
    """Linear multiclass SVM of Crammer and Singer, solved in its dual to a certified gap.

    Use it for a linear SVM with many dense samples, or for its dual variables. Tune `C`. User
    guide: :doc:`/guide/reduction`; the objective: :doc:`/guide/objectives`.

    Parameters
    ----------
    C : float > 0, default=1
        Weight of the loss of a sample.
    class_weight : dict, "balanced" or None, default=None
        Weights of classes, which multiply the weights of samples.
    fit_intercept : bool, default=True
        Whether to add a constant feature, penalised as in liblinear. Constant columns then have
        weight 0.
    solver : {"sequential", "frank_wolfe"}, default="sequential"
        "frank_wolfe": the solver of Wangni and Chen (2016), which needs many more epochs.
    tol : float > 0, default=1e-3
        Largest duality gap relative to the objective; float32 samples reach about 1e-6.
    max_iter : int >= 1, default=1000
        Maximum number of epochs.
    random_state : int, RandomState or None, default=0
        Seed of the order in which samples are visited.
    n_threads : int or None, default=None
        Number of threads, all by default.
    verbose : int, default=0
        1 prints a line for each epoch on stderr.

    Attributes
    ----------
    coef_ : (k, d) array, or (1, d) with two classes
        Weights; with two classes, the second class minus the first.
    intercept_ : (k,) array, or (1,) with two classes
        Intercepts; with two classes, their difference.
    class_coef_ : (k, d) array
        Weights of every class, ``dual_coef_.T @ X``; they sum to 0 over the classes.
    dual_coef_ : (n, k) array
        Dual variables. The entry of the sample's own class is at most C times the sample's weight,
        other entries are at most 0, and the entries of a sample sum to 0.
    classes_ : (k,) array
        Labels, sorted.
    objective_ : float
        The objective at `coef_`.
    duality_gap_ : float
        Upper bound on the excess of `objective_` over the optimum.
    objective_history_ : list of float
        Objective after every epoch.
    dual_history_ : list of float
        Dual objective after every epoch.
    n_iter_ : int
        Number of epochs.
    n_support_ : int
        Number of samples with nonzero duals.

    Warns
    -----
    ConvergenceWarning
        If the gap is not reached in `max_iter` epochs, or is too small for the arithmetic.

    See Also
    --------
    MaxMarginShift : Moves samples by the dual variables of this SVM.
    sklearn.svm.LinearSVC : Linear SVMs by liblinear, which suits sparse samples.

    References
    ----------
    K. Crammer and Y. Singer, JMLR 2, 2001. S. S. Keerthi et al., KDD 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat.maxmargin import MulticlassSVM
    >>> X, y = load_digits(return_X_y=True)
    >>> model = MulticlassSVM(C=0.1).fit(X[:1000] / 16, y[:1000])
    >>> round(model.score(X[1000:] / 16, y[1000:]), 2)
    0.93
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, np.inf, closed="neither")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        C: float = 1.0,
        fit_intercept: bool = True,
        solver: str = "sequential",
        class_weight: ClassWeight = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    @with_steps
    def fit(self, X: Features, y: Targets = None, sample_weight: Weights = None) -> MulticlassSVM:
        """Fit the weights.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Finite samples. Expanded samples are computed in full, rows of files are read into
            memory.
        y : (n,) array-like
            Labels; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples. Samples of weight 0 have duals 0.

        Returns
        -------
        MulticlassSVM
            The estimator itself.
        """
        self._validate_params()
        with unchanged_on_error(self):
            samples = prepare(self, X, y, sample_weight, in_memory=True)
            block, self.classes_ = samples.together(), samples.classes
            rows, codes, weight = block.X, block.y, block.weight
            rows = _without_constants(rows) if self.fit_intercept else rows
            costs = hinge_costs(self, codes, weight)
            random = check_random_state(self.random_state)
            svm = DualSvm(
                rows,
                codes,
                costs,
                len(self.classes_),
                constant=self.fit_intercept,
                solver=self.solver,
                seed=int(random.randint(2**31)),
                n_threads=threads.resolve(self.n_threads),
            )
            self._run(svm)
            self.class_coef_, intercepts = svm.weights()
            self._keep(np.vstack([self.class_coef_.T, intercepts]))
            self.dual_coef_ = svm.duals()
            if sample_weight is not None:  # samples of weight 0 were left out
                positive = np.asarray(sample_weight) > 0
                self.dual_coef_ = np.zeros((len(positive), len(self.classes_)))
                self.dual_coef_[positive] = svm.duals()
        return self

    @over_blocks
    def predict(self, X: Rows | RowBlocks) -> Labels:
        """Predict the labels of the largest scores.

        Parameters
        ----------
        X : (n, d) array-like, sparse matrix, ExpandedFeatures or RowBlocks
            Samples, as in `decision_function`.

        Returns
        -------
        (n,) array
            For blocks, an iterator over such arrays.
        """
        scores = self.decision_function(X)
        best = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        return self.classes_[np.asarray(best, dtype=np.intp)]

    def _run(self, svm: DualSvm) -> None:
        """Run epoch by epoch, so that Ctrl-C acts between epochs."""
        started, at_rest = time.perf_counter(), False
        objectives: list[float] = []
        duals: list[float] = []
        gaps: list[float] = []
        while len(objectives) < self.max_iter and svm.run_epoch(self.tol):
            objectives.append(svm.primal)
            duals.append(svm.dual)
            text = f"epoch {len(objectives)}: objective {svm.primal:.6g}, gap "
            text += f"{svm.gap / svm.primal:.1e}, {svm.support} support vectors"
            self._log(text, started)
            gaps.append(svm.gap)
            at_rest = _is_at_rest(gaps, duals, svm.rounding * svm.primal)
            if self._step_done() or at_rest:
                break
        self.objective_, self.duality_gap_ = svm.primal, svm.gap
        self.objective_history_, self.dual_history_ = objectives, duals
        self.n_iter_, self.n_support_ = len(objectives), svm.support
        if svm.gap > self.tol * svm.primal:
            advice = "raise max_iter, or scale samples"
            if at_rest:
                advice = "give float64 samples or raise tol"
            warn_caller(
                f"MulticlassSVM: {self.n_iter_} epochs left a gap of {svm.gap / svm.primal:.1e} of "
                f"the objective; {advice}",
                ConvergenceWarning,
            )


def _without_constants(X: Any) -> Any:
    """Set columns that are constant up to rounding to 0.

    An intercept makes constant columns redundant, and they slow convergence.
    """
    ends = X.min(axis=0), X.max(axis=0)
    low, high = (np.ravel(row.toarray() if sp.issparse(X) else row) for row in ends)
    sizes = np.abs([low, high])
    constant = (np.sign(low) == np.sign(high)) & (sizes.min(axis=0) > sizes.max(axis=0) / 2)
    constant[constant] = deviations(X[:, constant]) == 0
    if not constant.any():
        return X
    if not sp.issparse(X):
        return np.where(constant, 0, X).astype(X.dtype, copy=False)
    out = X.copy()
    out.data[constant[out.indices]] = 0.0
    out.eliminate_zeros()
    return out


def _is_at_rest(gaps: list[float], duals: list[float], rounding: float) -> bool:
    """Whether neither the dual nor the gap improved in the last `PATIENCE` epochs."""
    if len(gaps) <= PATIENCE:
        return False
    fallen = min(gaps[-PATIENCE:]) < min(gaps[:-PATIENCE])
    return not fallen and max(duals[-PATIENCE:]) - max(duals[:-PATIENCE]) <= rounding


def hinge_costs(
    svm: MulticlassSVM, codes: NDArray[np.integer[Any]], weight: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Cost (n,) of each sample's hinge loss: C times its weight and the weight of its class."""
    costs: Any = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    costs = class_weighted(svm.class_weight, svm.classes_[codes], costs)
    return np.asarray(float(svm.C) * costs)
