"""Plots of fitted models and results; each function returns its figure or axes."""

from typing import TYPE_CHECKING

from eigenfeat._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from eigenfeat.plotting.displays import EmbeddingDisplay, ReliabilityDisplay
    from eigenfeat.plotting.early import plot_calibration, plot_decision, plot_early_curves
    from eigenfeat.plotting.gem import (
        leading_pairs,
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

# Imported when they are first asked for: the libraries below take a second or more.
_HOMES = {
    "EmbeddingDisplay": "displays",
    "ReliabilityDisplay": "displays",
    "leading_pairs": "gem",
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
    "EmbeddingDisplay",
    "ReliabilityDisplay",
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
