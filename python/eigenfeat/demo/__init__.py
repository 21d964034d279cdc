"""Demonstrations of ``eigenfeat demo``."""
