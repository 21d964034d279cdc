"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

from eigenfeat._base.lazy_names import lazy_names

# What is public is imported when it is first asked for: libraries below take a second or more.
_lazy, __dir__, __all__ = lazy_names(__name__, __file__)


def __getattr__(name):
    if name == "_core":  # before all that needs it
        from eigenfeat._base.core import core

        return core
    return _lazy(name)
