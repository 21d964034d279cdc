"""Directions for pairs of classes, from the pencils of their second moments.

The eigensolver itself, `generalized_eigh`, is in the room ``eigh`` and public here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.validation import check_flag, check_number, check_vector, check_whole, show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.class_matrices import ClassMatrices, Recipe, SingularDenominatorError, Unions
from eigenfeat.pencils.crawford import CrawfordNumber, crawford_number, eigenvalue_bounds
from eigenfeat.pencils.eigh import (
    PencilResult,
    Status,
    check_threshold,
    generalized_eigh,
    report,
    solve,
)
from eigenfeat.pencils.pair_conditions import PairConditions, conditions_of
from eigenfeat.pencils.pair_waves import Found, Problems, Request, problems_of, solve_problems

__all__ = [
    "CrawfordNumber",
    "PairConditions",
    "PairDirections",
    "PencilResult",
    "SingularDenominatorError",
    "Status",
    "crawford_number",
    "eigenvalue_bounds",
    "generalized_eigh",
    "pair_conditions",
    "pair_directions",
]


@dataclass(frozen=True, eq=False)
class PairDirections:
    """Directions of class pairs; F of them, of P pairs, for d features.

    Attributes
    ----------
    vectors : ndarray of shape (d, F)
        One direction a column, in the units of the rows: projections are ``X @ vectors``, plus
        ``offset`` if there is one.
    eigenvalues : ndarray of shape (F,)
        Descending within a pair: mean square of the projection over the numerator's rows, over
        that of the (regularised) denominator.
    pairs : ndarray of labels, shape (F, 2)
        Numerator and denominator class of each direction; for groups of classes, the names that
        `Contrasts` gives them.
    ranks : ndarray of int, shape (F,)
        Rank within its pair, from 0.
    residuals : ndarray of shape (F,)
        As in `PencilResult`.
    offset : ndarray of shape (F,), or None
        With ``constant=True``, what the constant column contributes; with the covariance below,
        minus the projection of the denominator's mean.
    solved_pairs : ndarray of labels, shape (P, 2)
        The pairs that were solved, whether or not they gave directions.
    status, iterations : ndarray of int, shape (P,)
        Outcome (`Status`) of each solved pair, and the work of krylov.
    solver : ndarray of str, shape (P,)
        Which solver made it.
    """

    vectors: npt.NDArray[np.float64]
    eigenvalues: npt.NDArray[np.float64]
    pairs: npt.NDArray[Any]
    ranks: npt.NDArray[np.int64]
    residuals: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64] | None
    solved_pairs: npt.NDArray[Any]
    status: npt.NDArray[np.int32]
    iterations: npt.NDArray[np.int64]
    solver: npt.NDArray[np.str_]

    def __repr__(self) -> str:
        d, n = self.vectors.shape
        return f"PairDirections({n} directions of {len(self.status)} pairs, {d} features)"


def pair_directions(
    moments: ClassMoments,
    pairs: Any = "all",
    ridge: float | str = 0.1,
    n_directions: int = 10,
    threshold: float | str | None = None,
    denominator: str = "second_moment",
    solver: str = "auto",
    n_threads: int | None = None,
    *,
    constant: bool = False,
    scale: Any = None,
    random_state: Any = None,
    solve_with: Callable[..., PencilResult] | None = None,
) -> PairDirections:
    r"""Directions along which one class of a pair is large and the other small.

    For an ordered pair (i, j) the largest eigenpairs of

    .. math::

        C_i v = \lambda (C_j + r_j I) v, \quad r_j = \text{ridge} \cdot \mathrm{tr}(C_j) / d,
        \quad v^T (C_j + r_j I) v = 1

    (Karampatziakis and Mineiro 2014, eq. 3 and Algorithm 1, lines 1-5), with one Cholesky
    factorisation a denominator class. Here :math:`C_c` is the second moment of the rows of class
    c as they are. `constant` gives every row an entry 1 and takes second moments about the mean
    of all rows; with ``denominator="covariance"`` (footnote 1) both matrices are second moments
    about the denominator's mean:

    .. math::

        E[(x - \mu_j)(x - \mu_j)^T | y = i] v = \lambda (\mathrm{Cov}_j + r_j I) v,
        \quad r_j = \text{ridge} \cdot \mathrm{tr}(\mathrm{Cov}_j) / d

    Parameters
    ----------
    moments : ClassMoments
        Of at least two classes with weight; classes without take no part.
    pairs : str, tuple, sequence of (label, label) or Contrasts
        Which pairs (numerator, denominator): what `class_pairs` takes, with ``("random", n)`` and
        ``("stratified", n)`` for so many; "confusion" or ``("confusion", n)``, see
        `confusion_pairs`; or problems between groups of classes: "one_vs_rest", "class_tree", see
        the functions of these names, or `Contrasts`.
    ridge : float >= 0 or "auto"
        Ridge, relative to a denominator's mean eigenvalue. Where that is 0, as for a class of zeros
        or the covariance of one row, the mean over all classes serves instead. "auto": for each
        denominator the smallest, of .03 to 1, with which sampling noise alone would give no
        eigenvalue above 3, by its spectrum and its number of rows (the sum of their weights).
    n_directions : int >= 1
        At most so many directions a pair, and no more than there are dimensions.
    threshold : float or "auto", optional
        Only directions with eigenvalues of at least that; the paper advises more than 1. "auto":
        only those a fifth above what two classes of one distribution would be expected to give,
        with these numbers of rows, this spectrum and this ridge; an estimate for Gaussian rows.
    denominator : {"second_moment", "covariance"}
        Matrix below; covariance is the paper's footnote 1. Its trace is the one that scales the
        ridge. Projections then are ``v^T (x - mu_j)``: two classes of the same rows have no
        eigenvalue above 1, wherever the others are. Each pair has a numerator of its own, which
        takes more time to form than class matrices that pairs share.
    solver : {"auto", "full", "subset", "krylov"}
        See `generalized_eigh`.
    n_threads : int, optional
        Threads; all by default.
    constant : bool
        Solve for rows (x - m, 1), with m the mean of all rows: with the second moment of these,
        ``[[C, mu], [mu^T, 1]]``, each direction may cancel a class's mean, and neither it nor
        what the ridge is a multiple of depends on where the origin is. The constant gets no ridge;
        the offset returned is for x. It changes nothing with ``denominator="covariance"``, where
        the offset is ``-v^T mu_j``.
    scale : array-like of shape (d,), optional
        Positive column scales: solved for x / scale; the directions returned are for x.
    random_state : None, int or NumPy generator
        For pairs drawn at random.
    solve_with : callable, optional
        What solves many pencils in place of ``eigenfeat.pencils.eigh.solve``, with its arguments
        and its result: as `eigenfeat.distributed` spreads them over workers.

    Returns
    -------
    PairDirections
        Directions pair by pair. Signs are such that in the units solved for, the entry of largest
        magnitude (the constant's counts) is positive.

    Raises
    ------
    SingularDenominatorError
        If a denominator is singular to working precision. Names the class and the smallest of
        1, 2, 5, 10, ... times a power of ten that is enough as ridge.
    ValueError
        If there are fewer than two classes with weight, or an argument is out of range.
    numpy.linalg.LinAlgError
        If no pair at all could be solved.

    Warns
    -----
    RuntimeWarning
        If some pairs did not converge, or a residual is above the tolerance.
    """
    if solve_with is not None and not callable(solve_with):
        raise ValueError(f"solve_with: expected None or a callable, got {show(solve_with)}")
    noise = isinstance(threshold, str) and threshold == "auto"
    labels, recipe = _settings(moments, denominator, ridge, constant, scale)
    recipe = replace(recipe, noise=noise)
    count = check_whole(n_directions, "n_directions", at_least=1)
    request = Request(
        count,
        None if noise else check_threshold(threshold),  # type: ignore[arg-type]
        solver,
        threads.resolve(n_threads),
        recipe,
        solve if solve_with is None else solve_with,
    )
    problems = problems_of(moments, labels, pairs, recipe.scale, random_state)
    found = solve_problems(moments, problems, request)
    report(found.status, [f"pair {show(tuple(pair))}" for pair in problems.names.tolist()])
    return _flattened(found, problems, recipe)


def pair_conditions(
    moments: ClassMoments,
    pairs: Any = "all",
    ridge: float | str = 0.1,
    denominator: str = "second_moment",
    *,
    constant: bool = False,
    scale: Any = None,
    random_state: Any = None,
) -> PairConditions:
    """Crawford numbers of the pencils that `pair_directions` solves with the same arguments.

    Parameters
    ----------
    moments, pairs, ridge, denominator, constant, scale, random_state
        As in `pair_directions`. Some ten decompositions of a matrix of the columns are needed for
        each pair.

    Returns
    -------
    PairConditions
        With `bounds`, which says where eigenvalues may be with infinitely many rows.

    Raises
    ------
    ValueError
        As `pair_directions`.

    References
    ----------
    N. Karampatziakis and P. Mineiro (ICML 2014), section 2.2. V. Koltchinskii and K. Lounici,
    "Concentration inequalities and moment bounds for sample covariance operators", Bernoulli 23,
    2017.
    """
    labels, recipe = _settings(moments, denominator, ridge, constant, scale)
    problems = problems_of(moments, labels, pairs, recipe.scale, random_state)
    unions = Unions(moments, problems.labels)
    return conditions_of(ClassMatrices(unions, problems.groups, recipe), problems)


def _settings(
    moments: ClassMoments, denominator: str, ridge: Any, constant: bool, scale: Any
) -> tuple[npt.NDArray[Any], Recipe]:
    labels = _labels_with_weight(moments)
    recipe = _recipe(moments, denominator, ridge, constant, scale)
    if recipe.constant:
        recipe = replace(recipe, centre=_pooled_mean(moments, labels.tolist()))
    return labels, recipe


def _labels_with_weight(moments: ClassMoments) -> npt.NDArray[Any]:
    if not isinstance(moments, ClassMoments):
        raise ValueError(f"moments: expected ClassMoments, got {show(moments)}")
    labels = moments.active_classes
    if len(labels) < 2:
        raise ValueError(
            "moments: expected at least 2 classes with rows of positive weight, "
            f"got {show(labels.tolist())}"
        )
    return labels


def _pooled_mean(moments: ClassMoments, labels: list[Any]) -> npt.NDArray[np.float64]:
    """Mean (d,) of the rows of all classes together."""
    weights = np.array([moments.weight(c) for c in labels])
    mean: npt.NDArray[np.float64] = weights @ [moments.mean(c) for c in labels] / weights.sum()
    return mean


def _recipe(
    moments: ClassMoments, denominator: str, ridge: Any, constant: bool, scale: Any
) -> Recipe:
    if not isinstance(denominator, str) or denominator not in ("second_moment", "covariance"):
        raise ValueError(
            f"denominator: expected 'second_moment' or 'covariance', got {show(denominator)}"
        )
    scales = None
    if scale is not None:
        scales = check_vector(scale, moments.n_features_in_, "scale", positive=True)
    bordered = check_flag(constant, "constant") and denominator == "second_moment"
    auto = isinstance(ridge, str) and ridge == "auto"
    given = None if auto else check_number(ridge, "ridge", at_least=0.0)
    return Recipe(denominator, given, bordered, scales)


def _flattened(found: Found, problems: Problems, recipe: Recipe) -> PairDirections:
    """Pair by pair, only what was found, in the units of the rows."""
    vectors, offset = found.vectors, found.offset
    if recipe.scale is not None:
        vectors /= recipe.scale[:, None]
    if offset is not None and recipe.centre is not None:
        offset = offset - recipe.centre @ vectors
    return PairDirections(
        vectors=vectors,
        eigenvalues=found.eigenvalues,
        pairs=problems.names[found.problems],
        ranks=found.ranks,
        residuals=found.residuals,
        offset=offset,
        solved_pairs=problems.names,
        status=found.status,
        iterations=found.iterations,
        solver=found.solver,
    )
