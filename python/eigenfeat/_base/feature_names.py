"""Names of columns, where they have any: checked, compared, and found on data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eigenfeat._base.validation import show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from eigenfeat._base.types import Estimator

__all__ = ["Names", "check_same_names", "checked_names", "differing_name", "names_of", "take_names"]

Names = tuple[str, ...]


def checked_names(names: Iterable[str] | None, n_columns: int | None = None) -> Names | None:
    """Names as a tuple, None for None; ValueError unless distinct strings, one per column."""
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
    """Names of the columns of a data frame; None for all else, and if they are no distinct strings.

    That is scikit-learn's rule: numbered columns have no names.
    """
    columns = getattr(X, "columns", None)
    names = () if columns is None else tuple(columns)
    plain = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return tuple(str(name) for name in names) if names and plain else None


def differing_name(wanted: Sequence[str], got: Sequence[str]) -> tuple[int, str, str] | None:
    """First column whose names differ, and both names; None if there is none.

    A column that only one side has is called "no column" on the other.
    """
    for j in range(max(len(wanted), len(got))):
        a, b = (repr(names[j]) if j < len(names) else "no column" for names in (wanted, got))
        if a != b:
            return j, a, b
    return None


def check_same_names(wanted: Names | None, got: Names | None, name: str) -> Names | None:
    """The names of both, if only one side has any those; ValueError where they differ."""
    if wanted is None or got is None:
        return got if wanted is None else wanted
    if result := differing_name(wanted, got):
        raise ValueError(f"{name}: expected {result[1]} as column {result[0]}, got {result[2]}")
    return wanted


def take_names(estimator: Estimator, source: Any) -> None:
    """Number, names and encoder, where there are any, of the columns of another estimator."""
    estimator.n_features_in_ = source.n_features_in_
    for name in ("feature_names_in_", "file_layout_", "columns_"):
        value = getattr(source, name, None)
        estimator.__dict__.pop(name, None)
        if value is not None:
            setattr(estimator, name, value)
