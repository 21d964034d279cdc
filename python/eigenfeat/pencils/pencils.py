"""Directions for pairs of classes, from the pencils of their second moments.

The eigensolver itself, `generalized_eigh`, is in the file ``eigh`` and public here as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base import threads
from eigenfeat._base.types import Pairs, Seed
from eigenfeat._base.validation import check_flag, check_number, check_vector, show
from eigenfeat.moments.class_moments import ClassMoments
from eigenfeat.pencils.class_matrices import (
    ClassMatrices,
    PencilOptions,
    SingularDenominatorError,
    Unions,
)
from eigenfeat.pencils.crawford import CrawfordNumber, crawford_number, eigenvalue_bounds
from eigenfeat.pencils.eigh import (
    PencilResult,
    Status,
    check_threshold,
    generalized_eigh,
    report,
    solve,
)
from eigenfeat.pencils.pair_batches import PairDirections, PairOptions, problems_of, solve_problems
from eigenfeat.pencils.pair_conditions import PairConditions, conditions_of
from eigenfeat.pencils.solution import directions_of_each
from eigenfeat.pencils.span import Span, span_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from eigenfeat.pencils.contrasts import Contrasts

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


def pair_directions(
    moments: ClassMoments,
    pairs: Pairs | Contrasts = "all",
    ridge: float | str = 0.1,
    n_directions: int | str = 10,
    threshold: float | str | None = None,
    denominator: str = "second_moment",
    solver: str = "auto",
    n_threads: int | None = None,
    *,
    constant: bool = False,
    scale: ArrayLike | None = None,
    random_state: Seed = None,
    solve_with: Callable[..., PencilResult] | None = None,
) -> PairDirections:
    r"""Directions with a large mean square for one class of a pair and a small one for the other.

    For an ordered pair (i, j), these are the leading eigenvectors of

    .. math::

        C_i v = \lambda (C_j + r_j I) v, \quad r_j = \text{ridge} \cdot \mathrm{tr}(C_j) / d,
        \quad v^T (C_j + r_j I) v = 1

    (Karampatziakis and Mineiro 2014, eq. 3), where :math:`C_c` is the second moment of class c.
    User guide: :doc:`/guide/gem`.

    Parameters
    ----------
    moments : ClassMoments
        Moments of at least two classes with weight; classes without weight are ignored.
    pairs : str, tuple, sequence of (label, label) or Contrasts
        The (numerator, denominator) pairs: a kind or a list as in `class_pairs`; "confusion", see
        `confusion_pairs`; or problems between groups of classes: "one_vs_rest", "class_tree",
        `Contrasts` or "random_groups". ``(kind, n)`` sets the number. "auto": "all" for up to 50
        classes, else "random_groups".
    ridge : float >= 0 or "auto"
        Ridge, relative to a denominator's mean eigenvalue. "auto": .03 to 1 by its spectrum.
    n_directions : int >= 1 or "auto"
        Maximum number of directions per pair. "auto": 10, or fewer with more than 300 pairs.
    threshold : float or "auto", optional
        Minimum eigenvalue; the paper advises more than 1. "auto": above what sampling noise alone
        would give.
    denominator : {"second_moment", "covariance"}
        With "covariance", both matrices are about the denominator's mean.
    solver : {"auto", "full", "subset", "krylov"}
        See `generalized_eigh`.
    n_threads : int, optional
        Number of threads; all by default.
    constant : bool
        Solve for samples (x - m, 1), where m is the mean of all samples. The constant gets no
        ridge; the returned offset is for x.
    scale : array-like of shape (d,), optional
        Positive column scales. Pairs are solved for x / scale; the returned directions are for x.
    random_state : None, int or NumPy generator
        Seed for random pairs.
    solve_with : callable, optional
        In place of ``eigenfeat.pencils.eigh.solve``.

    Returns
    -------
    PairDirections
        Directions, pair by pair; the entry of largest magnitude of each is positive.

    Raises
    ------
    SingularDenominatorError
        If a denominator is singular; the message names the class and a ridge that suffices.
    numpy.linalg.LinAlgError
        If no pair could be solved.

    Warns
    -----
    RuntimeWarning
        If some pairs did not converge, or a residual is above the tolerance.

    See Also
    --------
    eigenfeat.GEM : Features of these directions.
    eigenfeat.generalized_eigh : One pencil.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from eigenfeat import ClassMoments
    >>> from eigenfeat.pencils import pair_directions
    >>> X, y = load_digits(n_class=2, return_X_y=True)
    >>> pairs = pair_directions(ClassMoments().update(X, y), n_directions=2)
    >>> pairs.pairs.tolist(), pairs.vectors.shape
    ([[0, 1], [0, 1], [1, 0], [1, 0]], (64, 4))
    """
    if solve_with is not None and not callable(solve_with):
        raise ValueError(f"solve_with: expected None or a callable, got {show(solve_with)}")
    noise = isinstance(threshold, str) and threshold == "auto"
    labels, options = _settings(moments, denominator, ridge, constant, scale)
    options = replace(options, noise=noise)
    directions_of_each(n_directions, 1)  # an error of it comes before those of pairs
    span = span_of(moments, options.scale, about_mean=constant or denominator == "covariance")
    problems = problems_of(moments, labels, pairs, options.scale, random_state, span)
    if span is not None:
        options = _in_span(options, span)
    if problems.random_groups:
        threshold, noise = None, False
        options = replace(options, noise=False)
    pair_options = PairOptions(
        directions_of_each(n_directions, len(problems.items), problems.random_groups),
        None if noise else check_threshold(threshold),  # type: ignore[arg-type]
        solver,
        threads.resolve(n_threads),
        options,
        solve if solve_with is None else solve_with,
    )
    result = solve_problems(problems, pair_options)
    report(result.status, [f"pair {show(tuple(pair))}" for pair in problems.names.tolist()])
    if span is None:
        return result
    constants = None
    if options.constant and result.offset is not None and options.centre is not None:
        constants = result.offset + options.centre @ result.vectors
    vectors, offset = span.mapped(result.vectors, result.offset, constants)
    return replace(result, vectors=vectors, offset=offset)


def _in_span(options: PencilOptions, span: Span) -> PencilOptions:
    """What makes the matrices of the coordinates, whose columns are scaled already."""
    centre = None
    if options.constant:
        centre = _pooled_mean(span.moments, span.moments.active_classes.tolist())
    return replace(options, scale=None, centre=centre, columns=len(span.origin))


def pair_conditions(
    moments: ClassMoments,
    pairs: Pairs | Contrasts = "all",
    ridge: float | str = 0.1,
    denominator: str = "second_moment",
    *,
    constant: bool = False,
    scale: ArrayLike | None = None,
    random_state: Seed = None,
) -> PairConditions:
    """Crawford numbers of the pencils of `pair_directions` with the same arguments.

    Parameters
    ----------
    moments, pairs, ridge, denominator, constant, scale, random_state
        As in `pair_directions`. Each pair needs about ten decompositions of a matrix of the
        columns.

    Returns
    -------
    PairConditions
        Its method `bounds` estimates intervals of the eigenvalues for infinitely many samples.

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
    labels, options = _settings(moments, denominator, ridge, constant, scale)
    problems = problems_of(moments, labels, pairs, options.scale, random_state)
    unions = Unions(problems.moments, problems.labels)
    return conditions_of(ClassMatrices(unions, problems.groups, options), problems)


def _settings(
    moments: ClassMoments, denominator: str, ridge: Any, constant: bool, scale: Any
) -> tuple[npt.NDArray[Any], PencilOptions]:
    labels = _labels_with_weight(moments)
    options = _options(moments, denominator, ridge, constant, scale)
    if options.constant:
        options = replace(options, centre=_pooled_mean(moments, labels.tolist()))
    return labels, options


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
    """Mean (d,) of the samples of all classes together."""
    weights = np.array([moments.weight(c) for c in labels])
    mean: npt.NDArray[np.float64] = weights @ [moments.mean(c) for c in labels] / weights.sum()
    return mean


def _options(
    moments: ClassMoments, denominator: str, ridge: Any, constant: bool, scale: Any
) -> PencilOptions:
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
    return PencilOptions(denominator, given, bordered, scales)
