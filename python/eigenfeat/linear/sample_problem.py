r"""A multinomial logit of few samples: the same problem with a feature for each sample.

With the penalty ``q / 2 |D^-1 W|^2``, D diagonal, the minimum over the weights W of the features
Phi is ``W = D^2 Phi^T A`` (the representer theorem). With ``Phi D^2 Phi^T = L L^T`` and
``V = L^T A`` the logits are ``L V`` and the penalty is ``q / 2 |V|^2``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from eigenfeat.linear.logit_problem import LogitProblem, Penalty, with_features
from eigenfeat.samples.labelled import Block, MemorySamples

if TYPE_CHECKING:
    from eigenfeat._base.types import Codes, Floats
    from eigenfeat.samples.block_samples import LabelledSamples

__all__ = ["SampleProblem", "sample_problem"]

_Array = npt.NDArray[np.float64]
_FLOAT32_TOLERANCE = 1e-3  # smallest for a kernel in float32


class SampleProblem(LogitProblem):
    """Problem of few samples with the rows of L as features; see the head of the file.

    Attributes
    ----------
    squares : (p,) array
        Diagonal of D^2.
    samples : Block
        The samples with their original features.
    kernel : (n, n) array
        ``Phi D^2 Phi^T``.
    """

    def __init__(
        self,
        rows: MemorySamples,
        *,
        constant: bool,
        n_original: int,
        squares: _Array,
        samples: Block,
        kernel: Floats,
    ) -> None:
        super().__init__(rows, constant=constant, common=True, n_original=n_original)
        self.squares, self.samples, self.kernel = squares, samples, kernel

    def fold(self, train: Codes, held: Codes) -> tuple[LogitProblem, LabelledSamples]:
        """The problem of training samples, with a feature for each, and held-out samples."""
        factor = _cholesky(self.kernel[np.ix_(train, train)])
        crossed = self.kernel[np.ix_(train, held)]
        mapped = solve_triangular(factor, crossed, lower=True, check_finite=False).T
        trained, tested = (self.samples.take(part) for part in (train, held))
        rows = with_features(self.rows, Block(factor, trained.y, trained.weight))
        problem = LogitProblem(
            rows, constant=self.constant, common=True, n_original=self.n_original
        )
        features = Block(np.ascontiguousarray(mapped), tested.y, tested.weight)
        return problem, with_features(self.rows, features)

    def feature_weights(self, W: _Array) -> _Array:
        """Weights (p, k) of the original features, from weights W of the samples' features."""
        n = self.varying
        factor = np.asarray(self.rows.together().X, dtype=np.float64)
        A = solve_triangular(factor, W[:n], trans="T", lower=True, check_finite=False)
        out = self.samples.products(np.ascontiguousarray(A), self.constant, self.rows.n_threads)
        out *= self.squares[:, None]
        if self.constant:
            out[-1] = W[-1]
        return out


def sample_problem(problem: LogitProblem, penalty: Penalty, tolerance: float) -> LogitProblem:
    """The problem with a feature for each sample; `problem` itself if it needs its own features.

    `penalty` is any of the penalties, which differ in `energy` alone. If the `tolerance` of the
    searches is large, products are in float32.
    """
    if penalty.l2 > 0 and not problem.common:  # D would depend on the penalty
        return problem
    rows, varying = problem.rows, slice(problem.varying)
    scale, unit = problem.scale.copy(), 1.0
    count = int(np.count_nonzero(scale[varying]))
    if problem.common:
        count, unit = problem.varying, float(problem.mean_squares[varying].mean())
        scale = np.where(problem.flat, 0.0, 1.0 / np.sqrt(unit or 1.0))
    scale[problem.varying :] = 0.0
    if not (scale.any() and np.isfinite(scale).all()):
        return problem
    block, single = rows.together(), tolerance >= _FLOAT32_TOLERANCE
    if rows.sparse:
        scaled = block.X.multiply(scale[varying]).tocsr().astype(np.float64)
        kernel = (scaled @ scaled.T).toarray()
    else:
        kernel = block.core(problem.constant).kernel(scale, single, problem.n_threads)
    kernel *= unit
    kernel = kernel.astype(np.float32 if single else np.float64, copy=False)
    return SampleProblem(
        with_features(rows, Block(_cholesky(kernel), block.y, block.weight)),
        constant=problem.constant,
        n_original=count,
        squares=unit * scale**2,
        samples=block,
        kernel=kernel,
    )


def _cholesky(kernel: Floats) -> Floats:
    """Lower Cholesky factor of a kernel, with its diagonal raised until it is positive definite."""
    n = len(kernel)
    extra = np.sqrt(n) * float(np.finfo(kernel.dtype).eps) * kernel.diagonal().max()
    raised = kernel.copy()
    while True:
        raised[np.diag_indices(n)] += extra
        try:
            factor = cholesky(raised, lower=True, check_finite=False)
        except LinAlgError:  # repeated samples make the kernel singular
            extra *= 10.0
        else:
            return np.ascontiguousarray(factor)
