"""The experiments of the papers on data that is at hand: ``eigenfeat reproduce``."""

from eigenfeat.reproduce.protocol import (
    Context,
    DataError,
    Method,
    NothingToRunError,
    Problem,
    Protocol,
)
from eigenfeat.reproduce.session import PROTOCOLS, reproduce

__all__ = [
    "PROTOCOLS",
    "Context",
    "DataError",
    "Method",
    "NothingToRunError",
    "Problem",
    "Protocol",
    "reproduce",
]
