"""Save fitted models to files, load them, and translate them to ONNX and C."""

from typing import TYPE_CHECKING

from eigenfeat._base.lazy_names import lazy_names

if TYPE_CHECKING:
    from eigenfeat.models.c_header import to_c
    from eigenfeat.models.onnx import to_onnx
    from eigenfeat.models.saving import load, save, trusted_types

# Imported when they are first asked for: the libraries below take a second or more.
_HOMES = {
    "load": "saving",
    "save": "saving",
    "trusted_types": "saving",
    "to_c": "c_header",
    "to_onnx": "onnx",
}

__all__ = ["load", "save", "to_c", "to_onnx", "trusted_types"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
