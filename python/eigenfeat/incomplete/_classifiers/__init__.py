"""Classifiers by nearest neighbours, whose discriminants move with the row."""
