"""CSV files: parsed by pyarrow as a stream of batches, with types that the first rows decide.

Numbers are converted while they are parsed. From the first cell on that cannot be, all columns are
read as text by the same parser and converted here, which says which rows are bad.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.tables.columnar import INTEGER, NUMBER, TRUTH, TableSource, label_kind_of
from eigenfeat.tables.columns import MOST_CHARACTERS, Mask, Options, Source
from eigenfeat.tables.damage import open_bytes
from eigenfeat.tables.errors import (
    BadRowError,
    OptionError,
    arrow,
    missing_value,
    unfit_label,
    unfit_value,
)

__all__ = ["DelimitedSource"]

_PROBE_BYTES = 1 << 20
_MOST_BYTES = 64 << 20  # of a row
_BOM = b"\xef\xbb\xbf"
# Cells that pyarrow takes for missing numbers.
MISSING = frozenset(
    [
        *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND"),
        *("1.#QNAN", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
    ]
)
_INFINITE = r"^[+-]?(?i:inf|infinity|nan)$"
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?([ T].*)?|\d\d?[/.]\d\d?[/.]\d{2,4}( .*)?")
_OTHERS = ";\t|"  # delimiters that a header of one column may have


class DelimitedSource(TableSource):
    """A CSV file, from any row on; types are those of the first file, or of its first megabyte."""

    format = "csv"
    unit = "line"

    def __init__(
        self, path: Path, options: Options, keys: Mapping[str, str], first: Source | None
    ) -> None:
        super().__init__(path, options, keys)
        self.dtype = np.dtype(options.dtype or np.float64)
        self._delimiter = options.delimiter or ("\t" if ".tsv" in path.suffixes else ",")
        if self._delimiter == options.decimal:
            raise OptionError("decimal", f"expected another than the delimiter {self._delimiter!r}")
        self._sound = False  # whether all quotes are known to be closed
        self._marks: list[tuple[int, float]] = []  # rows, and the part of the file before them
        text, whole = self._probe()
        records = self._first_records(text)
        fields = [field.strip() for field in records[0]]
        self._check_delimiter(records, options)
        self.first_fields = fields
        self.named = bool(_is_header(fields, records[1:], options))
        self.names = fields if self.named else [str(j) for j in range(len(fields))]
        longest = max(map(len, text.split(b"\n")))
        self._block = max(_PROBE_BYTES, 512 * len(fields), min(4 * longest, _MOST_BYTES))
        known = first if isinstance(first, DelimitedSource) else None
        if known is not None and known.names[: len(fields)] == self.names:
            stored = len(fields)
            self.types, self.kinds = [*known.types[:stored]], [*known.kinds[:stored]]
            self._choose()
            self.label_kind = known.label_kind
            return
        probed = self._texts(text, whole)
        pairs = _types_of(probed)
        self.types, self.kinds = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        if known is not None:  # the same columns in another order
            kinds = dict(zip(known.names, known.kinds, strict=True))
            self.kinds = [kinds.get(n, k) for n, k in zip(self.names, self.kinds, strict=True)]
        asked = {*options.categories}
        for j, name in enumerate(self.names):
            if name in asked or j in asked:
                self.kinds[j] = "text"
        self._choose()
        goal = self.choice.target
        if first is not None and first.label_kind is not None:
            self.label_kind = first.label_kind
        elif goal is not None:
            trim = arrow("CSV").compute.utf8_trim_whitespace
            kind = self._key_label_kind()
            self.label_kind = kind or label_kind_of(trim(probed[goal]), options.labels)

    # ---- the first lines ---------------------------------------------------------------------

    def _probe(self) -> tuple[bytes, bool]:
        """The first lines, as UTF-8, and whether these are all."""
        with _stream(self.path, self._options) as stream:
            text, more = b"", True
            while more and (len(text) < _PROBE_BYTES or _lines(text) < 3):
                piece = stream.read(_PROBE_BYTES)
                text, more = text + piece, bool(piece)
                if len(text) > _MOST_BYTES:
                    raise self._too_long(1)
        if not text.strip():
            raise ValueError(f"{self.path}: expected rows, got an empty file")
        if b"\0" in text:
            raise ValueError(
                f"{self.path}: expected text, got a file with zero bytes; encoding (--encoding) "
                "names another than UTF-8"
            )
        return text, not more

    def _first_records(self, text: bytes) -> list[list[str]]:
        records: list[list[str]] = []
        with _long_fields():
            try:
                lines = io.StringIO(text.decode("utf-8", "replace"), newline="")
                for record in csv.reader(lines, delimiter=self._delimiter):
                    if record:
                        records.append(record)
                    if len(records) == 200:
                        break
            except csv.Error as error:
                raise ValueError(f"{self.path}: expected lines of fields, got {error}") from None
        return records

    def _check_delimiter(self, records: list[list[str]], options: Options) -> None:
        """OptionError if fields seem to be separated by something else."""
        if options.delimiter is not None or max(map(len, records[:2])) > 1:
            return
        for other in _OTHERS:
            if all(other in record[0] for record in records[:2]):
                name = {"\t": "tab"}.get(other, other)
                raise OptionError(
                    "delimiter",
                    f"expected fields separated by {self._delimiter!r} in {self.path}, got one "
                    f"field with {other!r} in it; delimiter={other!r} (--delimiter '{name}') "
                    "separates there",
                )

    def _texts(self, text: bytes, whole: bool) -> list[Any]:
        """Columns of the first rows as text."""
        pa = arrow("CSV")
        from pyarrow import csv as arrow_csv

        width = len(self.names)
        names = [str(j) for j in range(width)]
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(text),
                arrow_csv.ReadOptions(
                    use_threads=False,
                    column_names=names,
                    block_size=max(len(text) + 1, _PROBE_BYTES),
                    skip_rows_after_names=int(self.named),
                ),
                self._parse_options(lambda _: "skip"),
                arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.binary()), check_utf8=False
                ),
            )
        except pa.ArrowInvalid as error:
            if "Empty CSV" not in str(error):
                raise ValueError(f"{self.path}: expected CSV, got {error}") from None
            table = pa.table({name: pa.array([], pa.binary()) for name in names})
        if not table.num_rows and self.named and whole:
            raise ValueError(f"{self.path}: expected rows, got a header alone")
        if not whole and table.num_rows > 1:
            table = table.slice(0, table.num_rows - 1)  # the last may be a part of a row
        columns = []
        for column in table.columns:
            try:
                columns.append(column.cast("string"))
            except pa.ArrowInvalid:
                raise self._undecodable() from None
        return columns

    # ---- parsing -----------------------------------------------------------------------------

    def _parse_options(self, handler: Any) -> Any:
        from pyarrow import csv as arrow_csv

        return arrow_csv.ParseOptions(
            delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=handler
        )

    def _pieces(self, wanted: list[int], skip: int) -> Iterator[tuple[int, int, Any, Mask | None]]:
        pa = arrow("CSV")
        done, typed, size = skip, True, self._block
        while True:
            try:
                with _stream(self.path, self._options) as stream:
                    read = self._typed if typed else self._as_text
                    start = 0
                    for n, columns, bad in read(stream, size, wanted):
                        self._note(start + n, stream.fraction())
                        if start + n > done:
                            yield start, n, columns, bad
                            done = start + n
                        start += n
                    self._check_quotes(stream, start)
                return
            except pa.ArrowInvalid as error:
                text = " ".join(str(error).split())
                if "straddl" in text:
                    if size >= _MOST_BYTES:
                        raise self._too_long(self._line_of(done)) from None
                    size = min(4 * size, _MOST_BYTES)
                elif typed:
                    typed = False
                elif "UTF8" in text:
                    raise self._undecodable() from None
                else:
                    line = self._line_of(done)
                    raise ValueError(f"{self.path}: after line {line}: {text[:200]}") from None

    def _typed(
        self, stream: _Stream, size: int, wanted: list[int]
    ) -> Iterator[tuple[int, dict[int, Any], None]]:
        """Batches whose numbers pyarrow converts; pyarrow.ArrowInvalid if it cannot."""
        pa = arrow("CSV")
        number = pa.from_numpy_dtype(self.dtype)
        known = {"number": number, "bool": pa.bool_()}
        types = {
            str(j): pa.string()
            if j == self.choice.target
            else known.get(self.kinds[j], pa.string())
            for j in wanted
        }
        for batch in self._batches(stream, size, types, None, threads=True):
            yield batch.num_rows, dict(zip(wanted, self._columns(batch, wanted), strict=True)), None

    def _as_text(
        self, stream: _Stream, size: int, wanted: list[int]
    ) -> Iterator[tuple[int, dict[int, Any], Mask | None]]:
        """Batches of text, converted here; with bad rows in their places."""
        pa = arrow("CSV")
        wrong: list[int] = []  # rows with a wrong number of fields

        def leave_out(row: Any) -> str:
            wrong.append(row.number - 1 - int(self.named))
            return "skip"

        types = {str(j): pa.string() for j in wanted}
        start = taken = 0
        for batch in self._batches(stream, size, types, leave_out, threads=False):
            places: list[int | None] = []
            left = batch.num_rows
            row = start
            while left:
                if taken < len(wrong) and wrong[taken] == row:
                    places.append(None)
                    taken += 1
                else:
                    places.append(batch.num_rows - left)
                    left -= 1
                row += 1
            yield self._converted(batch, wanted, places)
            start = row
        if taken < len(wrong):
            empty = {j: pa.nulls(len(wrong) - taken, pa.string()) for j in wanted}
            yield self._converted_columns(empty, np.ones(len(wrong) - taken, dtype=bool))

    def _batches(
        self, stream: _Stream, size: int, types: dict[str, Any], handler: Any, *, threads: bool
    ) -> Iterator[Any]:
        pa = arrow("CSV")
        from pyarrow import csv as arrow_csv

        stored = len(self.names) - len(self._keys)
        read = arrow_csv.ReadOptions(
            use_threads=threads,
            block_size=size,
            column_names=[str(j) for j in range(stored)],
            skip_rows_after_names=int(self.named),
        )
        convert = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=[*types] or ["0"],
            null_values=sorted(MISSING),
            decimal_point=self._options.decimal,
        )
        try:
            reader = arrow_csv.open_csv(stream, read, self._parse_options(handler), convert)
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return
            raise
        with reader:
            yield from reader

    @staticmethod
    def _columns(batch: Any, wanted: list[int]) -> list[Any]:
        return batch.columns[: len(wanted)]

    def _converted(
        self, batch: Any, wanted: list[int], places: list[int | None]
    ) -> tuple[int, dict[int, Any], Mask | None]:
        pa = arrow("CSV")
        bad = np.array([place is None for place in places], dtype=bool)
        if bad.any():
            batch = batch.take(pa.array(places, pa.int64()))
        columns = dict(zip(wanted, self._columns(batch, wanted), strict=True))
        return self._converted_columns(columns, bad)

    def _converted_columns(
        self, columns: dict[int, Any], bad: Mask
    ) -> tuple[int, dict[int, Any], Mask | None]:
        for j, column in columns.items():
            if j != self.choice.target and self.kinds[j] in ("number", "bool"):
                truth = self.kinds[j] == "bool"
                columns[j], wrong = _numbers(column, truth, self.dtype, self._options.decimal)
                bad = bad | wrong
        return len(bad), columns, bad if bad.any() else None

    def _feature(self, column: Any, place: int) -> npt.NDArray[Any]:
        values_read = super()._feature(column, place)
        if values_read.dtype.kind == "O":
            values = [None if v is None else v.strip() for v in values_read.tolist()]
            values_read = np.array([None if v in MISSING else v for v in values], dtype=object)
        return values_read

    def _labels(self, column: Any) -> tuple[Any, Any, Any]:
        try:
            return super()._labels(column)
        except ValueError as error:  # of a label that is long, or has several lines
            goal = -1 if self.choice.target is None else self.choice.target
            for line, fields in self._records(strict=True):
                text = fields[goal].strip() if goal < len(fields) else ""
                if len(text) > MOST_CHARACTERS or len(text.splitlines()) > 1:
                    what = str(error).removeprefix(f"{self.path}: ")
                    raise ValueError(f"{self.path}: line {line}, {what}") from None
            raise

    # ---- what is wrong -----------------------------------------------------------------------

    def _records(self, *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Line and fields of every row, by Python's parser, which is slow and knows lines."""
        comment, at, started = self._options.comment, 0, 0

        def lines() -> Iterator[str]:
            nonlocal at, started
            for line in text:
                at += 1
                if comment is None or not line.startswith(comment):
                    started = started or at
                    yield line

        encoding = self._options.encoding or "utf-8"
        encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
        with (
            _long_fields(),
            open_bytes(self.path) as raw,
            io.TextIOWrapper(raw, encoding, "replace", newline="") as text,
        ):
            reader = csv.reader(lines(), delimiter=self._delimiter, strict=strict)
            header = self.named
            while True:
                started = 0
                try:
                    fields = next(reader, None)
                except csv.Error as error:
                    what = "a quote that is never closed"
                    if "end of data" not in str(error):
                        what = f"text beside a quoted field, up to line {at}"
                    raise ValueError(
                        f"{self.path}: line {started}: expected quoted fields that end before the "
                        f"delimiter, got {what}"
                    ) from None
                if fields is None:
                    return
                if fields and not header:
                    yield started, fields
                header = header and not fields

    def _check_quotes(self, stream: _Stream, rows: int) -> None:
        """ValueError that names the line of a quote that is never closed.

        Where there are as many lines as rows, no row can have been taken for a part of a field.
        """
        if self._sound:
            return
        if stream.quotes % 2 or (stream.quotes and stream.lines > rows + int(self.named)):
            for _ in self._records(strict=True):
                pass
        self._sound = True

    def _line_of(self, row: int) -> int:
        """Number of the line, from 1, on which a row begins."""
        line = 1
        for index, (line, _) in enumerate(self._records()):  # noqa: B007
            if index == row:
                break
        return line

    def _undecodable(self) -> ValueError:
        at, undecoded = 1, b""
        with open_bytes(self.path) as file:
            for number, line in enumerate(file, 1):
                try:
                    line.decode("utf-8")
                except UnicodeDecodeError as error:
                    at, undecoded = number, line[max(error.start - 8, 0) : error.end]
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
        """Say what is wrong with a row: the first of its cells that is bad."""
        line, fields = 1, [""]
        for index, (line, fields) in enumerate(self._records(strict=True)):  # noqa: B007
            if index == row:
                break
        place = None if column is None else self.choice.features[column]
        name = self.target_name if column is None else self.names[self.choice.features[column]]
        fault = self._fault(fields, dtype, missing=missing)
        if fault is None:
            what = "expected a finite number" if place is not None else missing_value(label=True)
            fault = name, what
        return BadRowError(self.path, "line", line, *fault)

    def _fault(
        self, fields: Sequence[str], dtype: DType, *, missing: bool
    ) -> tuple[str | None, str] | None:
        stored = len(self.names) - len(self._keys)
        if len(fields) != stored:
            return None, f"expected {stored} fields, got {len(fields)}"
        for j in self.choice.features:
            if j < stored and self.kinds[j] in ("number", "bool"):
                text = fields[j].strip(" \t")
                if what := self._cell_fault(text, self.kinds[j] == "bool", dtype, missing=missing):
                    return self.names[j], what
        goal = self.choice.target
        if goal is None or goal >= stored or self.label_kind == "none":
            return None
        text = fields[goal].strip()
        return self.target_name, unfit_label(text, str(self.label_kind)) if text else missing_value(
            label=True
        )

    def _cell_fault(self, text: str, truth: bool, dtype: DType, *, missing: bool) -> str | None:
        if text in MISSING:
            return None if missing else missing_value()
        if truth:
            return None if re.match(TRUTH, text) else f"expected true or false, got {show(text)}"
        number = text.replace(self._options.decimal, ".")
        if re.match(_INFINITE, number):
            return unfit_value(text, dtype)
        if not re.match(NUMBER, number) or (self._options.decimal != "." and "." in text):
            return f"expected a number, got {show(text)}"
        fits = abs(float(number)) <= float(np.finfo(dtype).max)
        return None if fits else unfit_value(float(number), dtype)

    # ---- for people --------------------------------------------------------------------------

    def _note(self, row: int, part: float) -> None:
        if not self._marks or row > self._marks[-1][0]:
            self._marks.append((row, part))

    def fraction(self, row: int) -> float | None:
        """Part of the bytes that had been read when a row was parsed."""
        if not self._marks:
            return 0.0
        at = min(bisect_left(self._marks, (row, 0.0)), len(self._marks) - 1)
        return self._marks[at][1]

    def facts(self) -> dict[str, object]:
        """Delimiter of the fields, and whether there are names."""
        return {"delimiter": self._delimiter, "header": self.named}


# ---- bytes ---------------------------------------------------------------------------------------


class _Stream:
    """Text of a file as UTF-8, from its first line on; counts quotes and lines as they pass."""

    closed = False

    def __init__(self, path: Path, options: Options) -> None:
        self._path, self._raw = path, open_bytes(path)
        self._size = max(path.stat().st_size, 1)
        name = codecs.lookup(options.encoding or "utf-8").name
        self._encoding, self._decoder = name, None
        if name != "utf-8":
            self._decoder = codecs.getincrementaldecoder(name)()
        comment = options.comment
        self._comment = comment and re.compile(
            rb"^" + re.escape(comment.encode()) + rb"[^\n]*\n?", re.MULTILINE
        )
        self._rest, self._begun = b"", False
        self.quotes = self.lines = 0

    def read(self, size: int = -1) -> bytes:
        """Read about so many bytes; none at the end."""
        while True:
            raw = self._raw.read(size)
            text = self._decoded(raw)
            if self._comment:
                text = self._uncommented(text, last=not raw)
            if not self._begun:
                text = text.removeprefix(_BOM).lstrip(b"\r\n")
                self._begun = bool(text)
            if text or not raw:
                break
        self.quotes += text.count(b'"')
        self.lines += _lines(text)
        return text

    def _decoded(self, raw: bytes) -> bytes:
        if self._decoder is None:
            return raw
        try:
            return self._decoder.decode(raw, not raw).encode("utf-8")
        except UnicodeError as error:
            bad: object = error
            if isinstance(error, UnicodeDecodeError):
                bad = repr(error.object[error.start : error.end])
            raise ValueError(
                f"{self._path}: expected text in {self._encoding}, got {bad}"
            ) from None

    def _uncommented(self, text: bytes, *, last: bool) -> bytes:
        text = self._rest + text
        cut = len(text) if last else text.rfind(b"\n") + 1
        self._rest = text[cut:]
        return self._comment.sub(b"", text[:cut])  # type: ignore[union-attr]

    def fraction(self) -> float:
        """Part of the file's bytes that have been read."""
        raw = getattr(self._raw, "fileobj", None) or self._raw
        return min(raw.tell() / self._size, 1.0)

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self._raw.close()


@contextmanager
def _stream(path: Path, options: Options) -> Iterator[_Stream]:
    stream = _Stream(path, options)
    try:
        yield stream
    finally:
        stream.close()


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's parser read fields as long as a row may be."""
    before = csv.field_size_limit(_MOST_BYTES)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _lines(text: bytes) -> int:
    return text.count(b"\n") or text.count(b"\r")


# ---- what the first rows say ---------------------------------------------------------------------


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
    rest = [[field.strip() for field in record] for record in rest if len(record) == len(first)]
    texts = [j for j, text in enumerate(first) if j not in {*numbers} and text]
    if not rest or not texts:
        return False
    if any(_is_number(rest[0][j]) for j in texts):  # a name above a number
        return True
    # Wavelengths or years above numbers, and a name above labels: the numbers increase, as those of
    # the next rows do not, and no row has that label.
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
    """Type, for people, and kind of columns whose first texts are given, of one length."""
    pa = arrow("CSV")
    pc = pa.compute
    pieces = [piece for column in columns for piece in getattr(column, "chunks", [column])]
    if not pieces:
        return [("null", "number")] * len(columns)
    texts = pc.utf8_trim(pc.fill_null(pa.concat_arrays(pieces), ""), " \t")

    def flags(array: Any) -> Mask:
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=bool).reshape(shape)

    shape = (len(columns), len(texts) // max(len(columns), 1))
    known = ~flags(_is_missing(texts))
    integer, number, truth = (
        flags(pc.match_substring_regex(texts, pattern)) & known
        for pattern in (INTEGER, f"{NUMBER}|{_INFINITE}".replace(r"\.", "[.,]"), TRUTH)
    )
    count, numbers = known.sum(axis=1), number.sum(axis=1)
    found = [("string", "text")] * len(columns)
    for j in range(len(columns)):
        if count[j] == 0:
            found[j] = "null", "number"
        elif integer[j].sum() == count[j]:
            found[j] = "int64", "number"
        elif numbers[j] == count[j]:
            found[j] = "double", "number"
        elif truth[j].sum() == count[j]:
            found[j] = "bool", "bool"
        elif 2 * numbers[j] >= count[j]:
            found[j] = "double", "number"  # text is an exception, and an error
        else:
            some = j * shape[1] + np.flatnonzero(known[j])[:20]
            if all(_DATE.fullmatch(texts[int(i)].as_py()) for i in some):
                found[j] = "date", "date"
    return found


def _is_missing(texts: Any) -> Any:
    return arrow("CSV").compute.is_in(texts, _missing_texts())


@cache
def _missing_texts() -> Any:
    return arrow("CSV").array(sorted(MISSING))


def _numbers(column: Any, truth: bool, dtype: DType, decimal: str) -> tuple[Any, Mask]:
    """A column of text as numbers, NaN where it is missing, and which rows are none."""
    pa = arrow("CSV")
    pc = pa.compute
    texts = pc.utf8_trim(pc.fill_null(column, ""), " \t")
    missing = _is_missing(texts)
    if truth:
        fit = pc.match_substring_regex(texts, TRUTH)
        values = pc.if_else(fit, pc.utf8_lower(texts), "0").cast("bool").cast("float64")
    else:
        if decimal != ".":
            texts = pc.if_else(pc.match_substring(texts, "."), "x", texts)
            texts = pc.replace_substring(texts, decimal, ".")
        finite = pc.match_substring_regex(texts, NUMBER)
        fit = pc.or_(finite, pc.match_substring_regex(texts, _INFINITE))
        plain = pc.replace_substring_regex(pc.if_else(fit, texts, "0"), r"^\+", "")
        values = plain.cast(pa.from_numpy_dtype(dtype))
    values = pc.if_else(missing, float("nan"), values).to_numpy(zero_copy_only=False)
    return values.astype(dtype), ~np.asarray(
        pc.or_(fit, missing).to_numpy(zero_copy_only=False), dtype=bool
    )
