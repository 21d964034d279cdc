"""CSV files: pyarrow splits them into cells and converts the cells, a batch at a time.

Python's csv module, which is slower, reads the first lines, finds line numbers for error messages,
and checks quotes.
"""

from __future__ import annotations

import atexit
import codecs
import csv
import io
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.io.columnar import TableSource
from eigenfeat.io.csv_types import (
    INFINITE,
    MISSING,
    TRUTH,
    Tally,
    are_row_numbers,
    is_header,
    is_number,
)
from eigenfeat.io.errors import (
    MISSING_LABEL,
    MISSING_NUMBER,
    BadRowError,
    OptionError,
    arrow,
    damage_named,
    ending_of,
    fraction_of,
    not_finite,
    open_bytes,
)
from eigenfeat.io.source import NUMBER, Mask, Options, kind_of_texts

__all__ = ["DelimitedSource", "Scans", "settle_types"]

Scans = dict[tuple[Any, ...], tuple[list["int | None"], dict[tuple[str, int], Tally]]]

_BLOCK_BYTES = 4 << 20  # text that is parsed at a time
_MAX_LINE_BYTES = 64 << 20  # text of the longest line
_MIN_BLOCK_BYTES = 1 << 16  # least text that is parsed at a time
_SCANNED_BYTES = 32 << 20  # text of all files together, from which types of columns are inferred
_HEADER_RECORDS = 200  # records compared with the first line to detect a header
_HEADER_CHARACTERS = 1 << 18  # limit of the text of these records; one record is always compared
_SECONDS_OF_LAST_READS = 0.1  # time in which pyarrow's threads notice the end of their streams
_THOUSANDS = r"^[+-]?[0-9]{1,3}([,.' ][0-9]{3})+([.,][0-9]+)?$"
_TYPES = {"number": "double", "text": "string"}  # names of the kinds in descriptions of files


class DelimitedSource(TableSource):
    """A CSV file. `settle_types` sets the types of its columns."""

    format = "csv"
    unit = "line"

    def __init__(self, path: Path, options: Options, keys: Mapping[str, str]) -> None:
        super().__init__(path, options, keys)
        arrow(str(path))
        self.dtype = np.dtype(options.dtype or np.float64)
        self._encoding = codecs.lookup(options.encoding or "utf-8").name
        self.comment = options.comment
        self.is_plain = self._encoding == "utf-8" and self.comment is None
        self._delimiter = options.delimiter or ("\t" if ending_of(path) == ".tsv" else ",")
        if self._delimiter == options.decimal:
            raise OptionError(
                "decimal",
                f"expected a character other than the delimiter {self._delimiter!r}, which "
                "delimiter (--delimiter) sets",
            )
        self._missing = [*(MISSING if options.keep_default_na else ("",)), *options.na_values]
        self._quotes_checked = False  # whether a pass has found all quotes closed
        self._typed = False  # whether pyarrow converts cells to numbers: False after a wrong cell
        self._read_first_lines(options)

    def _read_first_lines(self, options: Options) -> None:
        """Detect a header, and a wrong delimiter, in the first lines."""
        records: list[list[str]] = []
        size = lines = 0
        for _, fields, last_line in self._records(first=True):
            records.append(fields)
            lines, size = lines or last_line, size + sum(map(len, fields))
            if len(records) > (1 if size > _HEADER_CHARACTERS else _HEADER_RECORDS):
                break
        if not records:
            raise ValueError(f"{self.path}: expected rows, got an empty file")
        if any("\0" in field for field in records[0]):
            raise ValueError(
                f"{self.path}: expected text, got a file with zero bytes; set encoding "
                "(--encoding) if it is not UTF-8"
            )
        has_others = len(records) > 1
        records = [fields for fields in records if len(fields) == len(records[0])]
        self.first_fields, *rest = ([field.strip() for field in fields] for fields in records)
        if options.delimiter is None and len(self.first_fields) == 1:
            for other in ";\t|":
                if all(other in line[0] for line in [self.first_fields, *rest[:1]]):
                    raise OptionError(
                        "delimiter",
                        f"expected fields separated by {self._delimiter!r} in {self.path}, got one "
                        f"field with {other!r} in it; set delimiter={other!r} (--delimiter "
                        f"'{'tab' if other == chr(9) else other}')",
                    )
        self.named = is_header(self.first_fields, rest, options)
        self.header_lines = lines if self.named else 0
        self._has_header_alone = self.named and not has_others
        self.facts = {"delimiter": self._delimiter, "header": self.named}
        numbers = map(str, range(len(self.first_fields)))
        first_column = [fields[0] for fields in rest]
        numbered = self.named and not self.first_fields[0] and are_row_numbers(first_column)
        self._set_columns(self.first_fields if self.named else [*numbers], [0] * numbered)
        chosen = options.columns is not None or not {0, "0", ""}.isdisjoint(options.drop)
        self.index_left_out = numbered and not chosen and self.choice.target != 0

    def tally(self, tallies: dict[tuple[str, int], Tally], n_bytes: float) -> None:
        """Count the cells of all columns, over about `n_bytes` of text."""
        target, size = self.choice.target, int(np.clip(n_bytes, _MIN_BLOCK_BYTES, _BLOCK_BYTES))
        by_column = [tallies.setdefault(key, Tally()) for key in self._column_keys]
        if self._has_header_alone:
            return
        for _, _, columns, _, _ in self._pieces([*range(self._stored)], 0, size):
            for j, tally in enumerate(by_column):
                tally.add(columns[j], missing=self._missing, labels=j == target)
            n_bytes -= sum(column.nbytes for column in columns.values())
            if n_bytes <= 0:
                break

    def settle(self, tallies: Mapping[tuple[str, int], Tally]) -> None:
        """Set the types of columns, and the kind of labels, from the counts in all files."""
        own = [tallies[key] for key in self._column_keys]
        # With semicolons between fields, a comma is more often a decimal point.
        if self._options.decimal == "." and self._delimiter != ";":
            self.thousands = [j for j, tally in enumerate(own) if tally.has_thousands]
        mixed = [j for j, tally in enumerate(own) if tally.mixed and j not in self.thousands]
        self.mixed = {j: str(own[j].word) for j in mixed}
        types = ["string" if tally.mixed else _TYPES.get(tally.kind, tally.kind) for tally in own]
        target, label_kind = self.choice.target, None
        if target is not None and target < self._stored:
            label_kind = kind_of_texts(own[target].texts, self._options.labels)
        self._typed = True
        self._set_types(types, [tally.kind for tally in own], label_kind)

    @property
    def _column_keys(self) -> list[tuple[str, int]]:
        """Name of each column and number of earlier columns of this name, equal in all files."""
        seen, keys = Counter[str](), []
        for name in self.names[: self._stored]:
            keys.append((name, seen[name]))
            seen[name] += 1
        return keys

    # ---- cells -------------------------------------------------------------------------------

    def _pieces(
        self, wanted: list[int], skip: int, size: int = 0
    ) -> Iterator[tuple[int, int, dict[int, Any], Mask | None, float | None]]:
        """Yield cells that pyarrow converts; from the first wrong cell on, cells as text."""
        pa = arrow("CSV")
        done, size = skip, size or _BLOCK_BYTES
        if self._has_header_alone:
            raise ValueError(f"{self.path}: expected rows, got a header alone")
        while True:
            typed, start = self._typed, 0
            try:
                with open_bytes(self.path) as file:
                    stream = _Stream(file, self)
                    for n, columns, bad in self._batches(stream, size, wanted):
                        if start + n > done:
                            wrong = bad if bad.any() else None
                            yield start, n, columns, wrong, fraction_of(file, self.path)
                            done = start + n
                        start += n
                    self._check_quotes(stream, start)
                return
            except pa.ArrowInvalid as error:
                text = " ".join(str(error).split())
                # A header, a line or a field of several lines is longer than a block.
                too_long = "straddl" in text or "skip" in text
                if too_long and size < _MAX_LINE_BYTES:
                    size = min(4 * size, _MAX_LINE_BYTES)
                elif too_long:
                    raise self._too_long(self._record(done)[0]) from None
                elif "UTF8" in text:
                    raise self.undecodable(error) from None
                elif "conversion error" in text and typed:
                    self._typed = False
                else:
                    line, _ = self._record(done)
                    raise ValueError(f"{self.path}: after line {line}: {text[:200]}") from None

    def _batches(
        self, stream: Any, size: int, wanted: list[int]
    ) -> Iterator[tuple[int, dict[int, Any], Mask]]:
        """Number of samples, cells by column, and mask of samples with too few or many fields."""
        pa = arrow("CSV")
        from pyarrow import csv as arrow_csv

        wrong: list[int] = []

        def skip_row(row: Any) -> str:
            wrong.append(row.number - 1 - self.header_lines)
            return "skip"

        types = dict.fromkeys(wanted, pa.string())
        if self._typed:
            numbers = {"number": pa.from_numpy_dtype(self.dtype), "bool": pa.bool_()}
            types |= {j: numbers.get(self.kinds[j], pa.string()) for j in self.choice.features}
        read = [j for j in wanted if j < self._stored]
        start = taken = 0
        with arrow_csv.open_csv(
            stream,
            arrow_csv.ReadOptions(
                use_threads=False,  # with threads, wrong rows have no numbers
                block_size=size,
                skip_rows=self.header_lines,
                column_names=[str(j) for j in range(self._stored)],
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=skip_row
            ),
            arrow_csv.ConvertOptions(
                column_types={str(j): kind for j, kind in types.items()},
                include_columns=[str(j) for j in read or [0]],
                null_values=self._missing,
                strings_can_be_null=True,
                decimal_point=self._options.decimal,
            ),
        ) as reader:
            for batch in reader:
                n = batch.num_rows
                while taken < len(wrong) and wrong[taken] <= start + n:
                    taken, n = taken + 1, n + 1
                bad = np.zeros(n, dtype=bool)
                bad[np.array(wrong[taken - (n - batch.num_rows) : taken], dtype=int) - start] = True
                columns = batch.columns
                if bad.any():
                    places = pa.array(np.cumsum(~bad) - 1, mask=bad)
                    columns = [column.take(places) for column in columns]
                start += n
                yield n, dict(zip(read, columns, strict=False)), bad
        if n := len(wrong) - taken:
            yield n, {j: pa.nulls(n, types[j]) for j in read}, np.ones(n, dtype=bool)

    def _values(self, column: Any, kind: str) -> npt.NDArray[Any]:
        """A column as numbers, with infinity in place of text; or as text, stripped of blanks."""
        if str(column.type) == "string":
            text = kind not in ("number", "bool")
            column = self._words(column) if text else self._numbers(column, kind)
        return super()._values(column, kind)

    def _labels(self, column: Any) -> tuple[npt.NDArray[Any], Mask | None]:
        return super()._labels(self._texts(column))

    def _texts(self, cells: Any) -> Any:
        """Cells stripped of blanks; null where they are missing."""
        pa = arrow("CSV")
        pc = pa.compute
        texts = pc.utf8_trim(cells, " \t")
        return pc.if_else(pc.is_in(texts, pa.array(self._missing)), None, texts)

    def _words(self, cells: Any) -> Any:
        """Like `_texts`, with a decimal point in place of a decimal comma in numbers."""
        texts = self._texts(cells)
        if self._options.decimal == ".":
            return texts
        pc = arrow("CSV").compute
        is_number = pc.match_substring_regex(texts, NUMBER.replace(r"\.", ","))
        return pc.if_else(is_number, pc.replace_substring(texts, ",", "."), texts)

    def _numbers(self, cells: Any, kind: str) -> Any:
        pa = arrow("CSV")
        pc, number = pa.compute, pa.from_numpy_dtype(self.dtype)
        if kind == "number" and self._options.decimal == ".":
            try:
                return cells.cast(number)
            except pa.ArrowInvalid:  # blanks or text
                pass
        texts = pc.utf8_trim(pc.fill_null(cells, ""), " \t")
        missing = pc.is_in(texts, pa.array(self._missing))
        if kind == "bool":
            fit = pc.match_substring_regex(texts, TRUTH)
            values = pc.if_else(fit, pc.utf8_lower(texts), "0").cast("bool")
        else:
            if self._options.decimal != ".":
                texts = pc.if_else(pc.match_substring(texts, "."), "x", texts)
                texts = pc.replace_substring(texts, self._options.decimal, ".")
            fit = pc.match_substring_regex(texts, f"{NUMBER}|{INFINITE}")
            values = pc.replace_substring_regex(pc.if_else(fit, texts, "0"), r"^\+", "")
        values = pc.if_else(fit, values.cast(number), float("inf"))
        return pc.if_else(missing, float("nan"), values)

    # ---- errors ------------------------------------------------------------------------------

    def _records(self, *, first: bool = False) -> Iterator[tuple[int, list[str], int]]:
        """Header and samples by Python's parser: first line, fields, and last line of each.

        With `first`, wrong quotes are accepted, but a wrong encoding is an error.
        """
        comment, line_number, first_line = self.comment, 0, 0

        def lines() -> Iterator[str]:
            nonlocal line_number, first_line
            while line := text.readline(_MAX_LINE_BYTES + 1):
                line_number += 1
                if len(line) > _MAX_LINE_BYTES:
                    raise self._too_long(line_number)
                if comment is None or not line.startswith(comment):
                    first_line = first_line or line_number
                    yield line

        old_limit = csv.field_size_limit(_MAX_LINE_BYTES)
        with (
            damage_named(self.path),
            open_bytes(self.path) as raw,
            self.text_of(raw, "strict" if first else "replace") as text,
        ):
            try:
                reader = csv.reader(lines(), delimiter=self._delimiter, strict=not first)
                for fields in reader:
                    if fields:
                        yield first_line, fields, reader.line_num
                    first_line = 0
            except UnicodeError as error:
                raise self.undecodable(error) from None
            except csv.Error as error:
                if "limit" in str(error):
                    raise self._too_long(first_line) from None
                unclosed = "end of data" in str(error)
                what = f"text beside a quoted field, up to line {line_number}"
                what = "a quote that is never closed" if unclosed else what
                raise ValueError(
                    f"{self.path}: line {first_line}: expected quoted fields that end before the "
                    f"delimiter, got {what}"
                ) from None
            finally:
                csv.field_size_limit(old_limit)

    def _check_quotes(self, stream: _Stream, n: int) -> None:
        """ValueError that names the line of a quote that is never closed.

        With as many lines as samples, no field spans lines, and all quotes are closed.
        """
        if stream.quotes and not self._quotes_checked:
            if stream.quotes % 2 or stream.lines > n + int(self.named):
                for _ in self._records():
                    pass
            self._quotes_checked = True

    def _record(self, row: int) -> tuple[int, list[str]]:
        """Number of the line, from 1, on which a sample begins, and its fields."""
        records = islice(self._records(), row + int(self.named), None)
        return next(((line, fields) for line, fields, _ in records), (1, []))

    def text_of(self, file: IO[bytes], errors: str = "strict") -> io.TextIOWrapper:
        """The text of an opened file, with unchanged ends of lines."""
        encoding = "utf-8-sig" if self._encoding == "utf-8" else self._encoding
        return io.TextIOWrapper(file, encoding, errors, newline="")

    def undecodable(self, error: Exception) -> ValueError:
        """Return the error of text in another encoding."""
        if self._encoding != "utf-8":
            got = getattr(error, "object", b"")[getattr(error, "start", 0) :][:8]
            return ValueError(f"{self.path}: expected text in {self._encoding}, got {got!r}")
        bad_line, undecoded = 1, b""
        with open_bytes(self.path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as wrong:
                    bad_line, undecoded = number, line[max(wrong.start - 8, 0) : wrong.end]
                    break
            file.seek(0)
            utf16 = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        return ValueError(
            f"{self.path}: line {bad_line}: expected text in UTF-8, got {undecoded!r}; set "
            f"encoding (--encoding), for example to {'utf-16' if utf16 else 'latin-1'}"
        )

    def _too_long(self, line: int) -> ValueError:
        return ValueError(
            f"{self.path}: line {line}: expected rows of at most {_MAX_LINE_BYTES:,} bytes, got a "
            "longer row, or a quote that is not closed"
        )

    def complaint(self, row: int, column: int | None, value: Any, dtype: DType) -> BadRowError:
        """Return the error of a bad sample."""
        line, fields = self._record(row)
        target = self.choice.target
        place = None if column is None else self.choice.features[column]
        if len(fields) != self._stored:
            what = f"expected {self._stored} fields, got {len(fields)}"
            return BadRowError(self.path, "line", line, None, what)
        if place is None or place >= self._stored:
            text = "" if target is None or target >= self._stored else fields[target].strip()
            what = self.unfit_label(text)
            if self.label_kind in ("int", "uint", "float"):
                what += _advice_on_number(text, self._options.decimal)
            if text in self._missing:
                what = MISSING_LABEL
                if text:
                    what += f" ({text}; keep_default_na=False (--no-default-na) reads it as text)"
            return BadRowError(self.path, "line", line, self.target_name, what)
        text = fields[place].strip(" \t")
        if text in self._missing:
            what = MISSING_NUMBER
        elif isinstance(value, str):
            what = f"expected a date, got {show(value)}"
        elif self.kinds[place] == "bool":
            what = f"expected true or false, got {show(text)}"
        elif is_number(text, self._options.decimal) or re.match(INFINITE, text):
            what = not_finite(text, dtype)
        else:
            what = f"expected a number, got {show(text)}"
            if not any(character.isalnum() for character in text):
                what += f"; na_values (--na-values '{text}') makes it a missing value"
            else:
                what += _advice_on_number(text, self._options.decimal)
        return BadRowError(self.path, "line", line, self.names[place], what)


def _advice_on_number(text: str, decimal: str) -> str:
    """Advice for a number with another decimal point or with separators of thousands."""
    other = "," if decimal == "." else "."
    if is_number(text, other) and not is_number(text, decimal):
        return (
            f"; if {other!r} is the decimal point, set decimal={other!r} (--decimal {other}); if "
            f"{other!r} separates thousands, remove it"
        )
    return "; remove the separators of thousands" if re.match(_THOUSANDS, text) else ""


class _Stream:
    """Bytes of a file in UTF-8 without comments; counts the quotes and lines that are read."""

    closed = False

    def __init__(self, file: IO[bytes], source: DelimitedSource) -> None:
        self._file, self._source, self._comment = file, source, source.comment
        self._text = None if source.is_plain else source.text_of(file)
        self.quotes = self.lines = 0
        self._reading, self._ended = threading.Lock(), False
        _STREAMS.add(self)

    def read(self, size: int = -1) -> bytes:
        """Read about `size` bytes; empty at the end of the file."""
        with self._reading, damage_named(self._source.path):
            try:
                data = b"" if self._ended else self._read(size)
            except UnicodeError as error:
                raise self._source.undecodable(error) from None
        self.quotes += data.count(b'"')
        self.lines += data.count(b"\n") or data.count(b"\r")
        return data

    def _read(self, size: int) -> bytes:
        if self._text is None:
            return self._file.read(size)
        if self._comment is None:
            return self._text.read(size).encode()
        rows: list[str] = []
        while not rows and (lines := self._text.readlines(max(size, 1))):
            rows = [line for line in lines if not line.startswith(self._comment)]
        return "".join(rows).encode()

    def close(self) -> None:
        """Do nothing: pyarrow must not close the file."""

    def end(self) -> None:
        """Wait for the current read to return; later reads return nothing."""
        with self._reading:
            self._ended = True


_STREAMS: WeakSet[_Stream] = WeakSet()


@atexit.register
def _end_streams() -> None:
    """Stop pyarrow's threads, which abort the process if they read after Python has ended."""
    streams = [*_STREAMS]
    for stream in streams:
        stream.end()
    if streams:
        time.sleep(_SECONDS_OF_LAST_READS)


def settle_types(sources: Sequence[DelimitedSource], scans: Scans) -> None:
    """Infer the types of columns from the cells of all files.

    `scans` keeps the counts, which later calls with other features reuse.
    """
    files = tuple((source.path, source.header_lines, *source._missing) for source in sources)
    targets = [source.choice.target for source in sources]
    counted, tallies = scans.get(files, ([], {}))
    if not tallies or any(j not in (None, old) for j, old in zip(targets, counted, strict=True)):
        tallies = {}
        for source in sources:
            source.tally(tallies, _SCANNED_BYTES / len(sources))
        scans[files] = targets, tallies
    for source in sources:
        source.settle(tallies)
