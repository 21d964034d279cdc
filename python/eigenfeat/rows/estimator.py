"""What all estimators share: checked input, callbacks, and no change where a fit fails.

Callbacks are scikit-learn's, from 1.9 on. Older versions have no `set_callbacks`, and then
estimators here have none either.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np
import sklearn.base
from sklearn.utils import validation

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.validation import FLOATS, naming_text, plain_rows

__all__ = [
    "BaseEstimator",
    "Iterative",
    "StoppedError",
    "check_array",
    "steps_of",
    "unchanged_on_error",
    "validate_data",
    "with_steps",
]

# Address of the documentation, with a slash at its end. While it is empty there is no link.
DOCUMENTATION_URL = ""
FAMILIES = ("ldg", "incomplete", "maxmargin", "distributed")  # whose pages list all by family
PAGE = "api/generated/{estimator_module}.{estimator_name}.html"
try:
    from sklearn import callback as _theirs
except ImportError:
    _theirs = None
_Fit = TypeVar("_Fit", bound=Callable[..., Any])
_Base: Any = object if _theirs is None else _theirs.CallbackSupportMixin


class BaseEstimator(sklearn.base.BaseEstimator):
    """scikit-learn's, whose HTML representation links to the page of the estimator in our site."""

    _doc_link_module = "eigenfeat"

    @property
    def _doc_link_template(self) -> str:
        return DOCUMENTATION_URL + PAGE if DOCUMENTATION_URL else ""

    @_doc_link_template.setter
    def _doc_link_template(self, value: str) -> None:
        raise AttributeError("_doc_link_template: set eigenfeat.rows.estimator.DOCUMENTATION_URL")

    def _doc_link_url_param_generator(self) -> dict[str, Any]:
        """The module and the name under which the API's pages list the class."""
        name, folder = type(self).__name__, type(self).__module__.split(".")[1]
        front = folder not in FAMILIES and name in sys.modules["eigenfeat"].__all__
        module = "eigenfeat" if front else f"eigenfeat.{folder}"
        return {"estimator_module": module, "estimator_name": name}


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


def validate_data(
    estimator: sklearn.base.BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """As ``sklearn.utils.validation.validate_data``, for rows and labels of any origin.

    Masked entries are missing where NaN is allowed, and refused elsewhere; so are complex numbers,
    dates, sparse matrices that are not well formed, and missing labels. Messages name the column
    of a data frame, and the row.
    """
    if isinstance(y, str) and _is_valid(estimator, X, options):
        return X
    X = plain_rows(X, missing=options.get("ensure_all_finite", True) is not True)
    y = plain_labels(y, what="target" if options.get("y_numeric") else "label")
    with naming_text(X):
        if options.get("reset", True):
            estimator.__dict__.pop("file_layout_", None)  # of an earlier fit
        return validation.validate_data(estimator, X, y, **options)


def _is_valid(estimator: sklearn.base.BaseEstimator, X: Any, options: dict[str, Any]) -> bool:
    """Whether samples to predict or transform are finite floats of a plain array, as wanted.

    Of such samples scikit-learn's checks, which take longer than the prediction of a few, change
    nothing.
    """
    wanted = options.get("dtype", "numeric")
    wanted = wanted if isinstance(wanted, list) else [wanted]
    return (
        type(X) is np.ndarray
        and options.get("reset") is False
        and options.keys() <= _PLAIN_OPTIONS
        and X.ndim == 2
        and len(X) > 0
        and X.flags.c_contiguous
        and any(kind in wanted for kind in FLOATS if X.dtype == kind)
        and estimator.__dict__.get("n_features_in_") == X.shape[1]
        and "feature_names_in_" not in estimator.__dict__
        and bool(np.isfinite(X).all())
    )


_PLAIN_OPTIONS = {"reset", "dtype", "order", "accept_sparse", "ensure_all_finite"}


def check_array(X: Any, **options: Any) -> Any:
    """As ``sklearn.utils.validation.check_array``, likewise."""
    name = options.get("input_name") or "X"
    X = plain_rows(X, name, missing=options.get("ensure_all_finite", True) is not True)
    with naming_text(X):
        return validation.check_array(X, **options)


class StoppedError(Exception):
    """Raised within a search of another library's to end it: a callback has asked to stop."""


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
        result = fit(self, X, *arguments, **options)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return result

    result = followed if _theirs is None else wraps(fit)(_theirs.with_callbacks(followed))
    return cast("_Fit", result)
