"""Rows in memory or in blocks: passes over them, their weights and targets."""

from eigenfeat._base.lazy_names import lazy_names

# Imported when they are first asked for: libraries below take a second or more.
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
