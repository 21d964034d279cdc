"""Class labels of any type that can be sorted, their indices in the core, and folds by class."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import Codes, DType, Labels
from eigenfeat._base.validation import Generator, counted, refuse_complex, show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = [
    "LabelTable",
    "UnknownClassError",
    "by_class",
    "check_two_labels",
    "class_folds",
    "fold_indices",
    "plain_labels",
    "thinned",
]


class UnknownClassError(ValueError, KeyError):
    """A class label that is not known."""

    __str__ = Exception.__str__  # KeyError quotes the message


@dataclass(frozen=True)
class LabelTable:
    """Labels in order of arrival; the position of a label is its class index in the core.

    Immutable: `encode` and `joined` return new tables, so that a failed update changes nothing.
    ``fixed`` tables, made from a list of classes, accept no further labels.
    """

    labels: tuple[Hashable, ...] = ()
    dtype: np.dtype[Any] | None = None
    fixed: bool = False

    @classmethod
    def of(cls, classes: ArrayLike) -> LabelTable:
        """Return a fixed table of the given classes."""
        distinct, codes = _distinct(_label_array(classes, "classes"), "classes")
        if len(distinct) == 0 or len(distinct) != len(codes):
            raise ValueError(f"classes: expected distinct labels, got {show(classes)}")
        table = cls().joined(distinct.tolist(), distinct.dtype, "classes")
        return cls(table.labels, table.dtype, fixed=True)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def positions(self) -> dict[Hashable, int]:
        """Index of each label."""
        return {label: i for i, label in enumerate(self.labels)}

    @cached_property
    def classes(self) -> Labels:
        """The labels, sorted."""
        ordered = sorted(self.labels)  # type: ignore[type-var]
        array = np.empty(len(ordered), dtype=self.dtype or np.dtype(np.int64))
        array[:] = ordered
        array.flags.writeable = False
        return array

    def index(self, label: Hashable) -> int:
        """Return the index of a label; UnknownClassError if it is not known."""
        plain = label.item() if isinstance(label, np.generic) else label
        try:
            return self.positions[plain]
        except (KeyError, TypeError):
            known = show(self.classes.tolist())
            raise UnknownClassError(f"class: expected one of {known}, got {show(plain)}") from None

    def encode(
        self, y: ArrayLike, n: int, start: int = 0
    ) -> tuple[npt.NDArray[np.int32], LabelTable]:
        """Return class indices (n,) of the labels `y`, and a table that contains all of them.

        Row numbers in errors begin at `start`.
        """
        array = _label_array(y, "y", start)
        if len(array) != n:
            raise ValueError(f"y: expected {n} labels, one per sample, got {len(array)}")
        distinct, codes = _distinct(array, "y", start)
        labels = distinct.tolist()
        table = self.joined(labels, distinct.dtype, "y") if labels else self
        indices = np.array([table.positions[label] for label in labels], dtype=np.int32)
        return indices[codes], table

    def joined(self, labels: Iterable[Hashable], dtype: DType, name: str) -> LabelTable:
        """Return a table with the missing labels appended."""
        unseen = tuple(label for label in labels if label not in self.positions)
        if not unseen:
            return self
        if self.fixed:
            raise UnknownClassError(
                f"{name}: expected labels in {show(self.classes.tolist())}, got {show(unseen[0])}"
            )
        _check_order(self.labels, unseen, name)
        labels = self.labels + unseen
        return LabelTable(labels, _common_dtype(self.dtype, dtype, labels))

    @property
    def array(self) -> npt.NDArray[Any]:
        """The labels in order of arrival, as an array."""
        array = np.empty(len(self), dtype=self.dtype or np.dtype(np.int64))
        array[:] = self.labels
        return array

    @classmethod
    def restored(cls, array: npt.NDArray[Any], fixed: bool) -> LabelTable:
        """Return the table of an `array`; an error of any type if it is invalid."""
        table = cls(tuple(array.tolist()), array.dtype if len(array) else None, bool(fixed))
        if len(table.positions) != len(table.classes):
            raise ValueError("labels occur twice")
        return table


def check_two_labels(classes: Labels, what: str = "samples", name: str = "y") -> None:
    """Raise ValueError for fewer than two classes of `what`; `name` is the argument of labels."""
    if len(classes) < 2:
        seen = f"1 class ({classes.tolist()[0]!r})" if len(classes) else "none"
        raise ValueError(f"{name}: expected {what} of at least two classes, got {seen}")


def plain_labels(y: Any, name: str = "y", start: int = 0, what: str = "label") -> Any:
    """Return labels of any type as a NumPy array with exactly the same values.

    Integers, booleans and text may come as columns of pandas, Polars and Arrow (nullable,
    categorical), arrays of objects or of NumPy's StringDType, or lists. Integers become int64, or
    uint64 if necessary; text becomes objects unless it was a text array. Objects with several
    columns, and objects that are not arrays, are returned unchanged.

    ValueError if labels are missing (NaN, None, NaT, pandas.NA, masked), complex, integers of more
    than 64 bits, or of several types. The message calls the argument `name` and an entry `what`;
    row numbers begin at `start`.
    """
    if y is None or isinstance(y, (str, bytes)):
        return y
    if isinstance(y, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(y)
        if mask.ndim:
            hidden = np.any(mask.reshape(len(mask), -1), axis=1)
            _refuse_missing(np.asarray(hidden), name, start, what)
        y = y.data
    if isinstance(y, (list, tuple)):
        return _of_list(y, name, start, what)
    if not isinstance(y, np.ndarray):
        if getattr(y, "ndim", 1) == 2 and np.shape(y)[1] == 1 and hasattr(y, "columns"):
            column = plain_labels(y[y.columns[0]], name, start, what)
            return column[:, None]
        if getattr(y, "ndim", 1) != 1:
            return y
        convert = next((f for f in _LIST_METHODS if hasattr(y, f)), None)
        if convert is not None and not isinstance(getattr(y, "dtype", None), np.dtype):
            return _of_objects(as_objects(getattr(y, convert)()), name, start, what)
        try:
            y = np.asarray(y)
        except (TypeError, ValueError):
            return y
    return _of_array(y, name, start, what)


_LIST_METHODS = ("to_pylist", "to_list", "tolist")  # Arrow; pandas and Polars; extension arrays


def as_objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    """Return an array (n,) of objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _of_list(y: Sequence[Any], name: str, start: int, what: str) -> Any:
    """Convert a list without changing labels; NumPy would convert [1, "1"] to text."""
    if any(isinstance(label, (list, tuple, np.ndarray)) and np.ndim(label) for label in y[:1]):
        return y
    try:
        plain = _of_objects(as_objects(y), name, start, what)
    except TypeError:
        return y
    if plain.dtype.kind == "O" and all(type(label) is str for label in y):
        return np.asarray(y) if len(y) else y
    return plain


def _of_array(array: npt.NDArray[Any], name: str, start: int, what: str) -> npt.NDArray[Any]:
    array = np.require(array, requirements="A")
    if array.dtype.kind == "c":
        refuse_complex(array.dtype, name, f"{array.dtype} as {what}s")
    column = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if column.ndim != 1:
        return array
    if column.dtype.kind == "f":
        _refuse_missing(np.isnan(column), name, start, what)
    elif column.dtype.kind in "mM":
        _refuse_missing(np.isnat(column), name, start, what)
    elif column.dtype.kind in "OT":
        plain = _of_objects(column.astype(object), name, start, what)
        return plain if array.ndim == 1 else plain[:, None]
    return array


def _of_objects(objects: npt.NDArray[Any], name: str, start: int, what: str) -> npt.NDArray[Any]:
    """Convert booleans, and numbers to 64 bits; text and other objects stay objects."""
    values = objects.tolist()
    types = set(map(type, values))
    if not types <= _NEVER_MISSING:
        missing = np.fromiter(map(is_missing, values), dtype=bool, count=len(values))
        _refuse_missing(missing, name, start, what)
    kinds = {_kind(label_type) for label_type in types}
    if kinds == {bool}:
        return np.array(values, dtype=bool)
    if kinds == {int}:
        return _whole_numbers(values, name, start)
    if kinds == {float} or (
        kinds == {int, float} and all(_kind(type(v)) is float or abs(v) <= 2**53 for v in values)
    ):
        return np.array(values, dtype=np.float64)
    if len(kinds) > 1 and what != "target":
        names = sorted(kind.__name__ for kind in kinds)
        raise ValueError(
            f"{name}: expected {what}s that can be ordered, got a mixture of {', '.join(names)}"
        )
    if kinds == {str}:
        return as_objects([str(v) for v in values]) if types != {str} else objects
    if complex in kinds:
        refuse_complex(np.dtype(complex), name, f"complex numbers as {what}s")
    return objects


_NEVER_MISSING = {bool, int, str, bytes, np.bool_, np.int64, np.int32, np.uint64, np.str_}
_KINDS: tuple[tuple[tuple[type[Any], ...], type[Any]], ...] = (
    ((bool, np.bool_), bool),
    ((int, np.integer), int),
    ((float, np.floating), float),
    ((complex, np.complexfloating), complex),
    ((str,), str),
    ((bytes,), bytes),
)


def _kind(label_type: type[Any]) -> type[Any]:
    """Return the Python type that corresponds to a type of labels."""
    return next((kind for types, kind in _KINDS if issubclass(label_type, types)), label_type)


def _whole_numbers(values: list[Any], name: str, start: int) -> npt.NDArray[Any]:
    low, high = min(values), max(values)
    if low >= -(2**63) and high < 2**63:
        return np.array(values, dtype=np.int64)
    if low >= 0 and high < 2**64:
        return np.array(values, dtype=np.uint64)
    worst = high if high >= 2**63 else low
    raise ValueError(
        f"{name}: expected whole numbers of at most 64 bits, got {worst} in row "
        f"{start + values.index(worst)}; convert labels to text"
    )


def is_missing(label: Any) -> bool:
    """Whether a value is None, NaN, or a missing value of NumPy, pandas or Polars."""
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(label))
    return isinstance(label, (float, np.floating, Decimal)) and bool(label != label)


def _refuse_missing(missing: npt.NDArray[np.bool_], name: str, start: int, what: str) -> None:
    count = int(np.count_nonzero(missing))
    if count:
        raise ValueError(
            f"{name}: expected a {what} for every sample, got {counted(count, 'missing value')}, "
            f"the first in row {start + int(np.argmax(missing))}; leave out samples without a "
            f"{what}"
        )


def _label_array(y: Any, name: str, start: int = 0) -> npt.NDArray[Any]:
    try:
        array = np.asarray(plain_labels(y, name, start))
    except TypeError:
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array of labels, got {show(y)}")
    if array.dtype.kind not in "biufUSO":
        raise ValueError(f"{name}: expected numbers or strings, got dtype {array.dtype}")
    return array


def _distinct(
    array: npt.NDArray[Any], name: str, start: int = 0
) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer[Any]]]:
    """Return the distinct labels, and the index of each entry among them."""
    if array.dtype.kind == "O":
        return _distinct_objects(array, name, start)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise ValueError(f"{name}: expected finite labels, got {array[row]} in row {start + row}")
    if array.dtype.kind in "iu" and len(array):
        low, high = int(array.min()), int(array.max())
        if high - low <= 4 * len(array) and high < 2**62:
            return _distinct_integers(array, low, high)
    distinct, codes = np.unique(array, return_inverse=True)
    return distinct, codes


def _distinct_integers(
    array: npt.NDArray[Any], low: int, high: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer[Any]]]:
    """Like `_distinct`, for integers in a narrow range: counts instead of sorting."""
    shifted = array.astype(np.int64) - low
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    rank = np.cumsum(present) - 1
    return (np.flatnonzero(present) + low).astype(array.dtype), rank[shifted]


def _distinct_objects(
    array: npt.NDArray[Any], name: str, start: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer[Any]]]:
    position: dict[Any, int] = {}
    codes = np.empty(len(array), dtype=np.int64)
    for row, label in enumerate(array.tolist()):
        plain = label.item() if isinstance(label, np.generic) else label
        if plain is None or plain != plain or not isinstance(plain, Hashable):
            raise ValueError(f"{name}: expected labels, got {show(plain)} in row {start + row}")
        codes[row] = position.setdefault(plain, len(position))
    return as_objects(list(position)), codes


def _check_order(known: tuple[Any, ...], unseen: tuple[Any, ...], name: str) -> None:
    try:
        sorted(known + unseen)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in known + unseen})
        raise ValueError(
            f"{name}: expected labels that can be ordered, got a mixture of {', '.join(kinds)}"
        ) from None


def _common_dtype(
    old: np.dtype[Any] | None, new: np.dtype[Any], labels: tuple[Any, ...]
) -> np.dtype[Any]:
    """Return a dtype that holds labels of either dtype exactly."""
    if old is None or old == new:
        return new
    if {old.kind, new.kind} <= set("iu") and min(labels) >= 0 and max(labels) >= 2**63:
        return np.dtype(np.uint64)
    if {old.kind, new.kind} <= set("biuf"):
        common = np.result_type(old, new)
        large = any(abs(label) > 2**53 for label in labels if type(label) is int)
        return np.dtype(object) if common.kind == "f" and large else common
    return np.result_type(old, new) if old.kind == new.kind else np.dtype(object)


# ---- folds by class ------------------------------------------------------------------------------


def class_folds(codes: Codes, n_folds: int, random: Generator | None = None) -> Codes:
    """Return the fold (n,) of every sample, with each class spread evenly over the folds.

    Samples of a class are taken in a random order, or without `random` in the order given.
    """
    order = np.arange(len(codes)) if random is None else random.permutation(len(codes))
    folds = np.empty(len(codes), dtype=np.intp)
    folds[by_class(order, codes)] = np.arange(len(codes)) % n_folds
    return folds


def fold_indices(
    codes: Codes, n_classes: int, count: int, random: Generator
) -> list[tuple[Codes, Codes]]:
    """Indices of the samples to train on and to hold out in each fold, drawn class by class.

    The only sample of a class is never held out.
    """
    fold = class_folds(codes, count, random)
    fold[(np.bincount(codes, minlength=n_classes) == 1)[codes]] = -1
    splits = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(count)]
    return [(train, held_out) for train, held_out in splits if len(train) and len(held_out)]


def by_class(indices: Codes, codes: Codes) -> Codes:
    """Sort indices of samples by class; their order within a class remains."""
    return indices[np.argsort(codes[indices], kind="stable")]


def thinned(indices: Codes, max_count: int) -> Codes:
    """At most `max_count` of the indices, evenly spaced, sorted."""
    if len(indices) > max_count:
        indices = indices[np.linspace(0, len(indices) - 1, max_count).astype(np.intp)]
    return np.sort(indices)
