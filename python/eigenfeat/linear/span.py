r"""The penalised multinomial logit of few samples of many features, in the span of the samples.

Where the penalty is ``q / 2 |D^-1 W|^2`` with a diagonal D, the weights of the minimum are
``W = D^2 Phi^T A`` (the representer theorem): logits are ``f = K A`` and a constant b with the
kernel ``K = Phi D^2 Phi^T`` (n, n), and the penalty is ``q / 2 tr(A^T f)``. A gradient ``Phi^T R +
D^-2 q W`` has the coefficients ``R + q A`` of the samples. Steps of L-BFGS are linear in all of
these, so that a point is the triple (f, A, b) and no step reads the features: an evaluation costs a
softmax, and a solve in the metric ``c Phi^T diag(w) Phi + q D^-2`` one with the Cholesky factor of
``c diag(w) K + q I``. In exact arithmetic the steps are those over the features.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.core import core
from eigenfeat.linear.logit_problem import (
    RECENT,
    LogitProblem,
    Minimum,
    Penalty,
    Progress,
    minimise,
)

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes
    from eigenfeat.samples.blocks import Block

__all__ = ["Span", "SpanMetric", "SpanSearch"]

_Array = npt.NDArray[np.float64]

_MOST_ROWS = 4_000  # whose kernel takes 128 MB
_CURVATURE = 0.5  # the bound on the loss's (Boehning 1992)
COARSE = 1e-3  # tolerance from which products of float32 are exact enough


@dataclass(frozen=True, eq=False)
class Span:
    """Kernel, labels and weights of some samples.

    Attributes
    ----------
    kernel : (n, n) array
    codes : (n,) array
        Indices of the labels.
    weight : (n,) array or None
    n_classes, n_features : int
        Features without the constant.
    unit : float
        ``D^-2`` where all features have one, else 1.
    common : bool
        Whether they have: else their mean squares.
    constant : bool
    n_threads : int
        As the core takes it.
    block : Block or None
        The samples; None of some of those of another span.
    """

    kernel: _Array
    codes: npt.NDArray[np.int32]
    weight: _Array | None
    n_classes: int
    n_features: int
    unit: float
    common: bool
    constant: bool
    n_threads: int
    block: Block | None

    @classmethod
    def of(cls, problem: LogitProblem, penalty: Penalty, tolerance: float) -> Span | None:
        """Of a problem's samples; None where steps over the features are better, or the only ones.

        There have to be twice as many features as samples: a kernel costs as much as some steps.

        Parameters
        ----------
        problem : LogitProblem
        penalty : Penalty
            One of those that the kernel is for; they differ in `energy`.
        tolerance : float
            Of the searches.
        """
        rows, n = problem.rows, problem.n_samples
        if rows.sparse or 2 * n > problem.varying or n > _MOST_ROWS:
            return None
        if penalty.ridge == 0 or (penalty.l2 > 0 and not penalty.common):
            return None
        varying = slice(problem.varying)
        unit, scale = 1.0, np.zeros(problem.shape[0])
        if penalty.common:
            unit = float(problem.mean_squares[varying].mean())
            scale[varying] = np.where(problem.flat[varying], 0.0, 1.0 / np.sqrt(unit or 1.0))
        else:
            scale[varying] = problem.scale[varying]
        if unit == 0 or not np.isfinite(scale).all():
            return None
        block = rows.together()
        kernel = block.core(problem.constant).kernel(scale, tolerance >= COARSE, problem.n_threads)
        return cls(
            kernel,
            np.ascontiguousarray(rows.codes, dtype=np.int32),
            block.weight,
            problem.shape[1],
            problem.varying,
            unit,
            penalty.common,
            problem.constant,
            problem.n_threads,
            block,
        )

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: Codes) -> Span:
        """Some of the samples, where all features have one unit."""
        weight = None if self.weight is None else self.weight[rows]
        kernel = self.kernel[np.ix_(rows, rows)]
        return replace(self, kernel=kernel, codes=self.codes[rows], weight=weight, block=None)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(len(self) if self.weight is None else self.weight.sum())

    def pull(self, penalty: Penalty) -> float:
        """Return q of a penalty; see `LogitProblem.quadratic`."""
        total = self.total
        squares = 1.0
        if self.common:
            of_rows = self.kernel.diagonal()
            of_rows = of_rows if self.weight is None else of_rows * self.weight
            squares = float(of_rows.sum()) / (total * self.n_features)
        return penalty.energy * penalty.ridge * np.sqrt(total) * squares + penalty.l2 / self.unit

    @property
    def start(self) -> _Array:
        """The point of no weights."""
        return np.zeros((2 * len(self) + self.constant, self.n_classes))

    def objective_of(self, penalty: Penalty) -> Callable[[_Array], tuple[float, _Array]]:
        """Objective and gradient, as a function of a point: f, A, and the constants if any."""
        n, pull = len(self), self.pull(penalty)

        def objective(point: _Array) -> tuple[float, _Array]:
            f, A = point[:n], point[n : 2 * n]
            z = f + point[2 * n :] if self.constant else np.ascontiguousarray(f)
            loss, energy, R = core.logit_residuals(z, self.codes, self.weight, 0.5 * penalty.energy)
            gradient = np.zeros_like(point)
            if self.constant:
                gradient[-1] = R.sum(axis=0)
            np.multiply(A, pull, out=gradient[:n])
            gradient[:n] += R
            squares = float(np.einsum("ij,ij->", A, f))
            return float(loss + 0.25 * penalty.energy * energy + 0.5 * pull * squares), gradient

        return objective

    def minimise(
        self,
        penalty: Penalty,
        metric: SpanMetric,
        start: _Array | None,
        *,
        tolerance: float,
        max_iterations: int,
        callback: Callable[[Progress], bool] | None = None,
        recent: int = RECENT,
    ) -> Minimum:
        """Search from a point or from no weights; see `eigenfeat.linear.logit_problem.minimise`."""
        return minimise(
            self.objective_of(penalty),
            metric.solve,
            self.start if start is None else start,
            tolerance=tolerance,
            max_iterations=max_iterations,
            noise=float(np.finfo(np.float64).eps),
            callback=callback,
            recent=recent,
        )

    def path(
        self,
        penalties: Sequence[Penalty],
        metric: SpanMetric,
        *,
        tolerance: float,
        max_iterations: int,
    ) -> Iterator[_Array]:
        """Points of the minima of several penalties, each searched from the one before."""
        options: dict[str, Any] = {"tolerance": tolerance, "max_iterations": max_iterations}
        point = None
        for penalty in penalties:
            point = self.minimise(penalty, metric, point, **options).point
            yield point

    def weights(self, problem: LogitProblem, points: list[_Array]) -> list[_Array]:
        """Weights (p, k) of the features at some points, by one pass over the samples."""
        n, k = len(self), self.n_classes
        A = np.hstack([point[n : 2 * n] for point in points])
        assert self.block is not None
        W = self.block.products(A, self.constant, problem.rows.n_threads)
        if self.common:
            W[problem.flat] = 0.0
            W /= self.unit
        else:
            W *= (problem.scale**2)[:, None]
        out = [np.ascontiguousarray(W[:, i * k : (i + 1) * k]) for i in range(len(points))]
        if self.constant:
            for one, point in zip(out, points, strict=True):
                one[-1] = point[2 * n]
        return out

    def logits(self, kernel: _Array, point: _Array) -> _Array:
        """Logits of samples whose kernel (m, n) with these is given, at a point."""
        n = len(self)
        rows = core.FeatureRows64(X=np.ascontiguousarray(kernel))
        z = rows.scores(np.ascontiguousarray(point[n : 2 * n]), self.n_threads)
        return z + point[2 * n :] if self.constant else z


class SpanSearch:
    """Searches for several penalties, each from the end of the one before, in one metric.

    Parameters
    ----------
    problem : LogitProblem
    span : Span
    metric : SpanMetric
    """

    def __init__(self, problem: LogitProblem, span: Span, metric: SpanMetric) -> None:
        self._problem, self._span, self._metric = problem, span, metric
        self._coarse = False
        self._point: _Array | None = None

    @classmethod
    def of(
        cls, problem: LogitProblem, span: Span | None, penalty: Penalty, tolerance: float
    ) -> SpanSearch | None:
        """Searches in the metric of a penalty, or None where there is no span or no such metric."""
        metric = None if span is None else SpanMetric.of(span, penalty)
        if span is None or metric is None:
            return None
        out = cls(problem, span, metric)
        out._coarse = tolerance >= COARSE
        return out

    def minimise(
        self,
        penalty: Penalty,
        *,
        tolerance: float,
        max_iterations: int,
        callback: Callable[[Progress], bool] | None = None,
    ) -> tuple[Minimum, bool]:
        """The minimum, with weights (p, k) as its point, and whether the features confirm it.

        Where products are of float32, the logits of the weights are computed from the features, and
        objective and gap are theirs.
        """
        span = self._span
        result = span.minimise(
            penalty,
            self._metric,
            self._point,
            tolerance=tolerance,
            max_iterations=max_iterations,
            callback=callback,
        )
        self._point = result.point
        (W,) = span.weights(self._problem, [result.point])
        if not self._coarse:
            return replace(result, point=W), True
        exact, how = result.point.copy(), (span.constant, self._problem.rows.n_threads)
        assert span.block is not None
        exact[: len(span)] = span.block.scores(W, *how)
        if span.constant:
            exact[: len(span)] -= exact[-1]
        objective, gradient = span.objective_of(penalty)(exact)
        left = 0.5 * float(np.einsum("ij,ij->", gradient, self._metric.solve(gradient)))
        result.history[-1] = objective
        gap = max(result.gap, left)
        confirmed = gap <= tolerance * abs(objective) or result.reason != "converged"
        return replace(result, point=W, objective=objective, gap=gap), confirmed


class SpanMetric:
    """Solves in the metric of a penalty."""

    def __init__(self, span: Span, factor: core.Metric, pull: float) -> None:
        self._span, self._factor, self._pull = span, factor, pull
        self._ones = 1.0 if span.weight is None else span.weight[:, None]
        self._part = np.empty((0, 1))
        if span.constant:
            weight = np.ones(len(span)) if span.weight is None else span.weight
            right = np.ascontiguousarray(_CURVATURE * weight[:, None])
            self._part = factor.solve(right, span.n_threads)

    @classmethod
    def of(cls, span: Span, penalty: Penalty) -> SpanMetric | None:
        """The metric of a penalty, which serves searches with others; None where it is singular."""
        pull = span.pull(penalty)
        if not pull > 0:
            return None
        factor = core.Metric.from_kernel(span.kernel, span.weight, _CURVATURE, pull, span.n_threads)
        return cls(span, factor, pull) if factor.positive else None

    def solve(self, gradient: _Array) -> _Array:
        """The point ``H^-1 gradient``."""
        span, pull = self._span, self._pull
        n = len(span)
        G = np.ascontiguousarray(gradient[:n])
        out = np.empty_like(gradient)
        A = self._factor.solve(G, span.n_threads)
        if span.constant:
            # c w^T (K A + b) = g_b, and with it the sum of (c diag(w) K + q) A + c w b = G.
            sums = A.sum(axis=0) - (G.sum(axis=0) - gradient[-1]) / pull
            out[-1] = sums / self._part.sum()
            A -= self._part * out[-1]
        f = out[:n]
        np.multiply(A, -pull, out=f)
        f += G
        f /= _CURVATURE * self._ones
        if span.constant:
            f -= out[-1]
        out[n : 2 * n] = A
        return out
