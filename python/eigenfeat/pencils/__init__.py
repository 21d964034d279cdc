"""Generalized eigenproblems of pairs of classes, from moments to directions."""
