"""Libraries that only some of the package needs, and the extras that install them."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["MissingExtraError", "installed", "require"]

EXTRAS = {"lightgbm": "bench", "matplotlib": "plot"}


class MissingExtraError(ImportError):
    """A library is not installed that one of the package's extras brings."""


def installed(library: str) -> bool:
    """Whether a library can be imported, which is not done here."""
    try:
        return find_spec(library) is not None
    except ValueError:  # put into sys.modules by hand, with no spec
        return True


def require(library: str, purpose: str) -> None:
    """Refuse, before any work, what needs a library that is not installed.

    Parameters
    ----------
    library : {"lightgbm", "matplotlib"}
    purpose : str
        What it is needed for.

    Raises
    ------
    MissingExtraError
        With the command that installs it.
    """
    if not installed(library):
        raise MissingExtraError(
            f"{library}: expected to be installed for {purpose}, as by "
            f'pip install "eigenfeat[{EXTRAS[library]}]"'
        )
