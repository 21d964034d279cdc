r"""Completion of missing entries by a Gaussian that is estimated from incomplete samples.

Given the known part of a sample, the missing part is Gaussian with

.. math::

    m = \mu_M - P_{MM}^{-1} P_{MO} (x_O - \mu_O), \qquad R = P_{MM}^{-1},

where P is the inverse of the covariance, M the missing and O the known columns. With the completed
sample :math:`\hat x`, the expected products are :math:`E[x x^T | x_O] = \hat x \hat x^T + R`,
where R is 0 outside M. Mean and covariance come from expectation-maximisation (Dempster, Laird and
Rubin 1977; Little and Rubin, "Statistical analysis with missing data", 2002, section 11.2), whose
steps replace products of samples by their expectations. Entries are assumed to be missing at
random: whether an entry is missing may depend on known entries, but not on its value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.state import OmitsCaches
from eigenfeat._base.subsamples import draw_subsample
from eigenfeat._base.types import Codes, Floats, Labels
from eigenfeat._base.validation import FLOATS, has_missing, warn_caller
from eigenfeat.expansion.features import expand
from eigenfeat.moments.class_moments import ClassMoments, ledoit_wolf

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "ALLOW_NAN",
    "GaussianImputer",
    "completed",
    "first_missing",
    "known_entries",
    "refuse_missing",
    "sampled",
    "warn_empty",
]

_Array = npt.NDArray[np.float64]
_Mask = npt.NDArray[np.bool_]

# Size of the subsample from which the Gaussian is estimated.
_MIN_SAMPLES, _SAMPLES_PER_COLUMN = 2000, 5
_STACK_ENTRIES = 1 << 20  # entries of a stack of matrices that are solved together
_PIECE_ENTRIES = 1 << 18  # entries of samples that are completed together
_CACHED_ENTRIES = 1 << 18  # entries of samples whose sums are computed together
_RIDGE = 1e-6  # relative to the mean variance
_MAX_SHOWN = 10  # columns in a message

# Options of scikit-learn's validation for samples that may have missing entries.
ALLOW_NAN: dict[str, object] = {
    "accept_sparse": "csr",
    "dtype": FLOATS,
    "order": "C",
    "ensure_all_finite": "allow-nan",
}


@dataclass(frozen=True, eq=False)
class GaussianImputer(OmitsCaches):
    """Completion of missing entries by their conditional means under a Gaussian.

    Attributes
    ----------
    mean : (d,) array
        Means of the known entries of the columns.
    scale : (d,) array
        Standard deviations of the known entries of the columns; 0 for a constant column. In
        standard units, entries less `mean` are divided by `scale`.
    shift : (d,) array
        Mean of the Gaussian minus `mean`, in standard units.
    covariance : (d, d) array
        Covariance in standard units, positive definite.
    n_iter : int
        Iterations of expectation-maximisation.
    empty : (d,) array of bool
        Columns without a known entry. They are 0 in every completed sample.
    """

    mean: _Array
    scale: _Array
    shift: _Array
    covariance: _Array
    n_iter: int
    empty: _Mask

    @classmethod
    def fit(
        cls,
        X: Floats,
        weight: _Array | None = None,
        *,
        max_iter: int = 100,
        tol: float = 1e-3,
        n_threads: int | None = None,
    ) -> GaussianImputer:
        """Estimate mean and covariance of samples X (n, d), with NaN for missing entries.

        Ledoit and Wolf's shrinkage, in standard units, keeps the covariance well conditioned with
        few samples. Iterations stop when neither mean nor covariance changes by more than `tol`.

        Only ratios of weights matter, as in GEM. The shrinkage depends on Kish's effective number
        of samples, ``(sum w)^2 / sum w^2``. In `GaussianCompletion`, where a weight is a number of
        samples, it depends on ``sum w``. ValueError if no entry is known.
        """
        known = ~np.isnan(X)
        empty: _Mask = np.asarray(~known.any(axis=0))
        if empty.all():
            raise ValueError("X: expected a known entry, got NaN only")
        X = _with_zeros(X, empty)
        known[:, empty] = True
        shares = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=np.float64)
        mean, scale = _columns(X, known, shares)
        chosen = sampled(*X.shape)
        Z, shares = _standard(X[chosen], mean, scale), shares[chosen] / shares[chosen].sum()
        shift, covariance = _gaussian(
            np.where(np.isnan(Z), 0.0, Z), shares, np.diag(np.isnan(Z).mean(axis=0))
        )
        one_class = np.zeros(len(Z), dtype=np.int32)
        for n_iter in range(1, max_iter + 1):
            current = cls(mean, scale, shift, covariance, n_iter, empty)
            filled, spread = current._expected(Z, one_class, shares, 1, n_threads)
            shift, covariance = _gaussian(filled, shares, spread[0])
            change = max(
                np.linalg.norm(covariance - current.covariance) / np.linalg.norm(covariance),
                np.linalg.norm(shift - current.shift) / np.sqrt(len(shift)),
            )
            if change <= tol:
                break
        return cls(mean, scale, shift, covariance, n_iter, empty)

    def filled(self, X: Any, n_threads: int | None = None) -> Any:
        """Replace NaN by conditional means; sparse samples have no missing entries."""
        X = _with_zeros(X, self.empty)
        if not isinstance(X, np.ndarray):
            return X
        missing = np.isnan(X)
        rows = np.flatnonzero(missing.any(axis=1))
        if not len(rows):
            return X
        out, columns = X.copy(), np.flatnonzero(missing.any(axis=0))
        for part in _pieces(rows, X.shape[1]):
            Z = _standard(X[part], self.mean, self.scale)
            standard = self._expected(Z, None, None, 0, n_threads)[0][:, columns]
            values = standard * self.scale[columns] + self.mean[columns]
            entries = part[:, None], columns
            out[entries] = np.where(missing[entries], values.astype(X.dtype), out[entries])
        return out

    def spread(
        self,
        missing: _Mask,
        codes: Codes,
        k: int,
        weight: _Array | None = None,
        n_threads: int | None = None,
    ) -> _Array:
        """Weighted sums (k, d, d) of the conditional covariances R of the samples of each class.

        R depends on the mask `missing` (n, d) of the missing entries, not on known entries. `codes`
        (n,) are classes 0 to ``k - 1``.
        """
        sums = np.zeros((k, *self.covariance.shape))
        for part in _pieces(np.flatnonzero(missing.any(axis=1)), missing.shape[1]):
            shares = np.ones(len(part)) if weight is None else np.asarray(weight, np.float64)[part]
            labels = np.asarray(codes, np.intp)[part]
            for rows, columns, P in self._precisions(missing[part]):
                _add_weighted(sums, np.linalg.inv(P), labels[rows], shares[rows], columns)
        return sums * np.outer(self.scale, self.scale)

    @cached_property
    def _precision(self) -> _Array:
        inverse = np.linalg.inv(self.covariance)
        return np.asarray((inverse + inverse.T) / 2)

    def _expected(
        self, Z: _Array, codes: Any, shares: Any, k: int, n_threads: int | None
    ) -> tuple[_Array, _Array]:
        """Completed standardised samples, and sums of R by class; k = 0 omits the sums."""
        known, d = ~np.isnan(Z), Z.shape[1]
        centred = np.where(known, Z - self.shift, 0.0)
        gradients = expand(centred, self._precision, expansion="none", n_threads=n_threads)
        out, sums = np.where(known, Z, 0.0), np.zeros((k, d, d))
        for rows, columns, P in self._precisions(~known):
            gradient = gradients[rows[:, None], columns][:, :, None]
            if k:
                R = np.linalg.inv(P)
                means = R @ gradient
                _add_weighted(sums, R, codes[rows], shares[rows], columns)
            else:
                means = np.linalg.solve(P, gradient)
            out[rows[:, None], columns] = self.shift[columns] - means[:, :, 0]
        return out, sums

    def _precisions(
        self, missing: _Mask
    ) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], _Array]]:
        """Yield stacks of samples with equal numbers m of missing entries, of bounded size.

        A stack is the indices (s,) of its samples, the missing columns (s, m) of each, and the
        precisions (s, m, m) of these columns.
        """
        counts = np.count_nonzero(missing, axis=1)
        for m in np.unique(counts[counts > 0]).tolist():
            rows = np.flatnonzero(counts == m)
            size = max(1, _STACK_ENTRIES // m**2)
            for first in range(0, len(rows), size):
                stack = rows[first : first + size]
                columns = np.nonzero(missing[stack])[1].reshape(len(stack), m)
                yield stack, columns, self._precision[columns[:, :, None], columns[:, None, :]]


def _add_weighted(
    sums: _Array, R: npt.NDArray[Any], codes: Codes, shares: _Array, columns: Codes
) -> None:
    """Add conditional covariances R (s, m, m) of the columns (s, m) to sums (k, d, d) by class."""
    weighted = shares[:, None, None] * (R + np.swapaxes(R, 1, 2)) / 2
    d = sums.shape[1]
    places = (codes[:, None] * d + columns)[:, :, None] * d + columns[:, None, :]
    np.add.at(sums.reshape(-1), places.ravel(), weighted.ravel())


def _with_zeros(X: Any, empty: _Mask) -> Any:
    """Samples with 0 in the empty columns."""
    if not empty.any():
        return X
    if not isinstance(X, np.ndarray):
        return X.multiply(~empty).tocsr()
    return np.where(empty, X.dtype.type(0), X)


def _columns(X: npt.NDArray[Any], known: _Mask, shares: _Array) -> tuple[_Array, _Array]:
    """Means and standard deviations of known entries; the deviation of equal entries is 0."""
    low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    origin = (low / 2 + high / 2).astype(np.float64)
    size, zero = max(1, _CACHED_ENTRIES // X.shape[1]), np.zeros(X.shape[1])
    pieces = [slice(first, first + size) for first in range(0, len(X), size)]
    total = sum((shares[rows] @ known[rows] for rows in pieces), zero)
    total = np.where(total > 0, total, 1.0)
    centred = (np.where(known[rows], X[rows] - origin, 0.0) for rows in pieces)
    sums = (shares[rows] @ part for rows, part in zip(pieces, centred, strict=True))
    mean = sum(sums, zero) / total
    deviations = (np.where(known[rows], X[rows] - origin - mean, 0.0) for rows in pieces)
    sums = (shares[rows] @ part**2 for rows, part in zip(pieces, deviations, strict=True))
    squares = sum(sums, zero) / total
    scale = np.where(low == high, 0.0, np.sqrt(squares))
    return np.where(low == high, low, origin + mean), scale


def _standard(X: npt.NDArray[Any], mean: _Array, scale: _Array) -> _Array:
    unit = np.where(scale > 0, scale, 1.0)
    return np.asarray((X - mean) / unit, dtype=np.float64)


def _gaussian(Z: _Array, shares: _Array, spread: _Array) -> tuple[_Array, _Array]:
    """Mean of samples, and their covariance plus `spread`, shrunk towards equal variances.

    The shrinkage is that of Ledoit and Wolf (2004), with Kish's effective number of weighted
    samples (see `GaussianImputer.fit`). A small ridge is added.
    """
    d = Z.shape[1]
    moments = ClassMoments([0]).update(Z, np.zeros(len(Z), dtype=np.int64), shares)
    mean, S = moments.mean(0), moments.covariance(0) + spread
    variance = np.trace(S) / d
    if not variance > 0:  # every column is constant
        return mean, np.eye(d)
    share = ledoit_wolf(Z - mean, S, shares)
    S *= 1.0 - share
    S[np.diag_indices(d)] += (share + _RIDGE) * variance
    return mean, S


def _pieces(rows: npt.NDArray[np.intp], d: int) -> Iterator[npt.NDArray[np.intp]]:
    size = max(1, _PIECE_ENTRIES // d)
    for first in range(0, len(rows), size):
        yield rows[first : first + size]


def known_entries(X: Floats) -> _Mask:
    """Mask (n, d) of the known entries; ValueError if a column has no known entry."""
    known = ~np.isnan(X)
    empty = np.flatnonzero(~known.any(axis=0))
    if len(empty):
        raise ValueError(
            f"X: expected a known entry in every column, got NaN only in column {empty[0]}"
        )
    return known


def sampled(n: int, d: int) -> npt.NDArray[np.intp]:
    """Indices of the samples from which the Gaussian is estimated: all, or a random subsample."""
    return draw_subsample(n, max(_MIN_SAMPLES, _SAMPLES_PER_COLUMN * d))


def completed(
    X: Floats | csr_array,
    y: Labels,
    weight: _Array | None,
    n_threads: int | None,
    names: Sequence[str] | None = None,
) -> tuple[Floats, _Mask, GaussianImputer]:
    """Completed training samples, the mask of missing entries, and the Gaussian.

    Warns of columns without any known entry, and of classes without any known entry in a column.
    ValueError if no entry is known.
    """
    gaussian = GaussianImputer.fit(X, weight, n_threads=n_threads)
    warn_empty(gaussian, names)
    missing = np.isnan(X) & ~gaussian.empty
    lacking = {label: missing[y == label].all(axis=0) for label in np.unique(y).tolist()}
    lacking = {label: columns for label, columns in lacking.items() if columns.any()}
    for label, columns in list(lacking.items())[:1]:
        more = len(lacking) - 1
        classes = "class has" if more == 1 else "classes have"
        others = f", and {more:,} other {classes} such columns" if more else ""
        warn_caller(
            f"X: no sample of class {label!r} has an entry in column "
            f"{_shown_names(np.flatnonzero(columns)[:1], names)}{others}; the samples of other "
            f"classes complete {'them' if more else 'it'}",
            UserWarning,
        )
    return gaussian.filled(X, n_threads), missing, gaussian


def warn_empty(gaussian: GaussianImputer, names: Sequence[str] | None) -> None:
    """Warn of columns without any known entry."""
    empty = np.flatnonzero(gaussian.empty)
    if len(empty):
        shown = _shown_names(empty, names)
        warn_caller(f"X: columns without any value ({shown}) are left out", UserWarning)


def _shown_names(columns: npt.NDArray[np.intp], names: Sequence[str] | None) -> str:
    """Names of columns for a message, or their indices."""
    first = columns[:_MAX_SHOWN].tolist()
    shown = ", ".join(repr(j if names is None else names[j]) for j in first)
    return shown if len(first) == len(columns) else f"{shown} and {len(columns) - len(first)} more"


def refuse_missing(X: Floats | csr_array) -> None:
    """ValueError for samples with NaN in `partial_fit`."""
    if has_missing(X):
        raise ValueError(
            f"X: expected complete samples in partial_fit, got NaN in {first_missing(X)}; fit "
            "accepts samples with missing entries, also in blocks"
        )


def first_missing(X: Any, names: Sequence[str] | None = None) -> str:
    """Row and column of the first missing entry, for a message."""
    row, column = np.argwhere(np.isnan(X))[0].tolist()
    return f"row {row}, column {column if names is None else repr(names[column])}"
