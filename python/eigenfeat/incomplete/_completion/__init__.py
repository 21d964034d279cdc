"""Completion of missing entries by Gaussians and mixtures, and the sets that hold it."""
