"""GEM for samples with up to a million columns, by products of samples."""

from __future__ import annotations

import time
from collections.abc import Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from eigenfeat._base.validation import FLOATS
from eigenfeat.expansion.features import ExpandedFeatures, check_powers, row_blocks
from eigenfeat.gem._randomized.pencils import solve_pencils
from eigenfeat.gem.gem import PairFeatures
from eigenfeat.pencils.problems import PencilOptions
from eigenfeat.samples.estimator import prepare, unchanged_on_error, validate_data
from eigenfeat.samples.out_of_core import over_blocks

if TYPE_CHECKING:
    from eigenfeat._base.types import Floats, Pairs, RandomState, Rows, Targets, Weights
    from eigenfeat.gem._randomized.directions import RowCombinations
    from eigenfeat.samples.blocks import RowBlocks

__all__ = ["RandomizedGEM"]


class RandomizedGEM(PairFeatures):
    """GEM features of sparse samples with very many columns, such as text.

    Use it before a linear classifier where :class:`eigenfeat.GEM` would need too much memory: it
    forms no matrix of columns by columns. User guide: :doc:`/guide/text`.

    Directions are combinations of the training samples of two classes, found by block Krylov spaces
    from a random start (Karampatziakis and Mineiro, ICML 2014, section 5). A fitted model contains
    the training samples. Directions that did not converge give a RuntimeWarning.

    Parameters
    ----------
    ridge : float > 0 or None, default=None
        Multiple of a denominator's mean eigenvalue that is added to its diagonal. None: 0.2 times
        the mean of the min(n, d) largest eigenvalues, for n samples of the class.
    n_directions : int >= 1 or "auto", default="auto"
        Maximum number of directions of a pair. "auto": 10, or fewer with more than 300 pairs.
    threshold : float or None, default=1.5
        Smallest eigenvalue. None keeps all.
    pairs : {"auto", "all", "hypercube"} or list, default="auto"
        Pairs of classes, or a list of labels (numerator, denominator). "auto": "all" for up to 50
        classes, else "hypercube".
    constant : bool, default=True
        Whether samples are ``(x - m, 1)``, m their mean, so that a direction has an offset.
    scale : {"none", "columns"}, default="none"
        "columns" divides columns by their standard deviations.
    denominator : {"second_moment", "covariance"}, default="second_moment"
        With "covariance", both matrices are about the mean of the denominator's class.
    expansion : {"half_wave", "shifted", "polynomial", "none"}, default="half_wave"
        As in :class:`eigenfeat.GEM`.
    powers : distinct numbers out of 1, 2, 3, default=(1, 2, 3)
        Exponents of the expansion, as in :class:`eigenfeat.GEM`.
    random_state : int, RandomState instance or None, default=0
        Seed of the Krylov spaces.
    n_threads : int or None, default=None
        Number of threads; None means all. Results do not depend on it.
    verbose : int, default=0
        1 prints a line for each step on stderr.

    Attributes
    ----------
    directions_ : RowCombinations
        Directions (d, F) as combinations of samples; `tocsc` and `toarray` form them. Projections
        are ``X @ directions_ + offset_``.
    offset_ : (F,) array
        Offsets of the projections.
    eigenvalues_ : (F,) array
        Eigenvalue of each direction.
    residuals_ : (F,) array
        Relative residual of each direction.
    pairs_ : (F, 2) array
        Labels of numerator and denominator.
    ranks_ : (F,) array
        Rank of each direction in its pair, from 0.
    column_scale_ : (d,) array
        Divisors of the columns.
    classes_ : (k,) array
        Labels, sorted.

    See Also
    --------
    eigenfeat.GEM : For fewer columns; solves from moments, also of samples in blocks.

    Examples
    --------
    >>> from scipy import sparse
    >>> from eigenfeat.gem import RandomizedGEM
    >>> X = sparse.random(60, 50_000, 0.001, format="csr", random_state=0)
    >>> RandomizedGEM(n_directions=2).fit(X, [0, 1] * 30).directions_.shape
    (50000, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="neither"), None],
        "n_directions": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "pairs": [StrOptions({"auto", "all", "hypercube"}), "array-like"],
        "denominator": [StrOptions({"second_moment", "covariance"})],
        "constant": ["boolean"],
        "scale": [StrOptions({"none", "columns"})],
        "expansion": [StrOptions({"half_wave", "shifted", "polynomial", "none"})],
        "powers": ["array-like"],
        "random_state": ["random_state"],
        "n_threads": [Interval(Integral, 1, None, closed="left"), None],
        "verbose": ["verbose"],
    }

    directions_: RowCombinations

    def __init__(
        self,
        ridge: float | None = None,
        n_directions: int | str = "auto",
        threshold: float | None = 1.5,
        pairs: Pairs = "auto",
        denominator: str = "second_moment",
        constant: bool = True,
        scale: str = "none",
        expansion: str = "half_wave",
        powers: Sequence[int] = (1, 2, 3),
        random_state: RandomState = 0,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ridge = ridge
        self.n_directions = n_directions
        self.threshold = threshold
        self.pairs = pairs
        self.denominator = denominator
        self.constant = constant
        self.scale = scale
        self.expansion = expansion
        self.powers = powers
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(
        self, X: Rows | RowBlocks, y: Targets = None, sample_weight: Weights = None
    ) -> RandomizedGEM:
        """Solve for the directions.

        Parameters
        ----------
        X : (n, d) sparse matrix, array-like or RowBlocks
            Finite samples; arrays become sparse. Rows of files are read into memory.
        y : (n,) array-like
            Labels of any sortable type; None with blocks, which contain labels and weights.
        sample_weight : (n,) array-like, optional
            Nonnegative weights of the samples.

        Returns
        -------
        RandomizedGEM
            The estimator itself. An error leaves it unchanged.
        """
        with unchanged_on_error(self):
            self._validate_params()
            check_powers(self.powers)
            samples = prepare(self, X, y, sample_weight, in_memory=True)
            started = time.perf_counter()
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            options = PencilOptions.of(self, seed)
            result = solve_pencils(samples, options, self._log)
            self.directions_, self.offset_ = result.directions, result.offset
            self.eigenvalues_, self.residuals_ = result.eigenvalues, result.residuals
            self.pairs_, self.ranks_ = result.pairs, result.ranks
            self.column_scale_, self.classes_ = result.column_scale, samples.classes
            worst = result.residuals.max(initial=0.0)
            self._log(
                f"{result.steps} products with vectors, largest residual {worst:.1e}", started
            )
        return self

    @over_blocks
    def transform(self, X: Rows | RowBlocks) -> Floats:
        """Expand samples into features.

        Parameters
        ----------
        X : (n, d) sparse matrix, array-like or RowBlocks
            Finite samples. For blocks the result is an iterator over blocks.

        Returns
        -------
        (n, columns) array, float32 if `X` is float32, else float64
            ``[for s in (+, -): for a in powers: F columns]``; "polynomial" has no signs, "none" is
            the projections.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, order="C", reset=False)
        projections = self.directions_.project(rows, self.offset_, self.n_threads)
        if self.expansion == "none":
            return projections
        no_directions = np.empty((0, projections.shape[1]), dtype=projections.dtype)
        options: dict[str, Any] = {"expansion": self.expansion, "powers": tuple(self.powers)}
        blocks = row_blocks(len(projections), projections.shape[1])
        return np.concatenate(
            [
                ExpandedFeatures(
                    None, no_directions, projections=projections[part], **options
                ).toarray()
                for part in blocks
            ]
        )
