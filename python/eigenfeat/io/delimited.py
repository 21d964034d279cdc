"""CSV files: split into cells of text by pyarrow, and converted a batch at a time.

One parser for all: the same cells are read, and the same ones are bad, whether bad samples are
errors, left out or marked. Python's own parser, which is slow, knows the lines for error messages.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.io.columnar import TableSource
from eigenfeat.io.errors import (
    MISSING_LABEL,
    MISSING_NUMBER,
    BadRowError,
    OptionError,
    arrow,
    damage_named,
    fraction_of,
    open_bytes,
    unfit,
)
from eigenfeat.io.source import NUMBER, Mask, Options, Source, kind_of_texts

__all__ = ["DelimitedSource"]

_BLOCK_BYTES = 4 << 20  # of text that is parsed at once
_FIRST_BYTES = 1 << 20  # of text that types of columns are inferred from
_MOST_BYTES = 64 << 20  # of a line
# Beside which the first line is looked at: so many lines, or two of more characters.
_FIRST_RECORDS, _FIRST_CHARACTERS = 200, 1 << 18
# Cells that are missing values.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
]
_INFINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_TRUTH = r"^(?i:true|false|0|1)$"
_DATE = r"^(\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}( .*)?)$"
_TYPES = {"number": "double", "text": "string"}  # for people


class DelimitedSource(TableSource):
    """A CSV file; types are those of the first file, or of its first cells."""

    format = "csv"
    unit = "line"

    def __init__(
        self, path: Path, options: Options, keys: Mapping[str, str], first: Source | None
    ) -> None:
        super().__init__(path, options, keys)
        self.dtype = np.dtype(options.dtype or np.float64)
        self._encoding = codecs.lookup(options.encoding or "utf-8").name
        self._delimiter = options.delimiter or ("\t" if ".tsv" in path.suffixes else ",")
        if self._delimiter == options.decimal:
            raise OptionError("decimal", f"expected another than the delimiter {self._delimiter!r}")
        self._sound = False  # whether all quotes are known to be closed
        self._first_look(options)
        self._typed = False  # whether pyarrow makes numbers of cells, of which none is known as bad
        columns = self._first_cells()
        kinds, known = _kinds_of(columns), {}
        if isinstance(first, DelimitedSource):  # perhaps in another order
            known = dict(zip(first.names, first.kinds, strict=True))
        text = dict.fromkeys(options.categories, "text")
        kinds = [
            text.get(name, text.get(j, known.get(name, kind)))
            for j, (name, kind) in enumerate(zip(self.names, kinds, strict=False))
        ]
        goal, label_kind = self.choice.target, None
        if goal is not None and goal < self._stored:
            texts = (str(cell or "").strip() for cell in columns[goal].unique().to_pylist())
            label_kind = kind_of_texts({*texts} - {*MISSING}, options.labels)
        self._typed = True
        self._set_types([_TYPES.get(kind, kind) for kind in kinds], kinds, label_kind, first)

    def _first_look(self, options: Options) -> None:
        """Look for a header, and for another delimiter, in the first lines."""
        records: list[list[str]] = []
        size = lines = 0
        for _, fields, at in self._records(first=True):
            records.append(fields)
            lines, size = lines or at, size + sum(map(len, fields))
            if len(records) > (1 if size > _FIRST_CHARACTERS else _FIRST_RECORDS):
                break
        if not records:
            raise ValueError(f"{self.path}: expected rows, got an empty file")
        if any("\0" in field for field in records[0]):
            raise ValueError(
                f"{self.path}: expected text, got a file with zero bytes; encoding "
                "(--encoding) names another than UTF-8"
            )
        has_others = len(records) > 1
        records = [one for one in records if len(one) == len(records[0])]
        self.first_fields, *rest = ([field.strip() for field in one] for one in records)
        if options.delimiter is None and len(self.first_fields) == 1:
            for other in ";\t|":
                if all(other in line[0] for line in [self.first_fields, *rest[:1]]):
                    raise OptionError(
                        "delimiter",
                        f"expected fields separated by {self._delimiter!r} in {self.path}, got one "
                        f"field with {other!r} in it; delimiter={other!r} (--delimiter "
                        f"'{'tab' if other == chr(9) else other}') separates there",
                    )
        self.named = _is_header(self.first_fields, rest, options)
        self._header_lines = lines if self.named else 0
        self._has_header_alone = self.named and not has_others
        self.facts = {"delimiter": self._delimiter, "header": self.named}
        numbers = map(str, range(len(self.first_fields)))
        self._set_columns(self.first_fields if self.named else [*numbers])

    def _first_cells(self) -> list[Any]:
        """First cells of all columns, as text."""
        every = [*range(self._stored)]
        if self._has_header_alone:
            return [arrow("CSV").array([], "string")] * self._stored
        try:
            text = self._first_text()
        except UnicodeError as error:
            raise self._undecodable(error) from None
        with damage_named(self.path):
            size = 4 * len(text) + 1  # more than it takes in UTF-8: one batch
            columns = next(self._batches(io.BytesIO(text), size, every))[1]
        return [columns[j] for j in every]

    def _first_text(self) -> bytes:
        """The first megabyte of text, to the end of a sample, and one sample at least."""
        with damage_named(self.path), open_bytes(self.path) as file:
            stream = _Stream(file, self.path, self._options.comment)
            parts = [stream.read(_FIRST_BYTES)]
            size, quotes = len(parts[0]), stream.quotes
            while (size < _MOST_BYTES and (len(parts) < self._header_lines + 2 or quotes % 2)) and (
                line := file.readline(_MOST_BYTES)
            ):
                size, quotes = size + len(line), quotes + line.count(b'"')
                parts.append(b"" if stream.is_comment(line) else line)
        decoder = codecs.getincrementaldecoder(self._encoding)()
        return decoder.decode(b"".join(parts)).encode(self._encoding)

    # ---- cells -------------------------------------------------------------------------------

    def _pieces(
        self, wanted: list[int], skip: int
    ) -> Iterator[tuple[int, int, dict[int, Any], Mask | None, float | None]]:
        """Cells are text from the first one on that is not of its column's type."""
        pa = arrow("CSV")
        done, size = skip, _BLOCK_BYTES
        if self._has_header_alone:
            raise ValueError(f"{self.path}: expected rows, got a header alone")
        while True:
            typed, start = self._typed, 0
            try:
                with open_bytes(self.path) as file:
                    stream = _Stream(file, self.path, self._options.comment)
                    for n, columns, bad in self._batches(stream, size, wanted):
                        if start + n > done:
                            wrong = bad if bad.any() else None
                            yield start, n, columns, wrong, fraction_of(file, self.path)
                            done = start + n
                        start += n
                    self._check_quotes(stream, start)
                return
            except UnicodeError as error:
                raise self._undecodable(error) from None
            except pa.ArrowInvalid as error:
                text = " ".join(str(error).split())
                too_long = "straddl" in text or "skip" in text  # a line, or a field of several
                if too_long and size < _MOST_BYTES:
                    size = min(4 * size, _MOST_BYTES)
                elif too_long:
                    raise self._too_long(self._line_of(done)) from None
                elif "UTF8" in text:
                    raise self._undecodable(error) from None
                elif "conversion error" in text and typed:
                    self._typed = False
                else:
                    line = self._line_of(done)
                    raise ValueError(f"{self.path}: after line {line}: {text[:200]}") from None

    def _batches(
        self, stream: Any, size: int, wanted: list[int]
    ) -> Iterator[tuple[int, dict[int, Any], Mask]]:
        """Number of samples, their cells by column, and which have a wrong number of fields."""
        pa = arrow("CSV")
        from pyarrow import csv as arrow_csv

        wrong: list[int] = []

        def leave_out(row: Any) -> str:
            wrong.append(row.number - 1 - self._header_lines)
            return "skip"

        types = dict.fromkeys(wanted, pa.string())
        if self._typed:
            numbers = {"number": pa.from_numpy_dtype(self.dtype), "bool": pa.bool_()}
            types |= {j: numbers.get(self.kinds[j], pa.string()) for j in self.choice.features}
        read = [j for j in wanted if j < self._stored]
        at = taken = 0
        with arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,  # or wrong lines have no numbers
                block_size=size,
                skip_rows=self._header_lines,
                column_names=[str(j) for j in range(self._stored)],
                encoding=self._encoding,
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=leave_out
            ),
            arrow_csv.ConvertOptions(
                column_types={str(j): kind for j, kind in types.items()},
                include_columns=[str(j) for j in read or [0]],
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point=self._options.decimal,
            ),
        ) as reader:
            for batch in reader:
                n = batch.num_rows
                while taken < len(wrong) and wrong[taken] <= at + n:
                    taken, n = taken + 1, n + 1
                bad = np.zeros(n, dtype=bool)
                bad[np.array(wrong[taken - (n - batch.num_rows) : taken], dtype=int) - at] = True
                columns = batch.columns
                if bad.any():
                    places = pa.array(np.cumsum(~bad) - 1, mask=bad)
                    columns = [column.take(places) for column in columns]
                at += n
                yield n, dict(zip(read, columns, strict=False)), bad
        if n := len(wrong) - taken:
            yield n, {j: pa.nulls(n, types[j]) for j in read}, np.ones(n, dtype=bool)

    def _values(self, column: Any, kind: str) -> npt.NDArray[Any]:
        """A column as numbers; cells that are none are infinite."""
        if kind in ("number", "bool") and str(column.type) == "string":
            column = self._numbers(column, kind)
        return super()._values(column, kind)

    def _numbers(self, cells: Any, kind: str) -> Any:
        pa = arrow("CSV")
        pc, number = pa.compute, pa.from_numpy_dtype(self.dtype)
        if kind == "number" and self._options.decimal == ".":
            try:
                return cells.cast(number)
            except pa.ArrowInvalid:  # blanks, or what is no number
                pass
        texts = pc.utf8_trim(pc.fill_null(cells, ""), " \t")
        missing = pc.is_in(texts, pa.array(MISSING))
        if kind == "bool":
            fit = pc.match_substring_regex(texts, _TRUTH)
            values = pc.if_else(fit, pc.utf8_lower(texts), "0").cast("bool")
        else:
            if self._options.decimal != ".":
                texts = pc.if_else(pc.match_substring(texts, "."), "x", texts)
                texts = pc.replace_substring(texts, self._options.decimal, ".")
            fit = pc.match_substring_regex(texts, f"{NUMBER}|{_INFINITE}")
            values = pc.replace_substring_regex(pc.if_else(fit, texts, "0"), r"^\+", "")
        values = pc.if_else(fit, values.cast(number), float("inf"))
        return pc.if_else(missing, float("nan"), values)

    # ---- what is wrong -----------------------------------------------------------------------

    def _records(self, *, first: bool = False) -> Iterator[tuple[int, list[str], int]]:
        """Line and fields of header and samples, by Python's parser, and its number of lines.

        A `first` look overlooks what is wrong with quotes, but not with the encoding.
        """
        comment, at, begun = self._options.comment, 0, 0

        def lines() -> Iterator[str]:
            nonlocal at, begun
            while line := text.readline(_MOST_BYTES + 1):
                at += 1
                if len(line) > _MOST_BYTES:
                    raise self._too_long(at)
                if comment is None or not line.startswith(comment):
                    begun = begun or at
                    yield line

        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        before = csv.field_size_limit(_MOST_BYTES)
        with (
            damage_named(self.path),
            open_bytes(self.path) as raw,
            io.TextIOWrapper(raw, encoding, "strict" if first else "replace", newline="") as text,
        ):
            try:
                reader = csv.reader(lines(), delimiter=self._delimiter, strict=not first)
                for fields in reader:
                    if fields:
                        yield begun, fields, reader.line_num
                    begun = 0
            except UnicodeError as error:
                raise self._undecodable(error) from None
            except csv.Error as error:
                if "limit" in str(error):
                    raise self._too_long(begun) from None
                unclosed = "end of data" in str(error)
                what = f"text beside a quoted field, up to line {at}"
                what = "a quote that is never closed" if unclosed else what
                raise ValueError(
                    f"{self.path}: line {begun}: expected quoted fields that end before the "
                    f"delimiter, got {what}"
                ) from None
            finally:
                csv.field_size_limit(before)

    def _check_quotes(self, stream: _Stream, n: int) -> None:
        """ValueError that names the line of a quote that is never closed.

        Where there are as many lines as samples, none can have been taken for a part of a field.
        """
        if stream.quotes and not self._sound:
            if stream.quotes % 2 or stream.lines > n + int(self.named):
                for _ in self._records():
                    pass
            self._sound = True

    def _line_of(self, row: int) -> int:
        """Number of the line, from 1, on which a sample begins."""
        records = islice(self._records(), row + int(self.named), None)
        return next((line for line, _, _ in records), 1)

    def _undecodable(self, error: Exception) -> ValueError:
        if self._encoding != "utf-8":
            got = getattr(error, "object", b"")[getattr(error, "start", 0) :][:8]
            return ValueError(f"{self.path}: expected text in {self._encoding}, got {got!r}")
        at, undecoded = 1, b""
        with open_bytes(self.path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as wrong:
                    at, undecoded = number, line[max(wrong.start - 8, 0) : wrong.end]
                    break
        return ValueError(
            f"{self.path}: line {at}: expected text in UTF-8, got {undecoded!r}; set encoding "
            "(--encoding), for example latin-1"
        )

    def _too_long(self, line: int) -> ValueError:
        return ValueError(
            f"{self.path}: line {line}: expected rows of at most {_MOST_BYTES:,} bytes, got a "
            "longer one, or a quote that is not closed"
        )

    def complaint(
        self, row: int, column: int | None, value: Any, dtype: DType, *, missing: bool
    ) -> BadRowError:
        """Say what is wrong with a sample."""
        records = islice(self._records(), row + int(self.named), None)
        line, fields, _ = next(records, (1, [], 0))
        goal, place = self.choice.target, None if column is None else self.choice.features[column]
        if len(fields) != self._stored:
            what = f"expected {self._stored} fields, got {len(fields)}"
            return BadRowError(self.path, "line", line, None, what)
        if place is None or place >= self._stored:
            text = "" if goal is None or goal >= self._stored else fields[goal].strip()
            what = unfit(text, str(self.label_kind)) if text else MISSING_LABEL
            return BadRowError(self.path, "line", line, self.target_name, what)
        text = fields[place].strip(" \t")
        plain = text if self._options.decimal == "." else text.replace(".", "x").replace(",", ".")
        if text in MISSING:
            what = MISSING_NUMBER
        elif self.kinds[place] == "bool":
            what = f"expected true or false, got {show(text)}"
        elif re.match(f"{NUMBER}|{_INFINITE}", plain):
            what = unfit(text, dtype)
        else:
            what = f"expected a number, got {show(text)}"
        return BadRowError(self.path, "line", line, self.names[place], what)


class _Stream:
    """Bytes of a file without its comments; counts quotes and lines as they pass."""

    closed = False

    def __init__(self, file: Any, path: Path, comment: str | None) -> None:
        self._file, self._path = file, path
        self._comment = None if comment is None else comment.encode()
        self.quotes = self.lines = 0

    def read(self, size: int = -1) -> bytes:
        """Read about so many bytes; none at the end."""
        text, more = b"", True
        with damage_named(self._path):
            while more and not text:
                if self._comment is None:
                    text, more = self._file.read(size), False
                else:
                    lines = self._file.readlines(max(size, 1))
                    text = b"".join(line for line in lines if not self.is_comment(line))
                    more = bool(lines)
        self.quotes += text.count(b'"')
        self.lines += text.count(b"\n") or text.count(b"\r")
        return bytes(text)

    def is_comment(self, line: bytes) -> bool:
        """Whether a line is left out."""
        return self._comment is not None and line.startswith(self._comment)

    def close(self) -> None:
        """Leave the file open: pyarrow closes what it has read."""


# ---- what the first lines say --------------------------------------------------------------------


def _is_header(first: list[str], rest: list[list[str]], options: Options) -> bool:
    """Whether the first fields are names of columns."""
    if options.header is not None:
        return options.header
    columns = (options.target, *(options.columns or ()), *options.drop)
    asked = {c for c in columns if isinstance(c, str) and not _is_number(c)}
    if asked & {*first}:
        return True
    numbers = [j for j, text in enumerate(first) if _is_number(text)]
    if not numbers:
        return True
    texts = [j for j, text in enumerate(first) if j not in {*numbers} and text]
    if not rest or not texts:
        return False
    if any(_is_number(rest[0][j]) for j in texts):  # a name above a number
        return True
    # Wavelengths or years above numbers, and a name above labels: the numbers increase, as those of
    # the next lines do not, and no sample has that label.
    label = all(first[j] not in {record[j] for record in rest} for j in texts)
    return (
        label
        and len(numbers) > 2
        and _increase(first, numbers)
        and not all(_increase(record, numbers) for record in rest)
    )


def _increase(fields: list[str], places: list[int]) -> bool:
    try:
        values = [float(fields[j]) for j in places]
    except ValueError:
        return False
    return all(a < b for a, b in pairwise(values))


def _is_number(text: str) -> bool:
    return re.match(NUMBER, text) is not None


def _kinds_of(columns: Sequence[Any]) -> list[str]:
    """Kinds of columns whose first cells, as text, are given."""
    pa = arrow("CSV")
    pc, kinds, places = pa.compute, ["number"] * len(columns), []
    for j, column in enumerate(columns):
        try:
            column.cast("float64")
        except pa.ArrowInvalid:
            places.append(j)
    if not places:
        return kinds
    cells = pa.concat_arrays([columns[j] for j in places])
    texts = pc.utf8_trim(pc.fill_null(cells, ""), " \t")
    known = pc.invert(pc.is_in(texts, pa.array(MISSING)))

    def count(pattern: str) -> npt.NDArray[np.intp]:
        fit = pc.and_(known, pc.match_substring_regex(texts, pattern))
        flags: Mask = fit.to_numpy(zero_copy_only=False)
        return flags.reshape(len(places), -1).sum(axis=1)

    counts = (count(p) for p in ("", f"{NUMBER}|{_INFINITE}".replace(r"\.", "[.,]"), _TRUTH, _DATE))
    for j, n, n_numbers, n_truths, n_dates in zip(places, *counts, strict=True):
        if n_truths == n and n_numbers < n:
            kinds[j] = "bool"
        elif 2 * n_numbers < n:  # else text among numbers is an exception, and an error
            kinds[j] = "date" if n_dates == n else "text"
        else:
            kinds[j] = "number"
    return kinds
