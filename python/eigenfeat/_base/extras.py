"""Libraries that only some of the package needs, and the extras that install them."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["MissingExtraError", "require"]

EXTRAS = {"lightgbm": "bench", "matplotlib": "plot"}


class MissingExtraError(ImportError):
    """A library is not installed that one of the package's extras brings."""


def require(library: str, purpose: str) -> None:
    """MissingExtraError, before any work, with the command that installs a library of `EXTRAS`."""
    try:
        missing = find_spec(library) is None
    except ValueError:  # put into sys.modules by hand, with no spec
        missing = False
    if missing:
        raise MissingExtraError(
            f"{library}: expected to be installed for {purpose}, as by "
            f'pip install "eigenfeat[{EXTRAS[library]}]"'
        )
