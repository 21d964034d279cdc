"""Samples of two domains for transfer learning, each domain in its own units.

``sample_domain`` has a number for each sample, as in the library ``skada``: positive for the
source, negative for the target. Each domain is standardised separately; columns that are constant
in either domain are left out (Parrish 2012, section 4.5.3).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.types import Floats, Labels
from eigenfeat._base.validation import RealArray, check_unmasked
from eigenfeat.moments.columns import deviations

_EXPECTED = "numbers above 0 (source) or below 0 (target)"


def split_domains(X: Floats, y: Labels, sample_domain: ArrayLike | None) -> NDArray[np.bool_]:
    """Return the mask (n,) of the samples of the source; `sample_domain` None means all samples.

    ValueError if lengths differ, a number is 0 or not an integer, or a domain has no samples.
    """
    n = len(X)
    if len(y) != n:
        raise ValueError(f"y: expected {n} labels, one per sample, got {len(y)}")
    if sample_domain is None:
        return np.ones(n, dtype=bool)
    source = domain_rows(sample_domain, n)
    for name, members in (("source", source), ("target", ~source)):
        if not members.any():
            raise ValueError(f"sample_domain: expected {_EXPECTED}, got no sample of the {name}")
    return source


def domain_rows(sample_domain: ArrayLike, n: int) -> NDArray[np.bool_]:
    """As `split_domains`, but a domain may have no samples."""
    try:
        numbers = np.asarray(check_unmasked(sample_domain, "sample_domain"))
    except ValueError:
        numbers = np.empty((0, 0))
    if numbers.shape != (n,):
        raise ValueError(f"sample_domain: expected shape ({n},), got {numbers.shape}")
    if numbers.dtype.kind == "O":
        numbers = np.asarray(numbers.tolist())
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"sample_domain: expected {_EXPECTED}, got dtype {numbers.dtype}")
    wrong = (numbers == 0) | (numbers != np.round(numbers)) | ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_domain: expected {_EXPECTED}, got {numbers[row]} in row {row}")
    source: NDArray[np.bool_] = numbers > 0
    return source


@dataclass(frozen=True, eq=False)
class DomainScaler:
    """Means and standard deviations that standardise each domain separately.

    If all samples are of the source, both domains have its units.
    """

    means: NDArray[np.float64]  # (2, d) of the source and of the target
    scales: NDArray[np.float64]  # (2, d) infinite for columns constant in either, which become 0
    varying: NDArray[np.bool_]  # (d,) columns that vary in both domains

    @classmethod
    def learn(cls, X: RealArray, source: NDArray[np.bool_]) -> DomainScaler:
        """Return the scaler of samples X (n, d); `source` (n,) masks the samples of the source.

        A target of a single sample, or of equal samples, leaves no column, which is an error.
        """
        parts = [X[source], X[~source]] if not source.all() else [X]
        means = np.array([part.mean(axis=0, dtype=np.float64) for part in (parts[0], parts[-1])])
        scales = np.array([deviations(part) for part in (parts[0], parts[-1])])
        selected = np.min(scales, axis=0) > 0
        if not selected.any():
            raise ValueError("X: expected a column that varies in every domain, got none")
        scales[:, ~selected] = np.inf
        return cls(means, scales, selected)

    def apply(self, X: RealArray, source: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Standardise samples X (n, d); `source` (n,) masks the samples of the source."""
        rows = X.astype(np.float64)
        for domain, members in enumerate((source, ~source)):
            if members.all():
                rows -= self.means[domain]
                rows /= self.scales[domain]
            elif members.any():
                rows[members] = (rows[members] - self.means[domain]) / self.scales[domain]
        return rows
