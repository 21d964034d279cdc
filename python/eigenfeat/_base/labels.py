"""Class labels of any kind that can be ordered, and their indices in the core."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.lazy import cached_property
from eigenfeat._base.types import DType, Labels
from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["LabelTable", "UnknownClassError", "check_two_labels", "label_dtype"]

WIDE_ENOUGH, SMALL_ENOUGH = 32, 4096  # letters of a label, bytes of all; see `label_dtype`


class UnknownClassError(ValueError, KeyError):
    """A class label that is not among those known."""

    __str__ = Exception.__str__  # KeyError's would quote the message


@dataclass(frozen=True)
class LabelTable:
    """Labels in the order in which they came: position = index of the class in the core.

    Immutable: `encode` and `joined` return new tables, so that a failed update changes nothing.
    ``fixed`` tables, made from a list of classes, take no further labels.
    """

    labels: tuple[Hashable, ...] = ()
    dtype: np.dtype[Any] | None = None
    fixed: bool = False

    @classmethod
    def of(cls, classes: ArrayLike | None) -> LabelTable:
        """The fixed table of the given classes, or an empty open one for None."""
        if classes is None:
            return cls()
        distinct, codes = _distinct(_label_array(classes, "classes"), "classes")
        if len(distinct) == 0 or len(distinct) != len(codes):
            raise ValueError(f"classes: expected distinct labels, got {show(classes)}")
        table = cls().joined(distinct.tolist(), distinct.dtype, "classes")
        return cls(table.labels, table.dtype, fixed=True)

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def _index(self) -> dict[Hashable, int]:
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
        """Index of a label; UnknownClassError if there is no such class."""
        plain = label.item() if isinstance(label, np.generic) else label
        try:
            return self._index[plain]
        except (KeyError, TypeError):
            known = show(self.classes.tolist())
            raise UnknownClassError(f"class: expected one of {known}, got {show(plain)}") from None

    def encode(
        self, y: ArrayLike, n: int, start: int = 0
    ) -> tuple[npt.NDArray[np.int32], LabelTable]:
        """Class indices (n,) of the labels `y`, and the table that holds all of them.

        Errors count rows from `start`.
        """
        array = _label_array(y, "y")
        if len(array) != n:
            raise ValueError(f"y: expected {n} labels, one per row, got {len(array)}")
        distinct, codes = _distinct(array, "y", start)
        labels = distinct.tolist()
        table = self.joined(labels, distinct.dtype, "y") if labels else self
        indices = np.array([table._index[label] for label in labels], dtype=np.int32)
        return indices[codes], table

    def joined(self, labels: Iterable[Hashable], dtype: DType, name: str) -> LabelTable:
        """This table with the labels that it lacks at its end."""
        unseen = tuple(label for label in labels if label not in self._index)
        if not unseen:
            return self
        if self.fixed:
            raise UnknownClassError(
                f"{name}: expected labels in {show(self.classes.tolist())}, got {show(unseen[0])}"
            )
        _check_order(self.labels, unseen, name)
        return LabelTable(self.labels + unseen, _common_dtype(self.dtype, dtype))

    def to_json(self) -> dict[str, object]:
        """The table as JSON can hold it; bytes as Latin-1 text."""
        kinds = {type(label).__name__ for label in self.labels}
        if not kinds <= {"bool", "int", "float", "str", "bytes"}:
            raise ValueError(f"classes: expected numbers or strings to save, got {sorted(kinds)}")
        return {
            "values": [
                [type(v).__name__, v.decode("latin-1") if isinstance(v, bytes) else v]
                for v in self.labels
            ],
            "dtype": None if self.dtype is None else self.dtype.str,
            "fixed": self.fixed,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LabelTable:
        """What `to_json` made; ValueError, KeyError or TypeError for anything else."""
        labels = [_label_from_json(kind, value) for kind, value in data["values"]]
        return cls.restored(labels, data["dtype"], bool(data["fixed"]))

    @classmethod
    def restored(cls, labels: Sequence[Any], dtype: str | None, fixed: bool) -> LabelTable:
        """A table of its parts; ValueError or TypeError unless the labels fit the dtype."""
        kind = None if dtype is None else label_dtype(dtype, labels)
        table = cls(tuple(labels), kind, fixed)
        if len(table._index) != len(labels) or len(table.classes) != len(labels):
            raise ValueError("labels occur twice")
        return table


def check_two_labels(classes: Labels, rows: str = "rows") -> None:
    """Raise ValueError unless there are two labels at least; errors call what has them `rows`."""
    if len(classes) < 2:
        seen = f"1 class ({classes.tolist()[0]!r})" if len(classes) else "none"
        raise ValueError(f"y: expected {rows} of at least two classes, got {seen}")


def label_dtype(text: str, labels: Sequence[Any]) -> DType:
    """A dtype by the name that a file gives, for these labels; ValueError if there is none.

    One that is much wider than they are comes back narrower: a short file must not ask for much
    memory.
    """
    if not re.fullmatch(r"\|[bSO]\d{0,9}|[|<>][iuf]\d|[<>]U\d{1,9}", text):
        raise ValueError(f"labels cannot be of dtype {text[:20]!r}")
    dtype = np.dtype(text)
    if dtype.kind in "US":
        if not all(type(label) is (str if dtype.kind == "U" else bytes) for label in labels):
            raise ValueError(f"labels are not of dtype {text}")
        enough = max([WIDE_ENOUGH, *map(len, labels)])
        if int(text[2:] or 0) > enough and len(labels) * dtype.itemsize > SMALL_ENOUGH:
            return np.dtype(f"{text[:2]}{enough}")
    return dtype


def _label_from_json(kind: str, value: Any) -> Hashable:
    kinds: dict[str, type[Any]] = {
        "bool": bool,
        "int": int,
        "float": float,
        "str": str,
        "bytes": str,
    }
    if type(value) is not kinds.get(kind, str) or value != value:
        raise ValueError(f"a label is not of kind {kind}")
    if kind == "bytes":
        return str(value).encode("latin-1")
    if kind not in kinds:
        raise ValueError(f"labels cannot be of kind {kind[:20]!r}")
    return value


def _label_array(y: Any, name: str) -> npt.NDArray[Any]:
    try:
        array = np.asarray(y)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name}: expected a 1-D array of labels, got {show(y)}")
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype.kind not in "biufUSO":
        raise ValueError(f"{name}: expected numbers or strings, got dtype {array.dtype}")
    return array


def _distinct(
    array: npt.NDArray[Any], name: str, start: int = 0
) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer[Any]]]:
    """Distinct labels, and for every entry which of them it is."""
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
    """By counting instead of sorting, for integers in a narrow range."""
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
    distinct = np.empty(len(position), dtype=object)
    distinct[:] = list(position)
    return distinct, codes


def _check_order(known: tuple[Any, ...], unseen: tuple[Any, ...], name: str) -> None:
    try:
        sorted(known + unseen)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in known + unseen})
        raise ValueError(
            f"{name}: expected labels that can be ordered, got a mixture of {', '.join(kinds)}"
        ) from None


def _common_dtype(old: np.dtype[Any] | None, new: np.dtype[Any]) -> np.dtype[Any]:
    if old is None or old == new:
        return new
    if {old.kind, new.kind} <= set("biuf"):
        common = np.result_type(old, new)
        exact = common.kind != "f" or "f" in (old.kind, new.kind)
        return common if exact else np.dtype(object)
    return np.result_type(old, new) if old.kind == new.kind else np.dtype(object)
