"""What all estimators share: checked input, weights, messages, callbacks, no change on an error.

Callbacks are scikit-learn's, from 1.9 on. Older versions have no `set_callbacks`, and then
estimators here have none either.
"""

from __future__ import annotations

import inspect
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import sklearn.base
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import validation
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, column_or_1d

from eigenfeat._base.labels import plain_labels
from eigenfeat._base.types import Labels
from eigenfeat._base.validation import (
    FLOATS,
    check_some_weight,
    check_unmasked,
    is_table,
    naming_text,
    plain_rows,
    refuse_complex,
    usual_weights,
)
from eigenfeat.expansion.features import take_rows
from eigenfeat.samples.blocks import (
    ArrayBlocks,
    RowBlocks,
    as_blocks,
    check_no_list,
    is_blocks,
    is_mapped,
)
from eigenfeat.samples.columns import TableColumns, has_categories

if TYPE_CHECKING:
    from collections.abc import Hashable

    from scipy.sparse import csr_array

    from eigenfeat._base.types import Floats, Targets, Weights
    from eigenfeat.expansion.features import ExpandedRows
    from eigenfeat.samples.completion import GaussianRows

__all__ = [
    "LOGGER",
    "WIDE",
    "BaseEstimator",
    "Iterative",
    "StoppedError",
    "Verbose",
    "check_array",
    "class_weighted",
    "given_blocks",
    "is_valid",
    "is_wide",
    "keep_columns",
    "keep_completion",
    "progress_bar",
    "row_weights",
    "steps_of",
    "unchanged_on_error",
    "validate_columns",
    "validate_data",
    "weighted_rows",
    "with_steps",
]

# Address of the documentation, with a slash at its end. While it is empty there is no link.
DOCUMENTATION_URL = ""
FAMILIES = ("ldg", "early", "maxmargin", "distributed")  # whose pages list all by family
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
        raise AttributeError(
            "_doc_link_template: set eigenfeat.samples.estimator.DOCUMENTATION_URL"
        )

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


def keep_completion(estimator: BaseEstimator, gaussian: GaussianRows | None) -> None:
    """Set `completion_`, which an estimator has only if the rows of `fit` had missing entries."""
    estimator.__dict__.pop("completion_", None)
    if gaussian is not None:
        estimator.completion_ = gaussian


def keep_columns(estimator: Any, blocks: RowBlocks | None, n_features: int) -> None:
    """Keep number, names and encoder of the columns of blocks that an estimator was fitted to."""
    for name in ("feature_names_in_", "file_layout_", "columns_"):
        estimator.__dict__.pop(name, None)
    estimator.n_features_in_ = n_features
    if blocks is None:
        return
    if blocks.encoder is not None:
        estimator.columns_ = blocks.encoder
        estimator.n_features_in_ = len(blocks.encoder.names_)
    if blocks.column_names is not None:
        estimator.feature_names_in_ = np.array(blocks.column_names, dtype=object)
    if blocks.layout is not None:
        estimator.file_layout_ = blocks.layout


def validate_data(
    estimator: sklearn.base.BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """As ``sklearn.utils.validation.validate_data``, for rows and labels of any origin.

    Masked entries are missing where NaN is allowed, and refused elsewhere; so are complex numbers,
    dates, sparse matrices that are not well formed, and missing labels. Messages name the column
    of a data frame, and the row.
    """
    to_predict = isinstance(y, str) and options.get("reset") is False
    plain = to_predict and options.keys() <= _PLAIN_OPTIONS
    if plain and is_valid(estimator, X, options.get("dtype", "numeric")):
        return X
    X = plain_rows(X, missing=options.get("ensure_all_finite", True) is not True)
    y = plain_labels(y, what="target" if options.get("y_numeric") else "label")
    with naming_text(X):
        if options.get("reset", True):
            estimator.__dict__.pop("file_layout_", None)  # of an earlier fit
        return validation.validate_data(estimator, X, y, **options)


def is_valid(estimator: sklearn.base.BaseEstimator, X: Any, dtypes: Any = FLOATS) -> bool:
    """Whether samples to predict or transform are finite floats of a plain array, as wanted.

    Of such samples scikit-learn's checks, which take longer than the prediction of a few, change
    nothing. False may also mean that the sum of their squares is not finite.
    """
    fitted = estimator.__dict__
    return (
        type(X) is np.ndarray
        and X.dtype in _PLAIN_TYPES
        and (X.dtype.type in dtypes if isinstance(dtypes, list) else X.dtype.type is dtypes)
        and X.ndim == 2
        and fitted.get("n_features_in_") == X.shape[1]
        and len(X) > 0
        and X.flags.c_contiguous
        and "feature_names_in_" not in fitted
        and "columns_" not in fitted
        and math.isfinite(np.vdot(X, X))
    )


_PLAIN_TYPES = frozenset(np.dtype(kind) for kind in FLOATS)
_PLAIN_OPTIONS = {"reset", "dtype", "order", "accept_sparse", "ensure_all_finite"}


def check_array(X: Any, **options: Any) -> Any:
    """As ``sklearn.utils.validation.check_array``, likewise."""
    name = options.get("input_name") or "X"
    X = plain_rows(X, name, missing=options.get("ensure_all_finite", True) is not True)
    with naming_text(X):
        return validation.check_array(X, **options)


def given_blocks(
    X: object,
    y: Targets,
    sample_weight: Weights = None,
    *,
    estimator: Any,
    labelled: bool = True,
) -> RowBlocks | None:
    """Rows as blocks if they came so, or are in a memory-mapped array; else None.

    They are as `estimator`, unless None, reads them in its fit. An array without labels is left to
    it where there have to be some.

    Raises
    ------
    ValueError
        If labels or weights are given with blocks, which contain them, or X is a list of blocks.
    """
    check_no_list(X)
    if is_blocks(X):
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None:
                raise ValueError(
                    f"{name}: expected None with blocks of rows, which bring it themselves, got "
                    f"{type(values).__name__}"
                )
        blocks = as_blocks(X)
        return blocks if estimator is None else blocks.prepared_for(estimator, fitted=False)
    if not is_mapped(X) or (labelled and y is None):
        return None
    if y is not None:
        y = plain_labels(y)
        check_consistent_length(X, y)
        y = column_or_1d(y, warn=True)
    if sample_weight is not None:
        sample_weight = row_weights(sample_weight, len(X))
    return ArrayBlocks(X, y, sample_weight)


def validate_columns(
    estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool, **options: Any
) -> Any:
    """As `validate_data`, of an estimator that takes tables with categories, which become numbers.

    With ``categorical_features="from_dtype"``, a fit to a table with columns that are no numbers
    leaves their encoder in `columns_`.
    """
    if reset:
        estimator.__dict__.pop("columns_", None)
        if estimator.categorical_features is not None and is_table(X) and has_categories(X):
            estimator.columns_ = TableColumns().fit(X)
    if not hasattr(estimator, "columns_"):
        return validate_data(estimator, X, y, reset=reset, **options)
    if not is_table(X):
        raise ValueError(
            "X: expected a table with the columns of the fit, some of which are categories, "
            f"got {type(X).__name__}"
        )
    validation.validate_data(estimator, X, reset=reset, skip_check_array=True)
    encoded = estimator.columns_.transform(X)
    if isinstance(y, str):
        return validation.check_array(encoded, **options)
    what = "target" if options.get("y_numeric") else "label"
    return validation.check_X_y(encoded, plain_labels(y, what=what), **options)


WIDE = 20_000  # features beyond which sparse or memory-mapped rows are taken as they are


def is_wide(X: object, solver: str) -> bool:
    """Whether rows, checked or not, are to be solved without matrices of d x d."""
    if not isinstance(solver, str):  # an error of the parameter's own, later
        return False
    shape: Any = getattr(X, "shape", ())
    if solver == "randomized" or len(shape) != 2:
        return solver == "randomized"
    on_disk = isinstance(X, np.memmap) or isinstance(getattr(X, "base", None), np.memmap)
    return solver == "auto" and shape[1] > WIDE and (sparse.issparse(X) or on_disk)


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


# ---- messages ------------------------------------------------------------------------------------


LOGGER = logging.getLogger("eigenfeat")
LOGGER.addHandler(logging.NullHandler())  # silent until a program asks for messages


class Verbose:
    """An estimator that says how far it is: on stderr with `verbose`, and to the logger."""

    verbose: Any

    def _log(self, text: str, started: float | None = None) -> None:
        """Tell a line, with the seconds since `started`, of `time.perf_counter`, if given."""
        took = "" if started is None else f" ({time.perf_counter() - started:.1f} s)"
        LOGGER.info("%s: %s%s", type(self).__name__, text, took)
        if self.verbose:
            print(f"[{type(self).__name__}] {text}{took}", file=sys.stderr, flush=True)


@contextmanager
def progress_bar(total: int, name: str, verbose: Any) -> Iterator[Callable[[str, int], None]]:
    """A function of a text and a number of steps that are done, which moves a bar on stderr.

    Without `verbose` the text goes to the logger.
    """
    if not verbose:
        yield lambda text, steps: LOGGER.info("%s: %s", name, text)
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        task = progress.add_task(name, total=total)
        yield lambda text, steps: progress.update(task, advance=steps, description=text)


# ---- sample weights ------------------------------------------------------------------------------


_Rows = TypeVar("_Rows", bound="Floats | csr_array | ExpandedRows | NDArray[np.intp]")
_Labels = TypeVar("_Labels", bound="Targets")
# Newer scikit-learn refuses weights that are all 0 in words of its own.
_ALLOW = "allow_all_zero_weights"
_ZEROS: dict[str, Any] = (
    {_ALLOW: True} if _ALLOW in inspect.signature(_check_sample_weight).parameters else {}
)


def row_weights(sample_weight: ArrayLike | None, n: int) -> NDArray[np.float64]:
    """Weights (n,) of rows, checked and of a usual size, see `usual_weights`; ones for None.

    ValueError if weights are negative, not finite, too few or too many, or all 0.
    """
    given = check_unmasked(sample_weight, "sample_weight")
    refuse_complex(getattr(given, "dtype", None), "sample_weight")
    result: NDArray[np.float64] = _check_sample_weight(
        given,
        np.empty((n, 0)),
        dtype=np.float64,
        ensure_non_negative=True,
        **_ZEROS,
    )
    check_some_weight(not len(result) or bool(result.any()))
    return usual_weights(result)


def weighted_rows(
    X: _Rows, y: _Labels, sample_weight: ArrayLike | None
) -> tuple[_Rows, _Labels, NDArray[np.float64] | None]:
    """Check weights and leave out the rows that have none; no weights if none are given.

    ValueError if weights are negative, not finite, too few or too many, or none is positive.
    """
    if sample_weight is None:
        return X, y, None
    weight = row_weights(sample_weight, X.shape[0])
    positive = weight > 0
    if positive.all():
        return X, y, weight
    some = cast("_Rows", take_rows(X, positive))
    return some, cast("_Labels", None if y is None else np.asarray(y)[positive]), weight[positive]


def class_weighted(
    class_weight: dict[Hashable, float] | str | None, y: Labels, weight: NDArray[np.float64] | None
) -> NDArray[np.float64] | None:
    """Weights (n,) of rows times those of their classes; as they are where these are None.

    A dict has factors by label, 1 for those that are not there. "balanced" stands for
    ``W / (k W_c)``, with W the weight of all rows and W_c that of class c's. ValueError if a factor
    is not positive and finite, or there are no rows of a label.
    """
    if class_weight is None:
        return weight
    classes, codes = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str):
        sums = np.bincount(codes, weight)
        factors = sums.sum() / (len(classes) * sums)
    else:
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(f"class_weight: expected labels of y, got {unknown[0]!r}")
        factors = compute_class_weight(class_weight, classes=classes, y=y)
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError(f"class_weight: expected positive weights, got {class_weight!r}")
    result = factors[codes]
    with np.errstate(over="ignore", under="ignore"):
        product = result if weight is None else result * weight
    if not (np.isfinite(product) & (product > 0)).all():
        raise ValueError(
            "class_weight: expected factors whose products with sample_weight fit float64, got "
            f"{class_weight!r}"
        )
    return usual_weights(product)
