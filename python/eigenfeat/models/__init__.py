"""Fitted models in files: saved, loaded, and translated to ONNX."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eigenfeat.models.onnx import to_onnx
    from eigenfeat.models.saving import load, save, trusted_types

# Imported when they are first asked for: the libraries below take a second or more.
_HOMES = {
    "load": "saving",
    "save": "saving",
    "trusted_types": "saving",
    "to_onnx": "onnx",
}

__all__ = ["load", "save", "to_onnx", "trusted_types"]

if not TYPE_CHECKING:

    def __getattr__(name):
        from importlib import import_module

        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        return value

    def __dir__():
        return sorted({*globals(), *__all__})
