"""Types of the columns of a CSV file, and detection of names in its first line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from eigenfeat.io.errors import arrow
from eigenfeat.io.source import NUMBER, Options, kind_of_texts

__all__ = ["INFINITE", "MISSING", "TRUTH", "Tally", "are_row_numbers", "is_header", "is_number"]

# Cells that are missing values, as in pandas.read_csv.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
INFINITE = r"^[+-]?(?i:inf|infinity|nan)$"
TRUTH = r"^(?i:true|false|0|1)$"
_PLACEHOLDER = r"^[^\p{L}\p{N}]+$"  # "?" or "-": no letter and no digit
_DATE = r"^(\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}( .*)?)$"
_GROUPED = r"^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]+)?$"  # with separators of thousands
_UNGROUPED = r"^[+-]?[0-9]{4,}(\.[0-9]*)?$"
_NUMBERS = f"{NUMBER}|{INFINITE}".replace(r"\.", "[.,]")
_MAX_TEXT_SHARE = 0.01  # largest share of text in a column of numbers
# Forms of labels, and the text that stands for all labels of a form in `Tally.texts`.
_FORMS = {r"^[0-9]{2,18}$": "10", r"^-[0-9]{1,18}$": "-1", r"^-?[0-9]{1,18}\.[0-9]{1,18}$": "0.5"}


@dataclass
class Tally:
    """Counts of the cells of a column by type."""

    known: int = 0  # cells that are not missing
    numbers: int = 0  # cells that are numbers
    truths: int = 0  # cells that are true, false, 0 or 1
    dates: int = 0  # cells that are dates
    placeholders: int = 0  # cells without letters and digits, such as "?"
    grouped: int = 0  # cells with separators of thousands
    ungrouped: int = 0  # numbers from 1,000 on without separators of thousands
    word: str | None = None  # a cell that is neither a number nor a placeholder
    texts: set[str] = field(default_factory=set)  # labels, with one text for labels of one form

    def add(self, cells: Any, *, missing: Sequence[str], labels: bool) -> None:
        """Count the cells of an Arrow array of strings."""
        pa = arrow("CSV")
        pc = pa.compute
        if not labels:
            try:
                numbers = cells.cast("float64")
            except pa.ArrowInvalid:
                pass
            else:
                self.known += len(cells) - cells.null_count
                self.numbers += len(cells) - cells.null_count
                self.ungrouped += (pc.max(pc.abs(numbers)).as_py() or 0) >= 1000
                return
        counted = pc.value_counts(pc.utf8_trim(cells.drop_null(), " \t"))
        counted = counted.filter(pc.invert(pc.is_in(counted.field(0), pa.array(missing))))
        texts, counts = counted.field(0), counted.field(1)

        def count(pattern: str) -> int:
            return int(pc.sum(counts.filter(pc.match_substring_regex(texts, pattern))).as_py() or 0)

        self.known += int(pc.sum(counts).as_py() or 0)
        self.numbers += count(_NUMBERS)
        self.truths += count(TRUTH)
        self.dates += count(_DATE)
        self.placeholders += count(_PLACEHOLDER)
        self.grouped += count(_GROUPED)
        self.ungrouped += count(_UNGROUPED)
        if self.word is None:
            not_words = pc.match_substring_regex(texts, f"{_NUMBERS}|{_PLACEHOLDER}")
            words = texts.filter(pc.invert(not_words))
            self.word = words[0].as_py() if len(words) else None
        if labels and not (self.texts and kind_of_texts(self.texts, "auto") == "str"):
            for form, text in _FORMS.items():
                texts = pc.if_else(pc.match_substring_regex(texts, form), text, texts)
            self.texts |= {*texts.unique().to_pylist()}

    @property
    def kind(self) -> str:
        """Kind of the column: "number" if at least half of its cells are numbers.

        Missing cells do not count, nor do placeholders in a column that has numbers.
        """
        if self.truths == self.known and self.numbers < self.known:
            return "bool"
        cells = self.known - self.placeholders if self.numbers else self.known
        if 2 * self.numbers >= cells:
            return "number"
        return "date" if self.dates == self.known else "text"

    @property
    def has_thousands(self) -> bool:
        """Whether there are numbers from 1,000 on, all of them with separators of thousands."""
        return self.grouped > 0 and not self.ungrouped

    @property
    def mixed(self) -> bool:
        """Whether a column of numbers has more text than a few typing errors.

        Placeholders do not count: `na_values` can declare them missing.
        """
        words = self.known - self.numbers - self.placeholders
        return self.kind == "number" and words > max(1.0, _MAX_TEXT_SHARE * self.known)


# ---- names in the first line ---------------------------------------------------------------------


def is_header(first: list[str], rest: list[list[str]], options: Options) -> bool:
    """Whether the first fields are names of columns; `rest` are fields of the next lines."""
    if options.header is not None:
        return options.header
    columns = (options.target, *(options.columns or ()), *options.drop, *options.categorical)
    named = {c for c in columns if isinstance(c, str) and not is_number(c)}
    if named & {*first}:
        return True
    numbers = [j for j, text in enumerate(first) if is_number(text)]
    if not numbers:
        return True
    texts = [j for j, text in enumerate(first) if text and not is_number(text)]
    if not rest or not texts:
        return False
    if any(is_number(rest[0][j]) for j in texts):  # a name above a number
        return True
    # Wavelengths or years above numbers, and a name above labels: the first line increases from
    # column to column, the next lines do not, and the name differs from all labels.
    return (
        all(first[j] not in {fields[j] for fields in rest} for j in texts)
        and len(numbers) > 2
        and _increase(first, numbers)
        and not all(_increase(fields, numbers) for fields in rest)
    )


def _increase(fields: list[str], places: list[int]) -> bool:
    try:
        values = [float(fields[j]) for j in places]
    except ValueError:
        return False
    return all(a < b for a, b in pairwise(values))


def are_row_numbers(texts: Sequence[str]) -> bool:
    """Whether cells are distinct whole numbers, as in the index that pandas writes."""
    return 0 < len({*texts}) == len(texts) and all(re.fullmatch("[0-9]+", text) for text in texts)


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a cell is a number with this decimal point."""
    if decimal == ",":
        text = text.replace(".", "x").replace(",", ".")
    return re.match(NUMBER, text) is not None
