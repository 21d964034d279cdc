"""The thesis's sets as they are printed: d degrees of freedom, and a mixture as one distribution.

d counts the entries that are missing; of the others nothing varies. The package's sets are smaller
where the theorems allow it (`degrees_of`), and its quadratic set also holds for correlated
entries (`QuadraticSet`), for which the thesis's chi-square quantile is none.
"""

from __future__ import annotations

from dataclasses import replace

from eigenfeat.early.set_rules import ChebyshevSet, QuadraticSet, SetRule


class PrintedChebyshev(ChebyshevSet):
    """(5.3): ``(x - m)^T R^-1 (x - m) <= d / (1 - tau)``."""

    of_scores = False


class PrintedQuadratic(QuadraticSet):
    """(5.4): ``sum_i (x_i - m_i)^2 / R_ii`` up to the chi-square quantile of d degrees.

    A mixture has one set, about its mean and with its variances.
    """

    by_spectra = False
    any_distribution = True


SETS = {"chebyshev": PrintedChebyshev(), "quadratic": PrintedQuadratic()}


def by_the_letter(model, rule):
    """Give a fitted `ReliableClassifier` the set of this name as the thesis prints it."""
    model.fitted_ = replace(model.fitted_, rule=SetRule(SETS[rule]))
    return model
