"""Directions of Rayleigh quotients: discriminants, oriented PCA, vanishing components."""
