"""Read samples from files, save and load fitted models, and export them to ONNX and C."""

from eigenfeat._base.lazy_names import lazy_names

# Imported when they are first asked for: the libraries below take a second or more.
__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
