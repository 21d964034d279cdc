"""State of objects in copies, pickles and files."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

__all__ = ["OmitsCaches"]


class OmitsCaches:
    """Base class of objects whose copies, pickles and files leave out cached properties."""

    # Further attributes that are left out; they are computed again when needed.
    _caches: ClassVar[frozenset[str]] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        cls = type(self)
        return {
            name: value
            for name, value in vars(self).items()
            if name not in self._caches
            and not isinstance(getattr(cls, name, None), cached_property)
        }
