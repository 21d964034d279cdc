"""Properties that are computed once for each object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

__all__ = ["cached_property"]

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801, its name is that of functools's
    """As `functools.cached_property` is since Python 3.12; before, it holds a lock.

    All objects of a class share that lock. A process that is forked while any thread computes the
    property has it locked for ever, and hangs when it computes the property itself. Without the
    lock, threads that come at the same time may compute the same value each.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...

    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        value = self._compute(instance)
        # The first value stays: whoever asks gets the same object. From now on Python finds it in
        # the object's own attributes, and does not come here.
        return vars(instance).setdefault(self._name, value)
