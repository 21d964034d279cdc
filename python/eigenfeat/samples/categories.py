"""Categories of a column: the text that identifies a value, and the numbers that encode it.

The text of a value does not depend on its column's type: True is "True" in columns of booleans,
objects and text; 1 is "1" as an integer, as 1.0 and as the text "1.0". The text is made from the
value before any cast, so that different integers of 64 bits have different texts.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigenfeat._base.labels import is_missing
from eigenfeat._base.state import OmitsCaches

__all__ = ["Categories", "category_codes", "category_text", "distinct_values", "listed_values"]

_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]*)\.[0-9]+")
_NUMBER = re.compile(r"([+-]?)0*([0-9]+)(\.[0-9]*)?")
_MIDNIGHT = re.compile(r"(?<=\d)[ T]00:00:00$")


def category_text(value: Any) -> str | None:
    """Return the text that identifies a category; None for missing values and blanks."""
    if is_missing(value):
        return None
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        return str(int(value)) if np.isfinite(value) and value == int(value) else str(value)
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
        if isinstance(value, int):
            value = str(np.datetime64(value, "us").astype("datetime64[s]")).replace("T", " ")
    if isinstance(value, Decimal):
        text = format(value, "f")
    elif isinstance(value, bytes):
        text = value.decode("utf-8", "replace").strip()
    else:
        text = str(value).strip()
    if _DECIMAL.fullmatch(text):
        text = text.rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return _MIDNIGHT.sub("", text) or None


def listed_values(values: NDArray[Any]) -> list[Any]:
    """Values of an array as Python's objects; dates beyond the year 9999 stay NumPy's."""
    listed: list[Any] = values.tolist()
    if values.dtype.kind == "M":  # `tolist` converts later dates to integers
        pairs = zip(listed, values, strict=True)
        return [date if isinstance(value, int) else value for value, date in pairs]
    return listed


def distinct_values(values: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Distinct values of a column, and the index (n,) of each value among them.

    TypeError if a value is a list or another object that cannot be hashed.
    """
    if values.dtype.kind in "biuf":
        unique, inverse = np.unique(values, return_inverse=True)
        return list(unique), inverse.reshape(-1)
    index_of: dict[Hashable, int] = {}
    distinct: list[Any] = []
    indices = []
    for value in listed_values(values):
        # As keys of a dictionary, 1, 1.0 and True would be equal.
        key = value if type(value) is str or value is None else (type(value), value)
        index = index_of.setdefault(key, len(index_of))
        if index == len(distinct):
            distinct.append(value)
        indices.append(index)
    return distinct, np.array(indices, dtype=np.intp)


def category_codes(
    distinct: list[Any], indices: NDArray[np.intp]
) -> tuple[NDArray[np.intp], list[str | None]]:
    """Codes (n,) of the result of `distinct_values`, and the distinct text of each code."""
    codes: dict[str | None, int] = {}
    code = [codes.setdefault(category_text(value), len(codes)) for value in distinct]
    return np.array(code, dtype=np.intp)[indices], list(codes)


@dataclass(frozen=True, eq=False)
class Categories(OmitsCaches):
    """Categories of a column, and the columns of numbers that encode them.

    Each category is encoded by a column of indicators, by its code, or by a row of statistics.
    """

    texts: list[str | None]  # of the L categories; None is a missing value
    pools: bool = False  # whether rare categories and unknown values have a common indicator
    coded: bool = False  # whether categories are encoded by codes, until statistics are known
    statistics: NDArray[np.float64] | None = None  # (L + 1, m), the last row for all other values

    @property
    def indicates(self) -> bool:
        """Whether the categories are encoded by indicators."""
        return self.statistics is None and not self.coded

    @property
    def width(self) -> int:
        """Number of columns that encode the categories."""
        if self.statistics is not None:
            return int(self.statistics.shape[1])
        if self.coded:
            return 1
        return len(self.texts) + self.pools

    @cached_property
    def _codes(self) -> Mapping[str | None, int]:
        return {text: code for code, text in enumerate(self.texts)}

    @cached_property
    def _normalised_codes(self) -> Mapping[str, int]:
        """Codes of the categories by `_normalised` texts, unless two categories share one."""
        codes: dict[str, int] = {}
        ambiguous = set()
        for code, text in enumerate(self.texts):
            normalised = None if text is None else _normalised(text)
            if normalised is not None and codes.setdefault(normalised, code) != code:
                ambiguous.add(normalised)
        return {text: code for text, code in codes.items() if text not in ambiguous}

    def codes_of(self, texts: Iterable[str | None]) -> NDArray[np.intp]:
        """Codes of texts; unknown texts have the number of categories as their code."""
        unknown, codes = len(self.texts), []
        for text in texts:
            code = self._codes.get(text, unknown)
            if code == unknown and text is not None:
                code = self._normalised_codes.get(_normalised(text) or text, unknown)
            codes.append(code)
        return np.array(codes, dtype=np.intp)

    def encoded(self, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Columns (n, width) of samples with these codes."""
        if self.statistics is not None:
            return self.statistics[codes]
        if self.coded:
            return codes[:, None].astype(np.float64)
        indicators = np.zeros((len(codes), self.width))
        known = np.flatnonzero(codes < self.width)
        indicators[known, codes[known]] = 1.0
        return indicators

    def names(self, column: str, statistics: Iterable[str] = ()) -> list[str]:
        """Names of the encoded columns."""
        if self.statistics is not None:
            return [f"{column}_{name}" for name in statistics]
        if self.coded:
            return [f"{column}_code"]
        # The name of the common indicator is scikit-learn's, since a text may be "infrequent".
        pooled = self.pools * [f"{column}_infrequent_sklearn"]
        return [f"{column}_{text}" for text in self.texts] + pooled


def _normalised(text: str) -> str | None:
    """Return a truth value in lower case, a number without leading zeros, None for other texts.

    Readers of files may give "TRUE" or "True", and "01" or "1", for one value of a file.
    """
    lower = text.lower()
    if lower in ("true", "false"):
        return lower
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    sign, digits, decimals = number.groups("")
    return ("-" if sign == "-" else "") + digits + decimals.rstrip("0").rstrip(".")
