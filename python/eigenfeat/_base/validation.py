"""Checks of arguments; messages have the form "name: expected what, got what"."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time, timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike, DTypeLike, NDArray

from eigenfeat._base.matrices import well_formed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from eigenfeat._base.types import DType, Estimator, Rows

__all__ = [
    "FLOATS",
    "MOST",
    "CsrRows",
    "Generator",
    "Names",
    "RealArray",
    "check_count",
    "check_dtype",
    "check_memory",
    "check_number",
    "check_path",
    "check_rows",
    "check_same_names",
    "check_some_weight",
    "check_unmasked",
    "check_vector",
    "check_weights",
    "check_whole",
    "checked_names",
    "column_names",
    "counted",
    "differing_name",
    "has_missing",
    "is_rounding",
    "is_table",
    "listed_items",
    "names_of",
    "naming_text",
    "plain_rows",
    "random_generator",
    "real_array",
    "refuse_complex",
    "refuse_infinity",
    "show",
    "show_items",
    "take_names",
    "usual_weights",
    "varying",
    "warn_caller",
    "weight_unit",
    "weights_in",
]

MOST = 2**31 - 1  # largest count, which all integer types of the core can hold
RealArray = npt.NDArray[Any]  # of float32 or float64
FLOATS = [np.float64, np.float32]  # types that checks keep; other types become float64
Generator = np.random.RandomState | np.random.Generator
_UNKNOWN_SAMPLES = 2**20  # assumed number of samples if it is unknown
_MAX_WEIGHT = 2.0**64  # weights are scaled if the largest is above this or below its inverse
_MIN_WEIGHT = 2.0**-1000  # smallest positive weight after scaling


@dataclass(frozen=True, eq=False)
class CsrRows:
    """Checked compressed sparse rows, in the types of the core.

    ``data`` (nnz,) float32 or float64, ``indices`` (nnz,) and ``indptr`` (n + 1,) int64. Columns
    may be unsorted; duplicates in a row are added.
    """

    data: RealArray
    indices: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    n_columns: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.indptr) - 1, self.n_columns

    @property
    def dtype(self) -> DType:
        """Type of the values."""
        return self.data.dtype


def show(value: object, limit: int = 60) -> str:
    """Return `value` as text for an error message, at most `limit` characters long."""
    if isinstance(value, (date, np.datetime64)):
        value = str(value)
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def show_items(values: Iterable[object], limit: int = 200) -> str:
    """Return values as text, separated by commas: as many as `limit` characters hold."""
    texts = [show(value, limit) for value in values]
    ends = np.cumsum([len(text) + 2 for text in texts])
    shown = max(int(np.searchsorted(ends, limit, side="right")), 1)
    return ", ".join(texts[:shown] + ["..."] * (len(texts) > shown))


def counted(count: int, noun: str) -> str:
    """Return a number and a noun, such as 1 row, 2 rows or 2 classes."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def refuse_complex(dtype: Any, name: str, what: str = "") -> None:
    """Raise ValueError for a complex dtype."""
    if getattr(dtype, "kind", "") == "c":
        raise ValueError(
            f"{name}: expected real numbers, got {what or dtype}. Complex data not supported: pass "
            "magnitudes, or real and imaginary parts as columns of their own"
        )


def check_unmasked(values: Any, name: str) -> Any:
    """Remove the mask of a masked array without masked entries; return other values unchanged.

    ValueError if entries are masked.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask = np.ma.getmaskarray(values)
    if mask.any():
        first = np.argwhere(mask)[0].tolist()
        where = ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column"), first, strict=False))
        count = counted(int(mask.sum()), "masked value")
        raise ValueError(
            f"{name}: expected no masked entries, got {count}, the first in {where or 'a scalar'}"
        )
    return values.data


def check_dtype(dtype: npt.DTypeLike | None) -> DType | None:
    """Return None, float32 or float64."""
    if dtype is None:
        return None
    try:
        checked = np.dtype(dtype)
    except TypeError:
        checked = np.dtype(object)
    if checked not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype: expected None, float32 or float64, got {show(dtype)}")
    return checked


def check_rows(
    X: Rows,
    *,
    name: str = "X",
    dtype: DType | None = None,
    n_columns: int | None = None,
    by_columns: bool = False,
) -> RealArray | CsrRows:
    """Return rows in the form of the core: a C-contiguous (n, d) array, or CsrRows if sparse.

    Lists and data frames are converted; NaN and infinity are accepted. Without `dtype`, float32 is
    kept and other types become float64. With `by_columns`, an array of contiguous columns is not
    copied. ValueError if `X` is not a real matrix, has no columns, does not have `n_columns`
    columns, or is a malformed sparse matrix.
    """
    rows: RealArray | CsrRows
    if hasattr(X, "tocsr"):
        rows = _csr_rows(X, name, dtype)
    else:
        rows = _dense_rows(X, name, dtype)
        if not (by_columns and _has_columns(rows)):
            rows = np.ascontiguousarray(rows)
    if rows.shape[1] == 0:
        raise ValueError(f"{name}: expected at least one column, got shape {rows.shape}")
    if n_columns is not None and rows.shape[1] != n_columns:
        raise ValueError(f"{name}: expected {n_columns} columns, got {rows.shape[1]}")
    return rows


def _dense_rows(X: Any, name: str, dtype: np.dtype[Any] | None) -> RealArray:
    array = real_array(X, name, dtype)
    if array.ndim != 2:
        raise ValueError(f"{name}: expected a 2-D array (rows, columns), got shape {array.shape}")
    return array


def _has_columns(array: RealArray) -> bool:
    down, across = array.strides
    size = array.dtype.itemsize
    return array.flags.aligned and down == size and across % size == 0


def _csr_rows(X: Any, name: str, dtype: np.dtype[Any] | None) -> CsrRows:
    csr = well_formed(X, name).tocsr()
    used = int(csr.indptr[-1])
    indptr = np.ascontiguousarray(csr.indptr, dtype=np.int64)
    indices = np.ascontiguousarray(csr.indices[:used], dtype=np.int64)
    data = np.ascontiguousarray(real_array(csr.data[:used], name, dtype))
    return CsrRows(data, indices, indptr, int(csr.shape[1]))


def real_array(values: object, name: str, dtype: DType | None = None) -> RealArray:
    """Return an array of `dtype`; without it, float32 is kept and other types become float64."""
    values = check_unmasked(values, name)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected an array of real numbers: {error}") from None
    refuse_complex(array.dtype, name)
    if array.dtype.kind not in "biuf":
        array = _numbers_of(array, name)
    target = dtype or np.dtype(np.float32 if array.dtype == np.float32 else np.float64)
    with np.errstate(over="ignore"):
        converted: RealArray = np.require(array.astype(target, copy=False), requirements="A")
    if converted.dtype.itemsize < array.dtype.itemsize and array.dtype.kind == "f":
        _check_no_overflow(array, converted, name)
    return converted


def _numbers_of(array: npt.NDArray[Any], name: str) -> npt.NDArray[np.float64]:
    expected = f"{name}: expected an array of real numbers"
    if array.dtype.kind != "O":
        raise ValueError(f"{expected}, got dtype {array.dtype}")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        if any(isinstance(value, (complex, np.complexfloating)) for value in array.flat):
            refuse_complex(np.dtype(complex), name, "complex numbers")
        raise ValueError(f"{expected}: {error}") from None


def _check_no_overflow(array: npt.NDArray[Any], converted: RealArray, name: str) -> None:
    lost = np.isinf(converted) & np.isfinite(array)
    if lost.any():
        value = array[lost].flat[0]
        raise ValueError(f"{name}: expected values that fit {converted.dtype}, got {show(value)}")


def check_weights(
    sample_weight: ArrayLike | None, n: int, start: int = 0
) -> npt.NDArray[np.float64] | None:
    """Return weights (n,), finite and not negative; None stays None.

    Row numbers in errors begin at `start`.
    """
    if sample_weight is None:
        return None
    name = "sample_weight"
    weights = np.asarray(real_array(sample_weight, name), dtype=np.float64, order="C")
    if weights.shape != (n,):
        raise ValueError(f"{name}: expected shape ({n},), got {weights.shape}")
    good = np.isfinite(weights) & (weights >= 0)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"{name}: expected finite numbers >= 0, got {weights[row]} in row {start + row}"
        )
    return weights


def check_some_weight(positive: bool) -> None:
    """Raise ValueError if no sample has positive weight."""
    if not positive:
        raise ValueError("sample_weight: expected at least one positive weight, got only zeros")


def check_vector(
    values: ArrayLike, n: int, name: str, *, positive: bool
) -> npt.NDArray[np.float64]:
    """Return a float64 vector of `n` finite, optionally positive, numbers."""
    vector = np.ascontiguousarray(real_array(values, name), dtype=np.float64)
    if vector.shape != (n,):
        raise ValueError(f"{name}: expected shape ({n},), got {vector.shape}")
    good = np.isfinite(vector) & (vector > 0 if positive else True)
    if not good.all():
        at = int(np.argmin(good))
        kind = "finite positive numbers" if positive else "finite numbers"
        raise ValueError(f"{name}: expected {kind}, got {vector[at]} at index {at}")
    return vector


def check_number(
    value: object, name: str, *, at_least: float = -math.inf, infinite: bool = False
) -> float:
    """Return a real number >= `at_least`, not NaN, and finite unless `infinite`."""
    number = math.nan
    if isinstance(value, (Real, np.floating, np.integer)) and not isinstance(value, bool):
        number = float(value)
    if not number >= at_least or (math.isinf(number) and not infinite):
        bound = "" if at_least == -math.inf else f" >= {at_least:g}"
        raise ValueError(f"{name}: expected a number{bound}, got {show(value)}")
    return number


def check_whole(value: object, name: str, *, at_least: int, at_most: int | None = None) -> int:
    """Return an integer within bounds."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= at_least and (at_most is None or number <= at_most):
            return number
    bound = f">= {at_least}" if at_most is None else f"in {at_least}..{at_most}"
    raise ValueError(f"{name}: expected an integer {bound}, got {show(value)}")


def check_flag(value: object, name: str) -> bool:
    """Return the truth value of an object; ValueError for arrays of several entries."""
    try:
        return bool(value)
    except (ValueError, TypeError):
        raise ValueError(f"{name}: expected True or False, got {show(value)}") from None


def check_count(value: object, name: str) -> int:
    """Return a positive integer of at most 31 bits."""
    return check_whole(check_whole(value, name, at_least=1), name, at_least=1, at_most=MOST)


def check_path(value: str | os.PathLike[str]) -> str:
    """Return the path of a file as text; TypeError for file descriptors."""
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"path: expected a path, got {show(value)}") from None
    if not path or "\0" in path:
        raise ValueError(
            f"path: expected a path that is not empty and has no null characters, got {show(path)}"
        )
    return path


def check_memory(what: str, n_matrices: int, d: int, instead: str = "") -> None:
    """Raise MemoryError if `n_matrices` of (d, d) float64 exceed the machine's memory.

    The message has the number of bytes, and the name of an alternative, `instead`.
    """
    needed = n_matrices * d * d * 8
    available = physical_memory()
    if needed > available:
        raise MemoryError(
            f"{what}: {n_matrices} matrices of {d} x {d} take {needed:,} bytes "
            f"({needed / 2**30:.1f} GiB), but the machine has {available / 2**30:.1f} GiB"
            + (instead and f"; use {instead}")
        )


def physical_memory() -> int:
    """Return the size of main memory in bytes; 2^63 if it is unknown."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**63


def random_generator(random_state: object) -> Generator:
    """Return a generator of random numbers; `random_state` as in scikit-learn."""
    if random_state is None or random_state is np.random:
        return np.random.mtrand._rand
    if isinstance(random_state, (np.random.RandomState, np.random.Generator)):
        return random_state
    if isinstance(random_state, Integral) and 0 <= int(random_state) < 2**32:
        return np.random.RandomState(int(random_state))
    raise ValueError(
        "random_state: expected None, an integer in [0, 2**32) or a NumPy generator, "
        f"got {show(random_state)}"
    )


# ---- warnings ------------------------------------------------------------------------------------


_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the nearest line outside of this package and of decorators."""
    level, frame = 1, sys._getframe()
    while frame is not None and _is_inside(frame.f_code.co_filename):
        level += 1
        frame = frame.f_back  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=level)


def _is_inside(path: str) -> bool:
    decorators = os.path.join("sklearn", "callback"), "contextlib.py"
    return path.startswith(_HERE) or any(name in path for name in decorators)


# ---- samples as users give them ------------------------------------------------------------------
#
# NumPy and SciPy drop masks and imaginary parts, convert dates to numbers, and trust the indices of
# sparse matrices, before scikit-learn's checks see them.


ENCODE = (
    "encode such columns first, as skrub.tabular_pipeline(model) does, or scikit-learn's "
    "OneHotEncoder in a make_column_transformer; by default, TableClassifier and TableRegressor "
    "accept a data frame with such columns"
)


def plain_rows(X: Any, name: str = "X", *, missing: bool = False) -> Any:
    """Return `X` without a mask; unsorted sparse matrices are copied, other objects unchanged.

    With `missing`, masked entries become NaN. ValueError for complex numbers, columns of dates,
    masked entries without `missing`, and malformed sparse matrices. TypeError for dictionaries.
    """
    if hasattr(X, "tocsr"):
        refuse_complex(X.dtype, name)
        return well_formed(X, name)
    if isinstance(X, dict):
        raise TypeError(
            f"{name}: expected an array or a data frame, got dict; "
            f"pandas.DataFrame({name}) makes a data frame"
        )
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        try:
            X = np.ma.stack(X)
        except ValueError:
            return X  # rows of different lengths, which are refused later
    if isinstance(X, np.ma.MaskedArray):
        X = _unmasked(X, name, missing)
    if isinstance(X, np.ndarray):
        refuse_complex(X.dtype, name)
        _refuse_dates(X.dtype, name, f"an array of {X.dtype}")
        return np.require(X, requirements="A")
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        for column, dtype in zip(X.columns, X.dtypes, strict=False):
            _check_column(column, dtype, name)
    return X


def _unmasked(X: np.ma.MaskedArray[Any, Any], name: str, missing: bool) -> npt.NDArray[Any]:
    """Replace masked entries by NaN."""
    if not missing:
        return check_unmasked(X, name)
    mask = np.ma.getmaskarray(X)
    if not mask.any():
        return X.data
    refuse_complex(X.dtype, name)
    _refuse_dates(X.dtype, name, f"an array of {X.dtype}")
    kind = X.dtype if X.dtype in (np.float32, np.float64, object) else np.dtype(np.float64)
    plain: npt.NDArray[Any] = X.data.astype(kind)
    plain[mask] = np.nan
    return plain


def _refuse_nested(X: Any) -> None:
    """ValueError for a table (n, channels) with series in its cells, as data frames of sktime."""
    is_frame = hasattr(X, "columns") and hasattr(X, "to_numpy")
    cells = X.head(1).to_numpy() if is_frame else X
    nested = isinstance(cells, np.ndarray) and cells.dtype == object and cells.ndim == 2
    if nested and any(np.ndim(cell) > 0 for cell in cells[:1].flat):
        raise ValueError(
            "X: expected a list of arrays of shape (channels, times), got a table with series in "
            "its cells; pass [np.stack(row) for row in np.asarray(X)]"
        )


def listed_items(X: Any) -> Any:
    """Return the items of an array of objects (n,) as a list, and other objects unchanged.

    ValueError for a pandas Series of numbers, and for a table with series in its cells; TypeError
    for sparse samples.
    """
    if hasattr(X, "tocsr"):
        raise TypeError("X: expected dense samples, got sparse samples")
    _refuse_nested(X)
    if getattr(X, "ndim", 0) != 1 or getattr(X, "dtype", None) is None:
        return X
    if hasattr(X, "to_frame") and X.dtype != object:
        raise ValueError(
            "X: expected a table with a series in each row, got a pandas Series; X.unstack() makes "
            "a table from an index of two levels, X.to_frame().T from one series"
        )
    return list(X) if X.dtype == object else X


def _check_column(column: Any, dtype: Any, name: str) -> None:
    """Raise ValueError if a column of a data frame has dates, durations or complex numbers."""
    where = f"{dtype} in column {column!r}"
    kind = getattr(dtype, "kind", "")
    if kind == "c":
        refuse_complex(dtype, name, where)
    temporal = getattr(dtype, "is_temporal", None)  # Polars
    if kind in ("m", "M") or (callable(temporal) and temporal()) or hasattr(dtype, "freq"):
        raise ValueError(f"{name}: expected numbers, got dates or times, {where}; {ENCODE}")


def _refuse_dates(dtype: np.dtype[Any], name: str, what: str) -> None:
    if dtype.kind in "mM":
        raise ValueError(f"{name}: expected numbers, got dates or times, {what}; {ENCODE}")


@contextmanager
def naming_text(
    X: object, start: int = 0, name: str = "X", advice: str | None = None
) -> Iterator[None]:
    """If the block raises, raise an error that names the row and column of an invalid entry of X.

    Invalid entries are text, dates, complex numbers, infinity and NaN. Messages call X `name`;
    `start` is the index of the first row of X. The default of `advice` is to encode text.
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        result = _first_non_number(X)
        if result is None:
            if "infinity" in str(error):
                refuse_infinity(X, start, name)
            if str(error).startswith(f"Input {name} contains NaN"):
                _refuse_cells(np.isnan, X, start, name, "; complete or leave out such rows")
            raise
        column, row, what, shown = result
        row += start
        if what == "complex numbers":
            raise ValueError(
                f"{name}: expected real numbers, got {what} in column {column!r} ({shown} in row "
                f"{row}). Complex data not supported"
            ) from error
        raise ValueError(
            f"{name}: expected numbers, got {what} in column {column!r} ({shown} in row {row}); "
            f"{advice or ENCODE}"
        ) from error


def refuse_infinity(X: Any, start: int, name: str = "X") -> None:
    """Raise ValueError that names the first infinite number of a data frame or a dense array."""
    _refuse_cells(np.isinf, X, start, name)


def _refuse_cells(
    wrong: Callable[[Any], Any], X: Any, start: int, name: str, advice: str = ""
) -> None:
    """Raise ValueError that names the first cell with a `wrong` number."""
    columns: Iterable[tuple[Any, NDArray[Any]]]
    if is_table(X):
        columns = ((column, np.asarray(X[column])) for column in column_names(X))
    else:
        array = np.asarray(X) if isinstance(X, (np.ndarray, list, tuple)) else np.empty(0)
        columns = enumerate(array.T if array.ndim == 2 else ())
    for column, values in columns:
        if values.dtype.kind == "f" and (rows := np.flatnonzero(wrong(values))).size:
            value = values[rows[0]]
            raise ValueError(
                f"{name}: expected finite numbers, got {'NaN' if np.isnan(value) else value} in "
                f"row {start + rows[0]}, column {column!r}{advice}"
            )


def column_names(X: Any) -> list[Any]:
    """Return the names of the columns of a data frame or of an Arrow table."""
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def _first_non_number(X: Any) -> tuple[Any, int, str, str] | None:
    """Return column, row, kind and text of the first cell that is not a number."""
    for name, column in _columns(X):
        for row, value in enumerate(column.tolist()):
            if isinstance(value, str) and not _is_number(value):
                return name, row, "text", repr(value if len(value) <= 40 else value[:37] + "...")
            if isinstance(value, (date, time, timedelta)) and value == value:
                return name, row, "dates or times", str(value)[:40]
            if isinstance(value, (complex, np.complexfloating)):
                return name, row, "complex numbers", str(value)[:40]
    return None


def _columns(X: Any) -> Iterator[tuple[Any, NDArray[Any]]]:
    """Yield names (or indices) and entries of the columns that are not numeric."""
    if hasattr(X, "columns") and hasattr(X, "__dataframe__"):
        for name in column_names(X):
            column = np.asarray(X[name])
            if column.dtype.kind in "OUST":
                yield name, column.astype(object)
        return
    if hasattr(X, "tocsr") or not isinstance(X, (np.ndarray, list, tuple)):
        return
    try:
        array = np.asarray(X, dtype=object)
    except ValueError:
        return
    if array.ndim == 2 and not (isinstance(X, np.ndarray) and X.dtype.kind not in "OUST"):
        for number in range(array.shape[1]):
            yield number, array[:, number]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_table(X: object) -> bool:
    """Whether X is a data frame or table, with named columns."""
    named = hasattr(X, "columns") or hasattr(X, "column_names")
    return named and not isinstance(X, np.ndarray) and hasattr(X, "shape") and len(X.shape) == 2


def has_missing(X: Any) -> bool:
    """Whether dense samples have NaN; ValueError for sparse samples with NaN."""
    if isinstance(X, np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isnan(X.sum(dtype=np.float64))) and bool(np.isnan(X).any())
    at = np.flatnonzero(np.isnan(X.data))
    if len(at):
        row = int(np.searchsorted(X.indptr, at[0], side="right")) - 1
        raise ValueError(
            "X: expected finite numbers in sparse samples, got NaN in row "
            f"{row}, column {int(X.indices[at[0]])}"
        )
    return False


# ---- constant columns ----------------------------------------------------------------------------


def is_rounding(
    deviation: ArrayLike,
    size: ArrayLike,
    n_samples: int = _UNKNOWN_SAMPLES,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.bool_]:
    """Whether deviations (d,) of columns are within rounding errors; True if all numbers are 0.

    `deviation` is a standard deviation or half a range; `size` (d,) is the largest magnitude of the
    entries or of the mean. Entries have errors of ``eps * size``; the error of their mean, summed
    pairwise, is ``log2(n)`` times as large.
    """
    steps = 4.0 * (2.0 + np.log2(max(n_samples, 1)))  # 4: a margin
    rounding = steps * float(np.finfo(dtype).eps) * np.abs(np.asarray(size, np.float64))
    return np.asarray(~(np.asarray(deviation) > rounding))


def varying(
    variance: ArrayLike,
    size: ArrayLike,
    n_samples: int = _UNKNOWN_SAMPLES,
    dtype: DTypeLike = np.float64,
) -> NDArray[np.float64]:
    """Return standard deviations (d,) from variances; exactly 0 for constant columns.

    Variances of constant columns may be negative by rounding.
    """
    deviation: Any = np.sqrt(np.maximum(variance, 0.0))
    return np.where(is_rounding(deviation, size, n_samples, dtype), 0.0, deviation)


# ---- names of columns ----------------------------------------------------------------------------


Names = tuple[str, ...]


def checked_names(names: Iterable[str] | None, n_columns: int | None = None) -> Names | None:
    """Return names as a tuple, or None; ValueError unless distinct strings, one per column."""
    if names is None:
        return None
    result = () if isinstance(names, str) else tuple(names)
    if not result or not all(isinstance(name, str) for name in result):
        raise ValueError(f"feature_names: expected strings, one per column, got {show(names)}")
    if len(set(result)) != len(result):
        raise ValueError(f"feature_names: expected distinct names, got {show(names)}")
    if n_columns not in (None, len(result)):
        raise ValueError(f"feature_names: expected {n_columns} names, got {len(result)}")
    return tuple(str(name) for name in result)


def names_of(X: object) -> Names | None:
    """Return the column names of a data frame if they are distinct strings, otherwise None.

    As in scikit-learn, numbered columns have no names.
    """
    columns = getattr(X, "columns", None)
    names = () if columns is None else tuple(columns)
    plain = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return tuple(str(name) for name in names) if names and plain else None


def differing_name(wanted: Sequence[str], got: Sequence[str]) -> tuple[int, str, str] | None:
    """Return the first column whose names differ, and both names; None if all are equal.

    "no column" stands for the name of a missing column.
    """
    for j in range(max(len(wanted), len(got))):
        a, b = (repr(names[j]) if j < len(names) else "no column" for names in (wanted, got))
        if a != b:
            return j, a, b
    return None


def check_same_names(wanted: Names | None, got: Names | None, name: str) -> Names | None:
    """Return `wanted`, or `got` if `wanted` is None; ValueError if both are given and differ."""
    if wanted is None or got is None:
        return got if wanted is None else wanted
    if result := differing_name(wanted, got):
        raise ValueError(f"{name}: expected {result[1]} as column {result[0]}, got {result[2]}")
    return wanted


def take_names(estimator: Estimator, source: Any) -> None:
    """Copy the number of columns, their names and their encoder from another object."""
    estimator.n_features_in_ = source.n_features_in_
    for name in ("feature_names_in_", "file_layout_", "columns_"):
        value = getattr(source, name, None)
        estimator.__dict__.pop(name, None)
        if value is not None:
            setattr(estimator, name, value)


# ---- sample weights of extreme size --------------------------------------------------------------


def usual_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Divide weights by a power of two if the largest is above 2^64 or below 2^-64.

    Sums and products of weights then neither overflow nor vanish. Only ratios of such weights have
    a meaning. Positive weights stay positive.
    """
    return weights_in(weight, weight_unit(float(weight.max(initial=0.0))))


def weight_unit(largest: float) -> float:
    """Return the divisor of weights with this largest weight: 1 unless it is extreme."""
    if largest == 0.0 or 1.0 / _MAX_WEIGHT <= largest <= _MAX_WEIGHT:
        return 1.0
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]) - 1))


def weights_in(weight: NDArray[np.float64], unit: float) -> NDArray[np.float64]:
    """Divide weights by a power of two; positive weights stay positive."""
    if unit == 1.0:
        return weight
    with np.errstate(under="ignore"):
        return np.where(weight > 0, np.maximum(weight / unit, _MIN_WEIGHT), 0.0)
