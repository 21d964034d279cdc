"""The version that is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed

__all__ = ["version"]


def version() -> str:
    """Version of the package; "0" in a source tree that was never installed."""
    try:
        return installed("eigenfeat")
    except PackageNotFoundError:
        return "0"
