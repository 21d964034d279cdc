"""Solvers of `RandomizedGEM`: products of samples, denominators, Krylov spaces, directions."""
