"""Expansion of projections into features: checked arrays in, one call of the compiled core out.

The room of Algorithm 1, lines 6-7 (Karampatziakis and Mineiro, "Discriminative Features via
Generalized Eigenvectors", ICML 2014): ``psi(x) = max(0, s v^T x)^(a/2)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base import threads
from eigenfeat._base.core import core
from eigenfeat._base.validation import CsrRows, check_rows, real_array, show

WAVES = ("half_wave", "shifted", "polynomial", "none")


class WideColumns(Protocol):
    """Directions (d, F) of a huge d that are not kept as an array, but can project rows."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def project(
        self, X: Any, offset: NDArray[Any] | None = None, n_threads: int | None = None
    ) -> NDArray[Any]:
        """Return ``X @ directions + offset`` (n, F)."""

    def __getitem__(self, key: tuple[slice, Any]) -> WideColumns:
        """Some of the directions."""


def is_wide_columns(directions: Any) -> TypeGuard[WideColumns]:
    """Whether directions are not an array, but project rows themselves."""
    return hasattr(directions, "project")


def check_powers(powers: object) -> list[int]:
    """Return `powers` as a list of distinct integers out of 1, 2, 3.

    Raises
    ------
    ValueError
        If it is empty, repeats itself, or holds anything else.
    """
    try:
        values = list(powers)  # type: ignore[call-overload]
        as_integers = [int(a) for a in values]
    except (TypeError, ValueError):
        values, as_integers = [], [0]
    distinct = len(set(as_integers)) == len(as_integers) > 0
    if not distinct or as_integers != values or not set(as_integers) <= {1, 2, 3}:
        raise ValueError(f"powers: expected distinct numbers out of 1, 2, 3, got {powers!r}")
    return as_integers


def expand(
    X: Any,
    directions: NDArray[Any],
    offset: NDArray[Any] | None = None,
    *,
    wave: str = "half_wave",
    powers: Sequence[int] = (1, 2, 3),
    include_input: bool = False,
    n_threads: int | None = None,
) -> NDArray[Any]:
    """Project rows and expand the projections, fused and by tiles.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Finite rows; float32 stays float32, all else becomes float64.
    directions : (d, F) array
    offset : (F,) array, optional
        Added to the projections ``X @ directions``.
    wave : {"half_wave", "shifted", "polynomial", "none"}
        ``max(0, s p)^(a/2)``, ``(sqrt(1 + max(0, s p)) - 1)^a``, ``p^a``, or the projections
        themselves.
    powers : distinct integers out of 1, 2, 3
        The exponents `a`.
    include_input : bool
        Whether the columns of `X` come first.
    n_threads : int, optional
        All that OpenMP gives by default.

    Returns
    -------
    (n, columns) array, float32 or float64 as the rows
        ``[X | for s in (+, -): for a in powers: F columns]``; "polynomial" has no signs.

    Raises
    ------
    ValueError
        If shapes do not fit, or a parameter is out of range.
    """
    rows = check_rows(X)
    matrix = np.ascontiguousarray(directions, dtype=rows.dtype)
    shift = None if offset is None else real_array(offset, "offset", rows.dtype)
    shift = None if shift is None else np.ascontiguousarray(shift)
    if not isinstance(wave, str):
        raise ValueError(f"wave: expected one of {', '.join(WAVES)}, got {show(wave)}")
    if not isinstance(include_input, (bool, np.bool_)):
        raise ValueError(f"include_input: expected True or False, got {show(include_input)}")
    options = (wave, check_powers(powers), bool(include_input), threads.resolve(n_threads))
    if isinstance(rows, CsrRows):
        parts = (rows.data, rows.indices, rows.indptr, rows.n_columns)
        return core.expand_csr(*parts, matrix, shift, *options)
    return core.expand_dense(rows, matrix, shift, *options)


def column_suffixes(wave: str, powers: Sequence[int]) -> list[str]:
    """Return what an expansion appends to a direction's name, in the order of its columns."""
    if wave == "none":
        return [""]
    if wave == "polynomial":
        return [f"_pow{a}" for a in powers]
    return [f"_{sign}_pow{a}" for sign in ("pos", "neg") for a in powers]
