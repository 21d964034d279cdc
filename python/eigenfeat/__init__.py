"""Discriminative features from generalized eigenvectors of class-conditional second moments."""

import lazy_loader

# Names are imported at their first use, because SciPy and scikit-learn take a second to import.
_lazy, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    if name == "_core":  # the compiled core
        from eigenfeat._base.core import core

        return core
    return _lazy(name)
