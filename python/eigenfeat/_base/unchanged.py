"""An error leaves an estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["unchanged_on_error"]


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """Put the attributes back that `estimator` had, if what is done inside fails."""
    before = estimator.__dict__.copy()
    try:
        yield
    except (Exception, KeyboardInterrupt):
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
