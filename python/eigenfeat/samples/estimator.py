"""Base classes and functions of all estimators: samples of a fit, messages, callbacks.

Callbacks need scikit-learn 1.9 or later; with older versions estimators have no `set_callbacks`.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import sklearn.base
from sklearn.utils import validation
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from eigenfeat._base.labels import check_two_labels, plain_labels
from eigenfeat._base.threads import one_blas_thread
from eigenfeat._base.validation import (
    FLOATS,
    column_names,
    has_missing,
    is_table,
    naming_text,
    plain_rows,
    show_items,
)
from eigenfeat.expansion.features import ExpandedFeatures
from eigenfeat.samples.block_samples import BlockSamples, LabelledSamples, scan_blocks
from eigenfeat.samples.blocks import (
    SMALL_TYPES,
    ArrayBlocks,
    RowBlocks,
    as_blocks,
    check_no_list,
    is_blocks,
    is_collection,
    stays_on_disk,
)
from eigenfeat.samples.columns import has_categories, warn_identifiers
from eigenfeat.samples.completion import ALLOW_NAN, first_missing
from eigenfeat.samples.dask_blocks import DaskBlocks
from eigenfeat.samples.labelled import (
    Block,
    MemorySamples,
    class_weighted,
    row_weights,
    weighted_rows,
    weights_of_mean_1,
)
from eigenfeat.samples.target_statistics import encoded_table

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from eigenfeat._base.types import ClassWeight, Floats, Targets, Weights
    from eigenfeat.samples.completion import GaussianImputer

__all__ = [
    "LOGGER",
    "BaseEstimator",
    "Iterative",
    "Verbose",
    "check_array",
    "complete",
    "encoded_names",
    "given_blocks",
    "input_options",
    "is_valid",
    "keep_columns",
    "keep_completion",
    "keep_source",
    "prepare",
    "read_blocks",
    "steps_of",
    "unchanged_on_error",
    "validate_columns",
    "validate_data",
    "with_steps",
    "without_names",
]

DOCUMENTATION_URL = ""  # with a slash at its end; if empty, representations have no link
# Folders whose names are part of the addresses of API pages.
FAMILIES = ("ldg", "early", "maxmargin", "embedding")
PAGE = "api/generated/{estimator_module}.{estimator_name}.html"
try:
    from sklearn import callback as _sklearn_callback
except ImportError:
    _sklearn_callback = None
# Samples of these types, checked with no other options, may need no checks; see `is_valid`.
_PLAIN_TYPES = frozenset(np.dtype(kind) for kind in FLOATS)
_PLAIN_OPTIONS = {"reset", "dtype", "order", "accept_sparse", "ensure_all_finite"}
_Fit = TypeVar("_Fit", bound=Callable[..., Any])
_Base: Any = object if _sklearn_callback is None else _sklearn_callback.CallbackSupportMixin


class BaseEstimator(sklearn.base.BaseEstimator):
    """scikit-learn's base class; the HTML representation links to the estimator's page."""

    _doc_link_module = "eigenfeat"

    @property
    def _doc_link_template(self) -> str:
        return DOCUMENTATION_URL + PAGE if DOCUMENTATION_URL else ""

    def _doc_link_url_param_generator(self) -> dict[str, Any]:
        """Module and class name in the address of the API page."""
        name, folder = type(self).__name__, type(self).__module__.split(".")[1]
        front = folder not in FAMILIES and name in sys.modules["eigenfeat"].__all__
        module = "eigenfeat" if front else f"eigenfeat.{folder}"
        return {"estimator_module": module, "estimator_name": name}


@contextmanager
def unchanged_on_error(estimator: object) -> Iterator[None]:
    """Restore the estimator's attributes if the block raises.

    In the block BLAS libraries use one thread: results do not depend on the number of threads.
    """
    before = estimator.__dict__.copy()
    try:
        with one_blas_thread():
            yield
    except (Exception, KeyboardInterrupt):
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def keep_completion(estimator: BaseEstimator, gaussian: GaussianImputer | None) -> None:
    """Set `completion_`, or delete it if the samples of `fit` have no missing entries."""
    estimator.__dict__.pop("completion_", None)
    if gaussian is not None:
        estimator.completion_ = gaussian


def complete(estimator: Any, X: Floats | csr_array) -> Floats | csr_array:
    """Complete new samples by the Gaussian that `estimator` has learned from training samples.

    ValueError if entries are missing and the training samples were complete.
    """
    gaussian: GaussianImputer | None = getattr(estimator, "completion_", None)
    if has_missing(X) and gaussian is None:
        raise ValueError(
            "X: expected complete samples, as in fit, got NaN in "
            f"{first_missing(X, encoded_names(estimator))}; fit to samples with missing entries, "
            "or replace the missing entries, for example by a pipeline with SimpleImputer"
        )
    return X if gaussian is None else gaussian.filled(X, estimator.n_threads)


def encoded_names(estimator: Any) -> Sequence[str] | None:
    """Names of an estimator's columns after the encoding of categories; None without names."""
    encoder = getattr(estimator, "columns_", None)
    if encoder is not None:
        return [str(name) for name in encoder.feature_names_]
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def keep_columns(estimator: Any, blocks: RowBlocks | None, n_features: int) -> None:
    """Set an estimator's number of columns, and the names and the encoder of its columns."""
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
    _keep_layout(estimator, blocks)


def _keep_layout(estimator: Any, blocks: RowBlocks) -> None:
    """Set `file_layout_`, by which an estimator finds its columns in other files."""
    estimator.__dict__.pop("file_layout_", None)
    if blocks.column_names is None:  # the names of a data frame are numbers
        estimator.__dict__.pop("feature_names_in_", None)
    if blocks.layout is not None:
        estimator.file_layout_ = blocks.layout


def without_names(estimator: Any) -> Any:
    """Shallow copy without names and encoder: columns of blocks are in order and encoded."""
    result = copy.copy(estimator)
    result.__dict__.pop("feature_names_in_", None)
    encoder = result.__dict__.pop("columns_", None)
    if encoder is not None:
        result.n_features_in_ = len(encoder.feature_names_)
    if hasattr(result, "best_estimator_"):
        result.best_estimator_ = without_names(result.best_estimator_)
    if hasattr(result, "members_"):
        result.members_ = [without_names(member) for member in result.members_]
    return result


def validate_data(
    estimator: sklearn.base.BaseEstimator, X: Any, y: Any = "no_validation", **options: Any
) -> Any:
    """Call ``sklearn.utils.validation.validate_data`` after further conversions and checks.

    Masked entries are missing if NaN is allowed, else errors. Complex numbers, dates, malformed
    sparse matrices and missing labels are errors. Messages name the row and the column of a data
    frame.
    """
    to_predict = isinstance(y, str) and options.get("reset") is False
    plain = to_predict and options.keys() <= _PLAIN_OPTIONS
    if plain and is_valid(estimator, X, options.get("dtype", "numeric")):
        return X
    X = _in_memory(X, options)
    what = "target" if options.get("y_numeric") else "label"
    y = plain_labels(y, what=what)
    if is_table(X) and not X.shape[1]:
        raise ValueError("X: expected at least one column, got none")
    with _naming_columns(estimator, X, options), naming_text(X), _naming_lengths(X, y, what):
        if options.get("reset", True):
            estimator.__dict__.pop("file_layout_", None)  # left by an earlier fit
        return validation.validate_data(estimator, X, y, **options)


_SERIES_ADVICE = (
    "X.reshape(len(X), -1) makes columns; ConvolutionClassifier and EpochClassifier take series of "
    "shape (n, channels, times)"
)


@contextmanager
def _naming_columns(estimator: Any, X: Any, options: dict[str, Any]) -> Iterator[None]:
    """If the block raises because of the columns of X, raise an error that says which ones.

    X has more than two dimensions, or other columns than the fit. The message begins with
    scikit-learn's message, which its checks require.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        if str(error).startswith("Found array with dim"):
            raise ValueError(f"{error} {_SERIES_ADVICE}") from None
        text = "" if options.get("reset", True) else _wrong_columns(estimator, X)
        if not text:
            raise
        raise ValueError(text) from None


def _wrong_columns(estimator: Any, X: Any) -> str:
    """Message about columns of X that are not those of the fit; empty if there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            validation.validate_data(estimator, X, reset=False, skip_check_array=True)
        return ""
    except (TypeError, ValueError) as error:
        text = str(error)
    known = [*getattr(estimator, "feature_names_in_", ())]
    names = column_names(X) if is_table(X) else []
    if text.startswith("The feature names should match"):
        if {*known} <= {*names}:
            text += "X[list(model.feature_names_in_)] has the columns of the fit in their order.\n"
        return text
    if not text.startswith("X has "):
        return ""
    fit = f" Columns of the fit: {show_items(known, 300)}" if known else ""
    given = f" Columns of X: {show_items(names, 300)}" if names else ""
    return f"{text}{fit}{';' if fit and given else ''}{given}"


@contextmanager
def _naming_lengths(X: Any, y: Any, what: str = "label") -> Iterator[None]:
    """If the block raises because X and y differ in length, raise an error that has both lengths.

    Messages call an entry of y `what`.
    """
    try:
        yield
    except ValueError as error:
        if "inconsistent numbers of samples" not in str(error):
            raise
        shape, n = np.shape(X), np.shape(y)[0]
        advice = f"; X.T has {n} samples" if shape[1:] == (n,) else ""
        raise ValueError(
            f"y: expected {shape[0]} {what}s, one per sample, got {n}{advice}"
        ) from None


def is_valid(estimator: sklearn.base.BaseEstimator, X: Any, dtypes: Any = FLOATS) -> bool:
    """Whether samples to predict are a finite array of a floating-point type in `dtypes`.

    scikit-learn's checks are skipped for them, because they take longer than a few predictions. The
    result is also False if the sum of squares overflows.
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
        and X.flags.aligned
        and "feature_names_in_" not in fitted
        and "columns_" not in fitted
        and math.isfinite(np.vdot(X, X))
    )


def check_array(X: Any, **options: Any) -> Any:
    """Call ``sklearn.utils.validation.check_array`` after the checks of `validate_data`."""
    X = _in_memory(X, options)
    with naming_text(X, name=options.get("input_name") or "X"):
        return validation.check_array(X, **options)


def _in_memory(X: Any, options: dict[str, Any]) -> Any:
    """`plain_rows` of X with the options of a check; an error for blocks, and for sparse X."""
    name = options.get("input_name") or "X"
    if type(X) is not np.ndarray and is_blocks(X):
        raise ValueError(f"{name}: expected samples in memory, got {type(X).__name__}")
    if hasattr(X, "tocsr") and not options.get("accept_sparse"):
        raise TypeError(f"{name}: expected dense samples, got sparse samples")
    return plain_rows(X, name, missing=options.get("ensure_all_finite", True) is not True)


def given_blocks(
    X: object,
    y: Targets,
    sample_weight: Weights = None,
    *,
    estimator: Any,
    labelled: bool = True,
) -> RowBlocks | None:
    """Blocks for `RowBlocks`, Dask collections and large memory maps; None for other samples.

    The blocks are prepared for the fit of `estimator`, unless it is None. With `labelled`, a memory
    map without labels gives None: the estimator raises the error. ValueError if labels or weights
    are given with blocks, which contain them, or X is a list of blocks.
    """
    check_no_list(X)
    blocks: RowBlocks
    if is_collection(X):
        if labelled and y is None:
            raise ValueError("y: expected labels, or the name of a column, got None")
        blocks = DaskBlocks(cast("Any", X), cast("Any", y), cast("Any", sample_weight))
    elif is_blocks(X):
        for name, values in (("y", y), ("sample_weight", sample_weight)):
            if values is not None:
                raise ValueError(
                    f"{name}: expected None with blocks of samples, which contain it, got "
                    f"{type(values).__name__}"
                )
        blocks = as_blocks(X)
    elif stays_on_disk(X) and not (labelled and y is None):
        labels = None if y is None else column_or_1d(plain_labels(y), warn=True)
        blocks = ArrayBlocks(X, labels, sample_weight)
    else:
        return None
    return blocks if estimator is None else blocks.prepared_for(estimator, fitted=False)


def validate_columns(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    sample_weight: Weights = None,
    *,
    reset: bool,
    **options: Any,
) -> Any:
    """Like `validate_data`, for estimators that encode the categories of tables.

    With ``categorical_features="from_dtype"``, a fit to a table with columns of text or categories
    sets their encoder, `columns_`.
    """
    if reset:
        estimator.__dict__.pop("columns_", None)
        if is_table(X):
            warn_identifiers(X)
        encodes = estimator.categorical_features is not None and is_table(X) and has_categories(X)
    else:
        encodes = hasattr(estimator, "columns_")
    if not encodes:
        return validate_data(estimator, X, y, reset=reset, **options)
    if not is_table(X):
        estimator.columns_.refuse(type(X).__name__)
    if not len(X):
        raise ValueError("X: expected at least one sample, got none")
    with _naming_columns(estimator, X, {"reset": reset}):
        validation.validate_data(estimator, X, reset=reset, skip_check_array=True)
    if isinstance(y, str):
        return validation.check_array(estimator.columns_.transform(X), **options)
    continuous = bool(options.get("y_numeric"))
    what = "target" if continuous else "label"
    labels = plain_labels(y, what=what)
    n = int(X.shape[0])
    with _naming_lengths(X, labels, what):
        _, labels = validation.check_X_y(np.zeros((n, 1)), labels, **options)
    weight = None if sample_weight is None else row_weights(sample_weight, n)
    estimator.columns_, encoded = encoded_table(X, labels, weight, continuous=continuous)
    return validation.check_X_y(encoded, labels, **options)


# ---- samples of a fit ------------------------------------------------------------------------


def prepare(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    allows_missing: bool = False,
    small: bool = False,
    moments: bool = True,
    class_weight: ClassWeight = None,
    mean_weight_1: bool = False,
    in_memory: bool = False,
    dense: bool = False,
    keeps_unweighted: bool = False,
) -> LabelledSamples:
    """Check the samples, labels and weights of a fit.

    Sets the estimator's attributes of the input: `n_features_in_`, the names and the encoder of the
    columns, and `completion_`. An estimator with `categorical_features` accepts tables with
    categories. Blocks with weights are an error if the estimator's `fit` has no `sample_weight`.
    Samples of weight 0 are left out.

    Parameters
    ----------
    estimator : estimator
        The estimator that is fitted.
    X : array-like, sparse matrix, ExpandedFeatures, RowBlocks, Dask collection, or prepared samples
        Blocks that fit into memory are read, as a data frame if their columns have names; see
        `RowBlocks.table` and `RowBlocks.in_memory`.
    y : (n,) array-like or None
        Labels; None with blocks, which contain labels.
    sample_weight : (n,) array-like or None, default=None
        Nonnegative weights; None with blocks, which contain weights, and for weights of 1.
    allows_missing : bool, default=False
        Whether NaN is a missing entry instead of an error.
    small : bool, default=False
        Whether integers of up to 16 bits become float32 instead of float64.
    moments : bool, default=True
        Whether the first pass over blocks accumulates the moments of the classes.
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied into `sample_weight`.
    mean_weight_1 : bool, default=False
        Whether to scale the weights to a mean of 1, so that a constant factor changes nothing.
    in_memory : bool, default=False
        Whether the estimator needs all samples at once, for example to compare them with each
        other; ValueError for blocks that are not read into memory.
    dense : bool, default=False
        Whether sparse samples are an error.
    keeps_unweighted : bool, default=False
        Whether samples of weight 0 are kept; only with `in_memory`.

    Returns
    -------
    MemorySamples or BlockSamples
        Samples of at least two classes.
    """
    if isinstance(X, MemorySamples | BlockSamples):
        keep_columns(estimator, None, X.n_features)
        check_two_labels(X.classes)
        return X
    if isinstance(X, ExpandedFeatures) and (in_memory or dense):
        X = X.toarray()
    n_threads = getattr(estimator, "n_threads", None)
    blocks, block = read_blocks(estimator, X, y, sample_weight, in_memory=in_memory)
    samples: LabelledSamples
    if blocks is not None and (block is None or block.y is None):
        samples = scan_blocks(
            blocks,
            small=small,
            moments=moments,
            allows_missing=allows_missing,
            class_weight=class_weight,
            mean_weight_1=mean_weight_1,
            n_threads=n_threads,
        )
        has_weights = samples.scan.weight is not None
        keep_columns(estimator, blocks, samples.n_features)
        if samples.encoder is not None:
            estimator.columns_ = samples.encoder
    else:
        if block is not None:
            X, y, sample_weight = block.X, block.y, block.weight
        X, y = _checked(estimator, X, y, sample_weight, input_options(X, allows_missing, small))
        if blocks is not None and block is not None:
            keep_source(estimator, blocks, block)
        check_classification_targets(y)
        if keeps_unweighted:
            weight = None if sample_weight is None else row_weights(sample_weight, X.shape[0])
        else:
            X, y, weight = weighted_rows(X, y, sample_weight)
        weight = class_weighted(class_weight, y, weight)
        if mean_weight_1 and weight is not None:
            weight = weights_of_mean_1(weight)
        has_weights = blocks is not None and weight is not None
        samples = MemorySamples.of(X, y, weight, n_threads, encoded_names(estimator))
    if dense and samples.sparse:
        raise TypeError("X: expected dense samples, got sparse samples")
    if has_weights and not validation.has_fit_parameter(estimator, "sample_weight"):
        name = type(estimator).__name__
        raise ValueError(f"sample_weight: expected no weights for {name}, got blocks with weights")
    check_two_labels(samples.classes)
    keep_completion(estimator, samples.completion)
    return samples


def read_blocks(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, in_memory: bool = False
) -> tuple[RowBlocks | None, Block | None]:
    """Blocks of samples as an estimator reads them, and all samples as one block if they are small.

    Both are None for samples that are not in blocks. With `in_memory`, sparse samples become one
    block, too, and ValueError is raised for samples that are not small.
    """
    if type(X) is np.ndarray or isinstance(X, ExpandedFeatures):
        return None, None
    blocks, block = None, None
    if isinstance(X, RowBlocks) and y is None and sample_weight is None:
        encodes = getattr(estimator, "categorical_features", None) is not None
        blocks, block = X, X.table() if encodes else None
    if block is None:
        blocks = given_blocks(X, y, sample_weight, estimator=estimator)
        if blocks is not None and not (blocks.encoder is not None and blocks.encoder.coded):
            block = blocks.in_memory(sparse=in_memory)
    if in_memory and blocks is not None and block is None:
        raise ValueError(
            f"X: expected samples that fit into memory, got {type(X).__name__}, which is read in "
            "blocks; fit to an array or a data frame, as Dask's compute returns, or set the "
            "`memory` of rows of files"
        )
    return blocks, block


def keep_source(estimator: Any, blocks: RowBlocks, block: Block) -> None:
    """Set the attributes of the columns, after a fit to all samples of `blocks` as one block."""
    if is_table(block.X):
        _keep_layout(estimator, blocks)
    else:
        keep_columns(estimator, blocks, block.X.shape[1])


def input_options(X: Any, allows_missing: bool = True, small: bool = True) -> dict[str, Any]:
    """Options of the check of samples in memory; see `prepare`."""
    options = ALLOW_NAN.copy()
    if not allows_missing:
        options["ensure_all_finite"] = True
    is_small = small and getattr(X, "dtype", None) in SMALL_TYPES
    return options | {"dtype": np.float32 if is_small else FLOATS}


def _checked(
    estimator: Any, X: Any, y: Any, sample_weight: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Samples in memory as numbers, and labels."""
    if isinstance(X, ExpandedFeatures):
        keep_columns(estimator, None, X.shape[1])
        y = np.asarray(plain_labels(y))
        if y.shape != (len(X),):
            raise ValueError(f"y: expected {len(X)} labels, one per sample, got shape {y.shape}")
        return X, y
    if hasattr(estimator, "categorical_features"):
        X, y = validate_columns(estimator, X, y, sample_weight, reset=True, **options)
    else:
        X, y = validate_data(estimator, X, y, reset=True, **options)
    return X, y


# ---- callbacks -------------------------------------------------------------------------------


class Iterative(_Base):
    """An estimator that reports the steps of its fit to callbacks."""

    def _most_steps(self) -> int | None:
        """Maximum number of steps; None if it is unknown."""
        most: int | None = getattr(self, "max_iter", None)
        return most

    def _step_done(self) -> bool:
        """Report a step to callbacks; return whether a callback asks to stop."""
        context = self.__dict__.get("_callback_fit_ctx")
        if context is None:
            return False
        try:
            step = context.subcontext(task_name="step")
        except ValueError:  # more steps than announced
            return False
        step.call_on_fit_task_begin(estimator=self)
        return bool(step.call_on_fit_task_end(estimator=self))


@contextmanager
def steps_of(outer: Iterative, inner: Iterative) -> Iterator[None]:
    """Report the steps of an inner estimator as steps of the outer one, within the block.

    The method of the inner estimator that fits must not be decorated by `with_steps`.
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
    """Report the beginning and the end of a fit to callbacks, also after an error."""

    @wraps(fit)
    def followed(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if not {"_skl_callbacks", "_parent_callback_ctx"} & self.__dict__.keys():
            return fit(self, X, *arguments, **options)
        y = arguments[0] if arguments else options.get("y")
        # The context is an attribute, set before `unchanged_on_error` saves the attributes.
        context = self._init_callback_context(max_subtasks=self._most_steps())
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        result = fit(self, X, *arguments, **options)
        context.call_on_fit_task_end(estimator=self, X=X, y=y)
        return result

    if _sklearn_callback is None:
        return cast("_Fit", followed)
    return cast("_Fit", wraps(fit)(_sklearn_callback.with_callbacks(followed)))


# ---- messages ------------------------------------------------------------------------------------


LOGGER = logging.getLogger("eigenfeat")
LOGGER.addHandler(logging.NullHandler())  # no output unless the program adds a handler


class Verbose:
    """An estimator that reports progress to the logger, and on stderr with `verbose`."""

    verbose: Any

    def _log(self, text: str, started: float | None = None) -> None:
        """Report a line, with the seconds since `started` (`time.perf_counter`) if given."""
        took = "" if started is None else f" ({time.perf_counter() - started:.1f} s)"
        LOGGER.info("%s: %s%s", type(self).__name__, text, took)
        if self.verbose:
            print(f"[{type(self).__name__}] {text}{took}", file=sys.stderr, flush=True)
