"""Plots of fitted models and results, as displays and as functions that return figure or axes."""

from typing import TYPE_CHECKING

from eigenfeat._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from eigenfeat.plotting.calibration import EarlyCalibrationDisplay
    from eigenfeat.plotting.directions import leading_pairs
    from eigenfeat.plotting.displays import EmbeddingDisplay, ReliabilityDisplay
    from eigenfeat.plotting.early import plot_calibration, plot_decision, plot_early_curves
    from eigenfeat.plotting.early_curves import EarlyCurvesDisplay
    from eigenfeat.plotting.early_decision import EarlyDecisionDisplay
    from eigenfeat.plotting.filters import FiltersDisplay
    from eigenfeat.plotting.gem import (
        plot_errors,
        plot_filters,
        plot_projections,
        plot_spectrum,
    )
    from eigenfeat.plotting.ldg import (
        plot_accuracies,
        plot_accuracy,
        plot_comparison,
        plot_embedding,
        plot_sparsity,
    )
    from eigenfeat.plotting.projections import ProjectionsDisplay
    from eigenfeat.plotting.spectrum import SpectrumDisplay

# Imported when they are first asked for: the libraries below take a second or more.
_HOMES = {
    "EmbeddingDisplay": "displays",
    "ReliabilityDisplay": "displays",
    "EarlyCalibrationDisplay": "calibration",
    "EarlyCurvesDisplay": "early_curves",
    "EarlyDecisionDisplay": "early_decision",
    "FiltersDisplay": "filters",
    "ProjectionsDisplay": "projections",
    "SpectrumDisplay": "spectrum",
    "leading_pairs": "directions",
    "plot_errors": "gem",
    "plot_filters": "gem",
    "plot_projections": "gem",
    "plot_spectrum": "gem",
    "plot_calibration": "early",
    "plot_decision": "early",
    "plot_early_curves": "early",
    "plot_accuracies": "ldg",
    "plot_accuracy": "ldg",
    "plot_comparison": "ldg",
    "plot_embedding": "ldg",
    "plot_sparsity": "ldg",
}

__all__ = [
    "EarlyCalibrationDisplay",
    "EarlyCurvesDisplay",
    "EarlyDecisionDisplay",
    "EmbeddingDisplay",
    "FiltersDisplay",
    "ProjectionsDisplay",
    "ReliabilityDisplay",
    "SpectrumDisplay",
    "leading_pairs",
    "plot_accuracies",
    "plot_accuracy",
    "plot_calibration",
    "plot_comparison",
    "plot_decision",
    "plot_early_curves",
    "plot_embedding",
    "plot_errors",
    "plot_filters",
    "plot_projections",
    "plot_sparsity",
    "plot_spectrum",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
