"""The thesis's sets as they are printed: d degrees of freedom, and a mixture as one distribution.

d is the number of missing entries. The package's sets are smaller if the theorems allow it
(`degrees`), and its quadratic set is also valid for correlated entries (`QuadraticSet`), unlike the
thesis's chi-square quantile.
"""

from __future__ import annotations

from dataclasses import replace

from eigenfeat.early.set_rules import ChebyshevSet, ConfidenceSet, QuadraticSet, SetRule


class PrintedChebyshev(ChebyshevSet):
    """(5.3): ``(x - m)^T R^-1 (x - m) <= d / (1 - tau)``."""

    def degrees(self, rule_input):
        """Numbers (n,) of missing entries."""
        return rule_input.n_missing


class PrintedQuadratic(QuadraticSet):
    """(5.4): ``sum_i (x_i - m_i)^2 / R_ii`` up to the chi-square quantile of d degrees.

    A mixture has one set, about its mean and with its variances.
    """

    any_distribution = True
    probability = ConfidenceSet.probability


SETS = {"chebyshev": PrintedChebyshev(), "quadratic": PrintedQuadratic()}


def by_the_letter(model, rule):
    """Replace the rule of a fitted `ReliableClassifier` by the set that the thesis prints."""
    model.fitted_ = replace(model.fitted_, rule=SetRule(SETS[rule]))
    return model
