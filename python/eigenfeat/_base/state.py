"""State of objects in copies, pickles and files."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

from eigenfeat._base.threads import cached_property

__all__ = ["OmitsCaches"]


class OmitsCaches:
    """Base class of objects whose copies, pickles and files leave out cached properties.

    Attributes
    ----------
    _caches : frozenset of str
        Further attributes that are left out: they are computed from others when needed.
    """

    _caches: ClassVar[frozenset[str]] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        kinds = (cached_property, functools.cached_property)
        return {
            name: value
            for name, value in vars(self).items()
            if name not in self._caches and not isinstance(getattr(type(self), name, None), kinds)
        }
