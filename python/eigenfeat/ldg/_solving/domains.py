"""Samples of two domains for transfer learning, each domain in its own units.

``sample_domain`` has a number for each sample, as in the library ``skada``: positive for the
source, negative for the target. Each domain is standardised separately; columns that are constant
in either domain are left out (Parrish 2012, section 4.5.3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenfeat._base.validation import RealArray, check_vector
from eigenfeat.moments.columns import deviations

_Array = NDArray[np.float64]

_EXPECTED = "numbers above 0 (source) or below 0 (target)"


def split_domains(n: int, sample_domain: ArrayLike | None) -> NDArray[np.bool_]:
    """Return the mask (n,) of the samples of the source; `sample_domain` None means all samples.

    ValueError if a number is 0 or not an integer, or a domain has no samples.
    """
    if sample_domain is None:
        return np.ones(n, dtype=bool)
    source = domain_rows(sample_domain, n)
    for name, members in (("source", source), ("target", ~source)):
        if not members.any():
            raise ValueError(f"sample_domain: expected {_EXPECTED}, got no sample of the {name}")
    return source


def domain_rows(sample_domain: ArrayLike, n: int) -> NDArray[np.bool_]:
    """As `split_domains`, but a domain may have no samples."""
    numbers = check_vector(sample_domain, n, "sample_domain", positive=False)
    wrong = (numbers == 0) | (numbers != np.round(numbers))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_domain: expected {_EXPECTED}, got {numbers[row]:g} in row {row}")
    source: NDArray[np.bool_] = numbers > 0
    return source


def domain_units(X: RealArray, source: NDArray[np.bool_]) -> tuple[_Array, _Array]:
    """Return means and standard deviations (2, d) of the columns in the source and in the target.

    Without a target, both domains have the units of the source. Deviations are infinite for columns
    that are constant in either domain, which become 0; ValueError if there are no others.
    """
    parts = X[source], X[source if source.all() else ~source]
    means = np.array([part.mean(axis=0, dtype=np.float64) for part in parts])
    scales = np.array([deviations(part) for part in parts])
    constant = scales.min(axis=0) == 0
    if constant.all():
        raise ValueError("X: expected a column that varies in every domain, got none")
    scales[:, constant] = np.inf
    return means, scales
