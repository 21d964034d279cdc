"""The experiments of the papers on data that is at hand: ``python -m bench.papers``."""

from bench.papers.protocol import (
    Context,
    DataError,
    Method,
    NothingToRunError,
    Problem,
    Protocol,
)
from bench.papers.session import PROTOCOLS, reproduce

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
