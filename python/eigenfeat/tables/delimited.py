"""CSV files: split into cells of text by pyarrow, and converted a batch at a time.

One parser for all: the same cells are read, and the same ones are bad, whether bad samples are
errors, left out or marked. Python's own parser, which is slow, knows the lines for error messages.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.tables.columnar import NUMBER, TableSource, text_kind
from eigenfeat.tables.errors import (
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
from eigenfeat.tables.source import Mask, Options, Source

__all__ = ["DelimitedSource"]

_BLOCK_BYTES = 4 << 20  # of text that is parsed at once
_FIRST_BYTES = 1 << 20  # of text that types of columns are inferred from
_MOST_BYTES = 64 << 20  # of a line
_FIRST_RECORDS = 200  # beside which the first line is looked at
# Cells that are missing values.
MISSING = [
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
    *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
]
_INFINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_TRUTH = r"^(?i:true|false|0|1)$"
_TEXTS = ("string", "time32[s]")  # that pyarrow infers for columns of text
_DATE = r"^(\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}( .*)?)$"


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
        self._typed = True  # whether pyarrow may convert cells, of which none is known to be bad
        self.first_fields, rest, lines, text = self._first_records()
        self._check_delimiter(rest)
        self.named = _is_header(self.first_fields, rest, options)
        self._header_lines = lines if self.named else 0
        self.facts = {"delimiter": self._delimiter, "header": self.named}
        stored = len(self.first_fields)
        self._set_columns(self.first_fields if self.named else [str(j) for j in range(stored)])
        columns = self._first_columns(text)
        types, kinds = zip(*_types_of(columns), strict=True)
        known = {}
        if isinstance(first, DelimitedSource):  # perhaps in another order
            known = dict(zip(first.names, first.kinds, strict=True))
        asked = dict.fromkeys(options.categories, "text")
        kinds = tuple(
            asked.get(name, asked.get(j, known.get(name, kind)))
            for j, (name, kind) in enumerate(zip(self.names, kinds, strict=False))
        )
        self._set_types(types, kinds)

        def label_kind(goal: int) -> str:
            texts = {(cell or "").strip() for cell in columns[goal].unique().to_pylist()}
            return text_kind(sorted(texts), options.labels)

        self._set_label_kind(first, label_kind)

    # ---- the first lines ---------------------------------------------------------------------

    def _first_records(self) -> tuple[list[str], list[list[str]], int, str]:
        """Fields of the first line, those of the next ones, the line at which it ends, and all."""
        size = _FIRST_BYTES
        while True:
            with self._opened() as stream:
                head, more = stream.read(size), bool(stream.read(1))
            if b"\0" in head and self._encoding == "utf-8":
                raise ValueError(
                    f"{self.path}: expected text, got a file with zero bytes; encoding "
                    "(--encoding) names another than UTF-8"
                )
            try:
                text = codecs.getincrementaldecoder(self._encoding)().decode(head, not more)
            except UnicodeError as error:
                raise self._undecodable(error) from None
            text = text.removeprefix("\ufeff")
            with _long_fields():
                reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._delimiter)
                records = filter(None, reader)
                try:
                    first = next(records, [])
                    lines = reader.line_num
                    rest = [*islice(records, _FIRST_RECORDS)]
                except csv.Error as error:
                    raise ValueError(
                        f"{self.path}: expected lines of fields, got {error}"
                    ) from None
            if not more or len(rest) > 1:  # the last one may not be complete
                break
            if size == _MOST_BYTES:
                raise self._too_long(lines + 1 if rest else 1)
            size = min(8 * size, _MOST_BYTES)
        if not text.strip():
            raise ValueError(f"{self.path}: expected rows, got an empty file")
        self._has_one_line = not rest
        if more:
            rest = rest[:-1]
            text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
        same = (record for record in (first, *rest) if len(record) == len(first))
        first, *rest = ([field.strip() for field in record] for record in same)
        return first, rest, lines, text

    def _first_columns(self, text: str) -> list[Any]:
        """The cells of all columns of a text as the types that pyarrow infers; labels are text."""
        pa = arrow("CSV")
        if self.named and self._has_one_line:
            return [pa.nulls(0)] * self._stored
        encoded, every = text.encode(), [*range(self._stored)]
        # To pyarrow 0x1 is a number: where there may be such cells, all of them are text.
        words = every if re.search("0[xX]", text) else {self.choice.target} & {*every}
        types = dict.fromkeys(words, pa.string())
        stream, size = io.BytesIO(encoded), len(encoded) + 1
        with (
            damage_named(self.path),
            self._reader(stream, "utf-8", size, every, types, lambda _: "skip") as batches,
        ):
            batch = next(iter(batches), None)
        return [pa.nulls(0)] * self._stored if batch is None else [*batch.columns]

    def _check_delimiter(self, rest: list[list[str]]) -> None:
        """OptionError if fields seem to be separated by something else."""
        if self._options.delimiter is not None or len(self.first_fields) > 1:
            return
        lines = [self.first_fields[0], *(row[0] for row in rest[:1])]
        for other in ";\t|":
            if all(other in line for line in lines):
                raise OptionError(
                    "delimiter",
                    f"expected fields separated by {self._delimiter!r} in {self.path}, got one "
                    f"field with {other!r} in it; delimiter={other!r} (--delimiter "
                    f"'{'tab' if other == chr(9) else other}') separates there",
                )

    # ---- cells -------------------------------------------------------------------------------

    @contextmanager
    def _opened(self) -> Iterator[_Stream]:
        stream = _Stream(open_bytes(self.path), self._options.comment)
        try:
            yield stream
        finally:
            stream.close()

    def _pieces(
        self, wanted: list[int], skip: int
    ) -> Iterator[tuple[int, int, dict[int, Any], Mask | None, float | None]]:
        pa = arrow("CSV")
        done, size = skip, _BLOCK_BYTES
        if self.named and self._has_one_line:
            raise ValueError(f"{self.path}: expected rows, got a header alone")
        while True:
            typed = self._typed
            try:
                with self._opened() as stream:
                    start = 0
                    for n, columns, bad in self._batches(stream, size, wanted, typed):
                        if start + n > done:
                            if not typed:
                                columns, bad = self._converted(columns, bad)
                            wrong = bad if bad.any() else None
                            yield start, n, columns, wrong, fraction_of(stream.file, self.path)
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
        self, stream: _Stream, size: int, wanted: list[int], typed: bool
    ) -> Iterator[tuple[int, dict[int, Any], Mask]]:
        """Number of samples, their cells by column, and which have a wrong number of fields."""
        pa = arrow("CSV")
        wrong: list[int] = []

        def leave_out(row: Any) -> str:
            wrong.append(row.number - 1 - self._header_lines)
            return "skip"

        numbers = {"number": pa.from_numpy_dtype(self.dtype), "bool": pa.bool_()}
        types = dict.fromkeys(wanted, pa.string())
        if typed:
            types |= {j: numbers.get(self.kinds[j], pa.string()) for j in self.choice.features}
        read = [j for j in wanted if j < self._stored]
        at = taken = 0
        with self._reader(stream, self._encoding, size, read or [0], types, leave_out) as reader:
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

    def _reader(
        self,
        stream: Any,
        encoding: str,
        size: int,
        columns: list[int],
        types: dict[int, Any],
        on_wrong_line: Callable[[Any], str],
    ) -> Any:
        """Pyarrow's reader of some columns, whose types are inferred where none are given."""
        from pyarrow import csv as arrow_csv

        return arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,  # or wrong lines have no numbers
                block_size=size,
                skip_rows=self._header_lines,
                column_names=[str(j) for j in range(self._stored)],
                encoding=encoding,
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
                invalid_row_handler=on_wrong_line,
            ),
            arrow_csv.ConvertOptions(
                column_types={str(j): kind for j, kind in types.items()},
                include_columns=[str(j) for j in columns],
                null_values=MISSING,
                strings_can_be_null=True,
                decimal_point=self._options.decimal,
            ),
        )

    def _converted(self, columns: dict[int, Any], bad: Mask) -> tuple[dict[int, Any], Mask]:
        """Columns of numbers in place of their cells, and which samples are bad."""
        columns = dict(columns)
        for j in self.choice.features:
            if j in columns and self.kinds[j] in ("number", "bool"):
                columns[j], wrong = self._numbers(columns[j], self.kinds[j])
                bad = bad if wrong is None else bad | wrong
        return columns, bad

    def _numbers(self, cells: Any, kind: str) -> tuple[npt.NDArray[Any], Mask | None]:
        """Cells as numbers, NaN where they are missing, and which are none (None: all are)."""
        pa = arrow("CSV")
        pc, number = pa.compute, pa.from_numpy_dtype(self.dtype)
        if kind == "number" and self._options.decimal == ".":
            try:
                return cells.cast(number).to_numpy(zero_copy_only=False), None
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
        values = pc.if_else(missing, float("nan"), values.cast(number))
        fine: Mask = pc.or_(fit, missing).to_numpy(zero_copy_only=False)
        return values.to_numpy(zero_copy_only=False).astype(self.dtype), ~fine

    def _labels(self, column: Any) -> tuple[Any, Any, Any]:
        try:
            return super()._labels(column)
        except ValueError:  # perhaps of a label that a quote which is never closed begins
            for _ in self._records():
                pass
            raise

    # ---- what is wrong -----------------------------------------------------------------------

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line and fields of every sample, by Python's parser."""
        comment, at, begun = self._options.comment, 0, 0

        def lines() -> Iterator[str]:
            nonlocal at, begun
            for at, line in enumerate(text, 1):
                if comment is None or not line.startswith(comment):
                    begun = begun or at
                    yield line

        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        with (
            _long_fields(),
            open_bytes(self.path) as raw,
            io.TextIOWrapper(raw, encoding, "replace", newline="") as text,
        ):
            reader = csv.reader(lines(), delimiter=self._delimiter, strict=True)
            header = self.named
            while True:
                begun = 0
                try:
                    fields = next(reader, None)
                except csv.Error as error:
                    what = f"text beside a quoted field, up to line {at}"
                    if "end of data" in str(error):
                        what = "a quote that is never closed"
                    raise ValueError(
                        f"{self.path}: line {begun}: expected quoted fields that end before the "
                        f"delimiter, got {what}"
                    ) from None
                if fields is None:
                    return
                if fields and not header:
                    yield begun, fields
                header = header and not fields

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
        return next((line for line, _ in islice(self._records(), row, None)), 1)

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
        """Say what is wrong with a sample: the first of its cells that is bad."""
        line, fields = next(islice(self._records(), row, None), (1, [""]))
        name, what = self._fault(fields, dtype, missing)
        return BadRowError(self.path, "line", line, name, what)

    def _fault(self, fields: list[str], dtype: DType, missing: bool) -> tuple[str | None, str]:
        if len(fields) != self._stored:
            return None, f"expected {self._stored} fields, got {len(fields)}"
        for j in self.choice.features:
            kind = self.kinds[j]
            if j >= self._stored or kind not in ("number", "bool"):
                continue
            text = fields[j].strip(" \t")
            values, wrong = self._numbers(arrow("CSV").array([text]), kind)
            if text in MISSING:
                if not missing:
                    return self.names[j], MISSING_NUMBER
            elif wrong is not None and wrong[0]:
                wanted = "true or false" if kind == "bool" else "a number"
                return self.names[j], f"expected {wanted}, got {show(text)}"
            elif not np.isfinite(values.astype(dtype)[0]):
                return self.names[j], unfit(text, dtype)
        goal = self.choice.target
        text = "" if goal is None or goal >= self._stored else fields[goal].strip()
        return self.target_name, unfit(text, str(self.label_kind)) if text else MISSING_LABEL


class _Stream:
    """Bytes of a file without its comments; counts quotes and lines as they pass."""

    closed = False

    def __init__(self, file: Any, comment: str | None) -> None:
        self.file, self._comment = file, None if comment is None else comment.encode()
        self.quotes = self.lines = 0

    def read(self, size: int = -1) -> bytes:
        """Read about so many bytes; none at the end."""
        text, more = b"", True
        while more and not text:
            if self._comment is None:
                text = self.file.read(size)
                more = False
            else:
                lines = self.file.readlines(max(size, 1))
                text = b"".join(line for line in lines if not line.startswith(self._comment))
                more = bool(lines)
        self.quotes += text.count(b'"')
        self.lines += text.count(b"\n") or text.count(b"\r")
        return bytes(text)

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self.file.close()


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's parser read fields as long as a line may be."""
    before = csv.field_size_limit(_MOST_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


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


def _types_of(columns: list[Any]) -> list[tuple[str, str]]:
    """Type, for people, and kind of columns whose first cells are given."""
    pa = arrow("CSV")
    kinds = {"null": "number", "int64": "number", "double": "number", "bool": "bool"}
    types = [
        (name, kinds[name]) if (name := str(column.type)) in kinds else ("date", "date")
        for column in columns
    ]
    places = [j for j, column in enumerate(columns) if str(column.type) in _TEXTS]
    if not places or not len(columns[0]):
        return types
    pc = pa.compute
    cells = pa.concat_arrays([columns[j].cast("string") for j in places])
    texts = pc.utf8_trim(pc.fill_null(cells, ""), " \t")
    known = pc.invert(pc.is_in(texts, pa.array(MISSING)))

    def count(pattern: str) -> npt.NDArray[np.intp]:
        fit = pc.and_(known, pc.match_substring_regex(texts, pattern))
        flags: Mask = fit.to_numpy(zero_copy_only=False)
        return flags.reshape(len(places), -1).sum(axis=1)

    counts = (count(p) for p in ("", f"{NUMBER}|{_INFINITE}".replace(r"\.", "[.,]"), _TRUTH, _DATE))
    for j, n, n_numbers, n_truths, n_dates in zip(places, *counts, strict=True):
        if n_numbers == n or (2 * n_numbers >= n and n_truths < n):
            types[j] = ("double", "number")  # text among numbers is an exception, and an error
        elif n_truths == n:
            types[j] = ("bool", "bool")
        else:
            types[j] = ("date", "date") if n_dates == n else ("string", "text")
    return types
