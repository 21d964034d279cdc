"""The compiled core. Private: shapes are checked here, values in the facade."""

from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

_T = TypeVar("_T", np.float32, np.float64)
_F32 = npt.NDArray[np.float32]
_F64 = npt.NDArray[np.float64]
_I32 = npt.NDArray[np.int32]
_I64 = npt.NDArray[np.int64]

class ClassMoments:
    def __init__(self, n_classes: int, n_features: int) -> None: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def n_features(self) -> int: ...
    def grow(self, n_classes: int) -> None: ...
    def update_dense(
        self,
        X: npt.NDArray[_T],  # (n, d), contiguous rows or contiguous columns
        labels: _I32,  # (n,)
        weights: _F64 | None,  # (n,)
        n_threads: int,
    ) -> None: ...
    def update_bytes(
        self,
        X: npt.NDArray[np.uint8],  # (n, d), C-contiguous
        labels: _I32,  # (n,)
        n_threads: int,
    ) -> None: ...
    def update_csr(
        self,
        data: npt.NDArray[_T],  # (nnz,)
        indices: _I64,  # (nnz,)
        indptr: _I64,  # (n + 1,)
        n_columns: int,
        labels: _I32,  # (n,)
        weights: _F64 | None,  # (n,)
        n_threads: int,
    ) -> None: ...
    def merge(self, other: ClassMoments, class_map: _I32, n_threads: int) -> None: ...
    def weight(self, c: int) -> float: ...
    def mean_high(self, c: int) -> _F64: ...  # (d,)
    def mean_low(self, c: int) -> _F64: ...  # (d,)
    def second_moment(self, c: int) -> _F64: ...  # (d, d)
    def covariance(self, c: int) -> _F64: ...  # (d, d)
    def packed_scatter(self, c: int) -> _F64: ...  # (d (d + 1) / 2,)
    def restore(
        self, c: int, weight: float, mean_high: _F64, mean_low: _F64, packed: _F64
    ) -> None: ...
    def copy(self) -> ClassMoments: ...
    def __eq__(self, other: object) -> bool: ...

class PencilSolution(Generic[_T]):
    @property
    def eigenvalues(self) -> npt.NDArray[_T]: ...  # (n, m)
    @property
    def vectors(self) -> npt.NDArray[_T]: ...  # (n, m, d)
    @property
    def residuals(self) -> npt.NDArray[_T]: ...  # (n, m)
    @property
    def found(self) -> _I64: ...  # (n,)
    @property
    def iterations(self) -> _I64: ...  # (n,)
    @property
    def solver(self) -> _I32: ...  # (n,)
    @property
    def status(self) -> _I32: ...  # (n,)

class PencilOptions:
    def __init__(self, n_vectors: int, threshold: float, solver: str, n_threads: int) -> None: ...
    @property
    def n_vectors(self) -> int: ...

def solve_pencils(
    numerators: list[npt.NDArray[_T]],  # (d, d) each
    denominators: list[npt.NDArray[_T]],  # (d, d) each
    shifts: npt.NDArray[_T],  # (n_denominators,), or (n_denominators, d): entry by entry
    items: _I64,  # (n, 2): numerator, denominator
    options: PencilOptions,
) -> PencilSolution[_T]: ...
def is_positive_definite(
    matrix: npt.NDArray[_T],  # (d, d)
    shifts: npt.NDArray[_T],  # (d,), added to the diagonal
    n_threads: int,
) -> bool: ...
def choose_solver(d: int, n_vectors: int, items_per_denominator: float) -> str: ...
def pencil_bytes(d: int, n_items: int, n_denominators: int, options: PencilOptions) -> float: ...
def expand_dense(
    X: npt.NDArray[_T],  # (n, d), C-contiguous
    directions: npt.NDArray[_T],  # (d, F), C-contiguous
    offset: npt.NDArray[_T] | None,  # (F,)
    wave: str,
    powers: list[int],
    include_input: bool,
    n_threads: int,
) -> npt.NDArray[_T]: ...
def expand_csr(
    data: npt.NDArray[_T],
    indices: _I64,
    indptr: _I64,
    n_columns: int,
    directions: npt.NDArray[_T],
    offset: npt.NDArray[_T] | None,
    wave: str,
    powers: list[int],
    include_input: bool,
    n_threads: int,
) -> npt.NDArray[_T]: ...

class Metric:
    @property
    def positive(self) -> bool: ...
    @property
    def order(self) -> int: ...
    @staticmethod
    def from_gram(
        gram: _F64,  # (p (p + 1) / 2,), lower triangle row by row
        scale: _F64,
        diagonal: _F64,
        factor: float,
        n_threads: int,
    ) -> Metric: ...
    def solve(self, b: _F64, n_threads: int) -> _F64: ...  # (p, k)

class LbfgsDirection:
    @property
    def vector(self) -> _F64: ...  # -B^-1 g
    @property
    def slope(self) -> float: ...  # g^T vector
    @property
    def squared_norm(self) -> float: ...  # g^T H^-1 g

class Lbfgs:
    def __init__(self, size: int, memory: int) -> None: ...
    @property
    def pairs(self) -> int: ...
    @property
    def gamma(self) -> float: ...
    def direction(self, gradient: _F64, solved: _F64) -> LbfgsDirection: ...
    def remember(
        self,
        from_: _F64,
        to: _F64,
        gradient_before: _F64,
        gradient_after: _F64,
        solved_before: _F64,
        solved_after: _F64,
        /,
    ) -> None: ...
    def forget(self) -> None: ...

def kernel_ridge(
    kernel: _F64,  # (n, n)
    weights: _F64 | None,
    targets: _F64,  # (n, k)
    ridges: _F64,  # (m,)
    n_threads: int,
) -> _F64: ...  # (m, n, k)

class FeatureSums:
    @property
    def sums(self) -> _F64: ...  # (p,)
    @property
    def squares(self) -> _F64: ...  # (p,)

class LogitGradient:
    @property
    def loss(self) -> float: ...
    @property
    def energy(self) -> float: ...
    @property
    def gradient(self) -> _F64: ...  # (p, k)

class _FeatureRows(Generic[_T]):
    def __init__(
        self,
        *,
        X: npt.NDArray[_T] | None = None,  # (n, d), C-contiguous
        data: npt.NDArray[_T] | None = None,
        indices: _I64 | None = None,
        indptr: _I64 | None = None,
        n_columns: int = 0,
        projections: npt.NDArray[_T] | None = None,  # (n, F), C-contiguous
        directions: npt.NDArray[_T] | None = None,  # (d, F), C-contiguous
        offset: npt.NDArray[_T] | None = None,  # (F,)
        wave: str | None = None,
        powers: list[int] = ...,
        include_input: bool = False,
        constant: bool = False,
    ) -> None: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    # Coefficients (p, k), residuals (n, k) and scores (n, k) have the type of the rows.
    def scores(self, coefficients: npt.NDArray[Any], n_threads: int) -> npt.NDArray[Any]: ...
    def class_scores(
        self, weights: _F64, constants: _F64, n_threads: int
    ) -> npt.NDArray[Any]: ...  # of weights (k, p)
    def products(self, residuals: npt.NDArray[Any], n_threads: int) -> _F64: ...
    def sums(self, weights: _F64 | None, n_threads: int) -> FeatureSums: ...
    def gradient(
        self,
        labels: _I32,
        weights: _F64 | None,
        energy_weight: float,
        coefficients: _F64,  # (p, k)
        n_threads: int,
    ) -> LogitGradient: ...
    def metric(
        self,
        weights: _F64 | None,
        scale: _F64,
        diagonal: _F64,
        factor: float,
        dual: bool,
        coarse: bool,
        n_threads: int,
    ) -> Metric: ...
    def residual(
        self, weights: _F64 | None, scale: _F64, ridge: float, n_threads: int
    ) -> float: ...
    def gram(
        self, weights: _F64 | None, scale: _F64, coarse: bool, n_threads: int
    ) -> _F64: ...  # (p (p + 1) / 2,), lower triangle row by row
    def kernel(self, scale: _F64, coarse: bool, n_threads: int) -> _F64: ...  # (n, n)

class FeatureRows32(_FeatureRows[np.float32]): ...
class FeatureRows64(_FeatureRows[np.float64]): ...

class LocalScatters:
    @property
    def within(self) -> _F64: ...  # (d, d)
    @property
    def weighted(self) -> _F64: ...  # (d, d)

class LocalGaussians:
    @property
    def means(self) -> _F64: ...  # (m, n_classes, d)
    @property
    def variances(self) -> _F64: ...  # (m, n_classes, d)

def local_neighbours(
    X: npt.NDArray[_T],  # (n, d), C-contiguous
    codes: _I32,  # (n,)
    n_classes: int,
    n_neighbors: int,
    queries: npt.NDArray[_T] | None,  # (m, d), C-contiguous
    groups: _I32 | None,  # (n,)
    n_threads: int,
) -> _I64: ...  # (m, n_classes, n_neighbors)
def local_scatters(
    X: npt.NDArray[_T],  # (n, d), C-contiguous
    queries: npt.NDArray[_T] | None,  # (m, d), C-contiguous
    query_codes: _I32,  # (m,)
    neighbours: _I64,  # (m, n_classes, n_neighbors)
    priors: _F64,  # (n_classes,)
    method: str,
    n_threads: int,
) -> LocalScatters: ...
def local_discriminants(
    X: npt.NDArray[_T],  # (n, d), C-contiguous
    queries: npt.NDArray[_T] | None,  # (m, d), C-contiguous
    neighbours: _I64,  # (m, n_classes, n_neighbors)
    counts: _I64,  # (k,), ascending
    ridge: float,
    n_threads: int,
) -> _F64: ...  # (k, m, n_classes)
def local_gaussians(
    X: npt.NDArray[_T],  # (n, d), C-contiguous
    queries: npt.NDArray[_T] | None,  # (m, d), C-contiguous
    neighbours: _I64,  # (m, n_classes, n_neighbors)
    ridge: float,
    n_threads: int,
) -> LocalGaussians: ...
def factorise_covariance(
    covariance: _F64,
) -> _F64 | None: ...  # (d, d); None unless it is positive definite
def prefix_gains(factor: _F64, features: _F64, n_threads: int) -> _F64: ...  # (d, ell)
def prefix_innovations(
    factor: _F64, mean: _F64, rows: _F64, t: int, n_threads: int
) -> _F64: ...  # (n, t)
def prefix_means(
    gains: _F64, mean: _F64, innovations: _F64, steps: _I64, n_threads: int
) -> _F64: ...  # (n, p, ell)
def prefix_log_densities(
    factor: _F64, innovations: _F64, steps: _I64, n_threads: int
) -> _F64: ...  # (n, p)
def prefix_covariances(gains: _F64, steps: _I64, n_threads: int) -> _F64: ...  # (p, ell, ell)
def prefix_variances(gains: _F64, steps: _I64) -> _F64: ...  # (p, ell)

class BallMinima:
    @property
    def values(self) -> _F64: ...  # (n,)
    @property
    def points(self) -> _F64: ...  # (n, d)
    @property
    def multipliers(self) -> _F64: ...  # (n,)
    @property
    def gaps(self) -> _F64: ...  # (n,)
    @property
    def residuals(self) -> _F64: ...  # (n,)
    @property
    def hard(self) -> _I32: ...  # (n,)
    @property
    def iterations(self) -> _I32: ...  # (n,)
    @property
    def status(self) -> _I32: ...  # (n,)

class Certificates:
    @property
    def verdicts(self) -> _I32: ...  # (n,)
    @property
    def lower(self) -> _F64: ...  # (n,)
    @property
    def upper(self) -> _F64: ...  # (n,)
    @property
    def passes(self) -> _I32: ...  # (n,)

def minimise_over_ball(
    A: _F64,  # (m, d, d) or diagonals (m, d), m = 1 or n
    g: _F64,  # (n, d)
    radius: _F64,  # (n,)
    n_threads: int,
) -> BallMinima: ...
def certify_over_ball(
    A: _F64, g: _F64, constant: _F64, radius: _F64, n_threads: int
) -> Certificates: ...
def proved_levels(
    forms: _F64,  # (p, d, d)
    widths: _F64,  # (q, d)
    groups: _I64,  # (m, 2)
    begins: _I64,  # (m + 1,)
    slopes: _F64,  # (n, d)
    constants: _F64,  # (n, t)
    radii: _F64,  # (n, t)
    limits: _I64,  # (n,)
    n_threads: int,
) -> _I32: ...  # (n,): proved levels
def dominance_radii(
    points: _F64,
    widths: _F64,
    radii: _F64,
    offsets: _F64,
    slopes: _F64 | None,
    precisions: _F64 | None,
    centres: _F64 | None,
    shape: str,
    n_threads: int,
) -> _F64: ...  # (n,): largest radii
def affinity_sums(
    X: _F64,  # (n, d), C-contiguous, the rows of a class together
    counts: _I64,  # (k,)
    n_neighbors: int,
    laplacian: _F64,  # (m, k)
    plain: _F64,  # (m, k)
    n_threads: int,
) -> _F64: ...  # (m, d, d)

class HingeEnvelopes:
    @property
    def duals(self) -> _F64: ...  # (n, k)
    @property
    def values(self) -> _F64: ...  # (n,): dual objectives
    @property
    def gaps(self) -> _F64: ...  # (n,)

def hinge_envelope(
    scores: _F64,  # (n, k), C-contiguous
    gram: _F64,  # (k, k)
    labels: _I32,  # (n,)
    costs: _F64,  # (n,)
    margin: float,
    variance: float,
    start: _F64,  # (n, k)
    tolerance: float,
    max_steps: int,
    n_threads: int,
) -> HingeEnvelopes: ...

class _CrammerSinger(Generic[_T]):
    def __init__(
        self,
        *,
        X: npt.NDArray[_T] | None = None,  # (n, d), C-contiguous
        data: npt.NDArray[_T] | None = None,
        indices: _I64 | None = None,
        indptr: _I64 | None = None,
        n_columns: int = 0,
        labels: _I32,  # (n,)
        costs: _F64,  # (n,)
        n_classes: int,
        margin: float,
        constant: float,  # value of a last feature; 0: none
        solver: str,
        batch: int,
        seed: int,
        n_threads: int,
    ) -> None: ...
    def start(self, duals: _F64, n_threads: int) -> None: ...  # (n, k)
    def run(self, epochs: int, tolerance: float, n_threads: int) -> int: ...
    @property
    def primal(self) -> float: ...
    @property
    def dual(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def support(self) -> int: ...
    def weights(self, n_classes: int) -> _F64: ...  # (k, p)
    def duals(self, n_classes: int) -> _F64: ...  # (n, k)

class CrammerSinger32(_CrammerSinger[np.float32]): ...
class CrammerSinger64(_CrammerSinger[np.float64]): ...

def standardised_rows(
    rows: _F32 | _F64,  # (B, d), C-contiguous
    centre: _F64,  # (d,)
    scale: _F64,  # (d,)
    n_threads: int,
) -> _F32: ...  # (B, d)

class TrainingLosses:
    @property
    def loss(self) -> float: ...
    @property
    def shifted(self) -> float: ...  # of the shifted rows

class AffineMap:  # x -> x matrix + offset
    @property
    def matrix(self) -> _F32: ...  # (d, F) of a layer, (p, k) of the logit
    @property
    def offset(self) -> _F32: ...  # (F,), (k,)

class LayerTraining:
    def __init__(
        self,
        *,
        directions: list[_F32],  # (d, F) of each layer, C-contiguous
        offsets: list[_F32],  # (F,) of each layer
        powers: list[list[int]],
        rates: list[tuple[float, float]],  # of directions and offset of each layer
        weights: _F32,  # (p, k)
        intercept: _F32,  # (k,)
        centre: _F32,  # (p,)
        weight_rates: _F32,  # (p,)
        intercept_rate: float,
        includes_input: bool,
    ) -> None: ...
    def step(
        self,
        rows: _F32,  # (B, d), C-contiguous
        labels: _I32,  # (B,)
        row_weights: _F32 | None,  # (B,)
        shift: float,
        rate: float,
        n_threads: int,
    ) -> TrainingLosses: ...
    def layer(self, number: int, rows: int, cols: int) -> AffineMap: ...
    def logit(self, rows: int, cols: int) -> AffineMap: ...

def default_threads() -> int: ...
def blas_threads() -> int: ...
def lapack_name() -> str: ...
def tier() -> str: ...
def available_tiers() -> list[str]: ...
def check_compact_rows(
    data: npt.NDArray[_T], indices: _I32, indptr: _I64, n_columns: int
) -> None: ...

class SparseArrays(Generic[_T]):
    @property
    def data(self) -> npt.NDArray[_T]: ...  # (nnz,)
    @property
    def indices(self) -> _I32: ...  # (nnz,)
    @property
    def indptr(self) -> _I64: ...  # (n_columns + 1,)

def transpose_rows(
    data: npt.NDArray[_T], indices: _I32, indptr: _I64, n_columns: int
) -> SparseArrays[_T]: ...
def multiply_rows(
    data: npt.NDArray[Any],  # float32 or float64
    indices: _I32,
    indptr: _I64,
    n_columns: int,
    V: npt.NDArray[Any],  # (n_columns, b); float64, or float32 with float32 data
    v_first: int,
    out: npt.NDArray[Any],  # (n, b'), of V's type, written to
    out_first: int,
    width: int,
    add: bool,
    n_threads: int,
) -> None: ...

class MeanTangentVector:
    @property
    def mean(self) -> _F64: ...  # (r (r + 1) / 2,)
    @property
    def extremes(self) -> _F64: ...  # (n, 2)
    @property
    def status(self) -> _I32: ...  # (n,)

def tangent_vectors(
    matrices: _F64,  # (n, d, d)
    whitening: _F64,  # (d, r)
    n_threads: int,
) -> _F64: ...  # (n, r (r + 1) / 2); NaN for matrices that are not positive definite
def mean_tangent_vector(
    matrices: _F64,  # (n, d, d)
    weights: _F64,  # (n,)
    whitening: _F64,  # (d, r)
    n_threads: int,
) -> MeanTangentVector: ...
def epoch_covariances(
    epochs: npt.NDArray[_T],  # (n, channels, times)
    n_threads: int,
) -> _F64: ...  # (n, channels, channels)
def convolution_features(
    series: npt.NDArray[_T],  # (n, channels, length)
    dilations: _I64,  # (D,)
    orders: _I64,  # (D,)
    n_thresholds: _I64,  # (D,)
    channel_begin: _I64,  # (84 D + 1,)
    channels: _I64,
    rivals: _I64,  # (C, 84)
    thresholds: npt.NDArray[_T],  # (F,)
    ends: _I64,  # (n, m)
    n_threads: int,
) -> npt.NDArray[_T]: ...  # (n, m, F + 168 C)
def convolution_outputs(
    series: npt.NDArray[_T],  # (n, channels, length)
    dilations: _I64,  # (D,)
    orders: _I64,  # (D,)
    n_thresholds: _I64,  # (D,)
    channel_begin: _I64,  # (84 D + 1,)
    channels: _I64,
    rivals: _I64,  # (C, 84)
    first_pair: int,
    rows: _I64,  # (m,)
    n_threads: int,
) -> npt.NDArray[_T]: ...  # (m, length)
def column_ranks(
    x: npt.NDArray[_T],  # (n, d)
    columns: _I64,  # (c,)
    quantiles: npt.NDArray[_T],  # (c, q)
    shares: _F64,  # (c, q)
    n_threads: int,
) -> _F32: ...  # (n, c)
def column_bins(
    x: npt.NDArray[_T],  # (n, d)
    columns: _I64,  # (c,)
    edges: _F64,
    starts: _I64,  # (c + 1,)
    n_threads: int,
) -> _I64: ...  # (n, c)
def column_splines(
    x: npt.NDArray[_T],  # (n, d)
    columns: _I64,  # (c,)
    knots: _F64,
    starts: _I64,  # (c + 1,)
    n_threads: int,
) -> _F32: ...  # (n, features)
