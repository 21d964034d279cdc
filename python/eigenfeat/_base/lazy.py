"""A value that is computed once, when it is first asked for, by whichever thread asks first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from eigenfeat._base.locks import ProcessLock

T = TypeVar("T")


class Lazy(Generic[T]):
    """Hold ``compute()``, called at most once; an error is raised again at each call.

    Pickles and copies carry the value if it is there, and otherwise `compute`.
    """

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute: Callable[[], T] | None = compute
        self._value: T | None = None
        self._lock = ProcessLock()

    def __call__(self) -> T:
        """Return the value, computing it if need be."""
        with self._lock():
            if self._compute is not None:
                self._value = self._compute()
                self._compute = None
            return self._value  # type: ignore[return-value]

    @property
    def is_ready(self) -> bool:
        """Whether the value has been computed."""
        return self._compute is None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock():
            return {"compute": self._compute, "value": self._value}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._compute, self._value = state["compute"], state["value"]
        self._lock = ProcessLock()
