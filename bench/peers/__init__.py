"""Rivals: how each task is done today with NumPy and SciPy, as well as their users could."""
