"""Callbacks of scikit-learn's, from 1.9 on, in estimators that work step by step.

Older versions have no `set_callbacks`, and then estimators here have none either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

__all__ = ["Iterative", "StoppedError", "steps_of", "with_steps"]

try:
    from sklearn import callback as _theirs
except ImportError:
    _theirs = None

_Fit = TypeVar("_Fit", bound=Callable[..., Any])


class StoppedError(Exception):
    """Raised within a search of another library's to end it: a callback has asked to stop."""


_Base: Any = object if _theirs is None else _theirs.CallbackSupportMixin


class Iterative(_Base):
    """An estimator whose fit consists of steps, which callbacks follow."""

    def _most_steps(self) -> int | None:
        """How many steps there are at most; None if that is not known."""
        most: int | None = getattr(self, "max_iter", None)
        return most

    def _step_done(self) -> bool:
        """Tell callbacks that a step is done; whether one of them asks to stop."""
        context = self.__dict__.get("_callback_fit_ctx")
        if context is None:
            return False
        try:
            step = context.subcontext(task_name="step")
        except ValueError:  # more than announced: the point after the last step is looked at, too
            return False
        step.call_on_fit_task_begin(estimator=self)
        return bool(step.call_on_fit_task_end(estimator=self))


@contextmanager
def steps_of(outer: Iterative, inner: Iterative) -> Iterator[None]:
    """Within it, the steps of an inner estimator are told of as steps of the outer one.

    The inner one's fit must be called by a method that is not decorated by `with_steps`.
    """
    context = outer.__dict__.get("_callback_fit_ctx")
    if context is None:
        yield
        return
    inner._callback_fit_ctx = context
    try:
        yield
    finally:
        del inner._callback_fit_ctx


def with_steps(fit: _Fit) -> _Fit:
    """A fit that tells callbacks when it begins and ends, also with an error."""

    @wraps(fit)
    def followed(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        asked = {"_skl_callbacks", "_parent_callback_ctx"} & self.__dict__.keys()
        if not asked:
            return fit(self, X, *arguments, **options)
        y = arguments[0] if arguments else options.get("y")
        # Before anything that an error would undo.
        context = self._init_callback_context(max_subtasks=self._most_steps())
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        found = fit(self, X, *arguments, **options)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return found

    found = followed if _theirs is None else wraps(fit)(_theirs.with_callbacks(followed))
    return cast("_Fit", found)
