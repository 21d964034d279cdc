"""CSV files, parsed by pyarrow in chunks of whole lines, all threads at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from eigenfeat._base.types import DType
from eigenfeat._base.validation import show
from eigenfeat.tables.columnar import ArrowChunk, column_labels
from eigenfeat.tables.errors import BadRowError, arrow, missing_value, unfit_label, unfit_value
from eigenfeat.tables.flow import read_ahead
from eigenfeat.tables.source import (
    Choice,
    Chunk,
    Options,
    Source,
    label_kind,
    line_chunks,
    open_bytes,
)

__all__ = ["DelimitedSource"]

_CHUNK_BYTES = 16 << 20
_PARSE_BYTES = 2 << 20
_PROBE_BYTES = 1 << 20
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_LABELS = {"int": r"^[+-]?\d{1,18}$", "float": _NUMBER, "bool": r"^(?i:true|false|0|1)$"}
_TRUTH = r"^(?i:true|false|0|1)$"
_BOM = b"\xef\xbb\xbf"


class _NoFieldsError(ValueError):
    """A line that has no fields."""


class DelimitedSource(Source):
    """A CSV file. Column types are found on its first megabyte, or are those of the first file."""

    format = "csv"
    columnar = True

    def __init__(self, path: Path, options: Options, first: Source | None) -> None:
        arrow(str(path))
        self.path, self.dtype = path, np.dtype(options.dtype or np.float64)
        self._delimiter = options.delimiter or ("\t" if ".tsv" in path.suffixes else ",")
        self._skip_bad, self._mark_bad = options.skip_bad, options.mark_bad
        start, lines = self._probe()
        names = self._header(lines, options)
        if names is None:
            self.names, self._start = [str(j) for j in range(len(self._fields(lines)))], start
        else:
            self.names, self._start = names, start + lines.index(b"\n") + 1
            lines = lines[lines.index(b"\n") + 1 :]
        self.choice = Choice.of(path, self.names, options)
        if isinstance(first, DelimitedSource):
            self.types, self.label_kind = first.types, first.label_kind
        else:
            self._find_types(lines, options, first)

    # ---- the first lines ---------------------------------------------------------------------

    def _probe(self) -> tuple[int, bytes]:
        """Byte of the first line that is not empty, and whole lines from there on."""
        with open_bytes(self.path) as file:
            data = file.read(_PROBE_BYTES)
            while data and b"\n" not in data.strip() and (more := file.read(_PROBE_BYTES)):
                data += more
            if len(data) >= _PROBE_BYTES:
                data = data[: data.rfind(b"\n") + 1 or None]
        start = len(_BOM) if data.startswith(_BOM) else 0
        while data[start : start + 1] in (b"\n", b"\r"):
            start += 1
        lines = data[start:]
        if not lines.strip():
            raise ValueError(f"{self.path}: expected rows, got an empty file")
        if b"\0" in lines:
            raise ValueError(f"{self.path}: expected text, got a file with zero bytes")
        try:
            lines.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data[: start + error.start].count(b"\n") + 1
            raise ValueError(
                f"{self.path}: line {line}: expected text in UTF-8, got another"
            ) from None
        return start, lines if lines.endswith(b"\n") else lines + b"\n"

    def _fields(self, line: bytes) -> list[str]:
        text = line.split(b"\n", 1)[0].decode("utf-8", "replace").rstrip("\r")
        try:
            return next(csv.reader([text], delimiter=self._delimiter))
        except csv.Error as error:  # a carriage return within the line, or a field of 128 KiB
            raise _NoFieldsError(f"{self.path}: expected lines of fields, got {error}") from None

    def _header(self, lines: bytes, options: Options) -> list[str] | None:
        fields = [field.strip() for field in self._fields(lines)]
        header = options.header
        if header is None:
            header = not any(_is_number(field) for field in fields) or self._years(lines, fields)
        if not header:
            return None
        twice = {name for name in fields if fields.count(name) > 1}
        if twice:
            raise ValueError(f"{self.path}: expected distinct column names, got {sorted(twice)}")
        return fields

    def _years(self, lines: bytes, fields: list[str]) -> bool:
        """Whether the first of two lines has names, some of which are numbers."""
        second = lines.split(b"\n", 2)[1]
        below = self._fields(second) if second.strip() else []
        pairs = zip(fields, below, strict=False)
        return any(_is_number(b) and not _is_number(a) and a for a, b in pairs)

    def _find_types(self, lines: bytes, options: Options, first: Source | None) -> None:
        if not lines.strip():
            raise ValueError(f"{self.path}: expected rows, got a header alone")
        try:
            table = self._read(lines, {}, skip=True)[0]
        except arrow("CSV").ArrowInvalid as error:
            raise ValueError(f"{self.path}: expected CSV, got {error}") from None
        kinds = [_kind(field.type) for field in table.schema]
        self.types = [str(field.type) for field in table.schema]
        for j in () if options.any_type else self.choice.features:
            if kinds[j] == "text":
                self._check_mostly_numbers(table, j)
                self.types[j] = "double"
            elif kinds[j] == "number":
                self.types[j] = "double"
        if self.choice.target is not None:
            if first is not None:
                self.label_kind = first.label_kind
            else:
                values, _ = column_labels(table.column(self.choice.target))
                self.label_kind = label_kind(values, options.labels)
            self.types[self.choice.target] = str(self.label_kind)

    def _check_mostly_numbers(self, table: Any, column: int) -> None:
        """ValueError unless a column of the first rows has text by way of exception only."""
        texts = [
            str(value) for value in table.column(column).to_pylist() if value not in (None, "")
        ]
        other = [text for text in texts if not _is_number(text.strip())]
        if 2 * len(other) > len(texts):
            name = self.names[column]
            raise ValueError(
                f"{self.path}: column {name!r}: expected numbers, got {show(other[0])}; leave it "
                f"out with drop (--drop {name}) or name the columns of numbers in columns "
                "(--columns)"
            )

    # ---- parsing -----------------------------------------------------------------------------

    def chunks(self, offset: int, skip: int) -> Iterator[ArrowChunk]:
        """Yield parsed lines; restart points are bytes at which a line starts."""
        start = max(offset, self._start)
        # The next lines are read while these are parsed, which takes all threads.
        for place, lines in read_ahead(line_chunks(self.path, start, _CHUNK_BYTES)):
            table, dropped = self._parse(lines, place)
            chunk = ArrowChunk(self, table, place, 0, dropped)
            chunk.lines = lines
            if len(chunk) or dropped:
                yield chunk

    def _parse(self, lines: bytes, place: int) -> tuple[Any, int]:
        if not lines.strip(b"\r\n"):
            return self._read(b"\n", self._types())[0], 0
        try:
            return self._read(lines, self._types())[0], 0
        except arrow("CSV").ArrowInvalid as error:
            lenient = self._skip_bad or self._mark_bad
            if not lenient and (found := self._first_bad_line(lines, place)):
                raise found from None
            try:
                return self._read_leniently(lines)
            except arrow("CSV").ArrowInvalid:
                last = self._line_number(place) + lines.count(b"\n")
                text = " ".join(str(error).split())[:200]
                raise ValueError(f"{self.path}: before line {last + 1}: {text}") from None

    def _types(self) -> dict[str, Any]:
        """Types of the columns that are parsed, by name."""
        pa = arrow("CSV")
        known = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string()}
        truth = {"bool": pa.bool_()}
        number = pa.from_numpy_dtype(self.dtype)
        types = {str(j): truth.get(self.types[j], number) for j in self.choice.features}
        if self.choice.target is not None:
            types[str(self.choice.target)] = known[str(self.label_kind)]
        return types

    def _read(
        self, lines: bytes, types: dict[str, Any], skip: bool = False
    ) -> tuple[Any, list[Any]]:
        """Parse lines as the given types, those columns alone; and the rows left out.

        With `mark_bad` these are numbers of rows, counted from 1, else None for each.
        """
        arrow(str(self.path))
        from pyarrow import BufferReader
        from pyarrow import csv as arrow_csv

        bad: list[int | None] = []

        def leave_out(row: Any) -> str:
            bad.append(row.number)
            return "skip"

        table = arrow_csv.read_csv(
            BufferReader(lines),
            arrow_csv.ReadOptions(
                column_names=[str(j) for j in range(len(self.names))],
                block_size=_PARSE_BYTES,
                use_threads=not (skip and self._mark_bad),  # else rows have no numbers
            ),
            arrow_csv.ParseOptions(
                delimiter=self._delimiter, invalid_row_handler=leave_out if skip else None
            ),
            arrow_csv.ConvertOptions(column_types=types, include_columns=list(types)),
        )
        return table, bad

    def _read_leniently(self, lines: bytes) -> tuple[Any, int]:
        """Parse the good rows of lines some of which are not; with `mark_bad` others are nulls."""
        pa = arrow("CSV")
        from pyarrow import compute as pc

        wanted = self._types()
        table, bad = self._read(lines, {name: pa.string() for name in wanted}, skip=True)
        texts = {name: pc.utf8_trim_whitespace(table.column(name)) for name in wanted}
        good = pa.chunked_array([np.ones(table.num_rows, dtype=bool)])
        target = str(self.choice.target)
        for name, text in texts.items():
            good = pc.and_(good, pc.match_substring_regex(text, self._pattern(name, target)))
        columns = {}
        for name, text in texts.items():
            fit = text.filter(good)
            if wanted[name] != pa.string():
                fit = pc.replace_substring_regex(fit, r"^\+", "")
            columns[name] = fit.cast(wanted[name])
        found = pa.table(columns)
        if self._mark_bad:
            return found.take(_places(good.to_numpy(), [number - 1 for number in bad])), 0
        return found, len(bad) + table.num_rows - found.num_rows

    def _pattern(self, name: str, target: str) -> str:
        if name == target:
            return _LABELS.get(str(self.label_kind), ".")
        return _TRUTH if self.types[int(name)] == "bool" else _NUMBER

    # ---- what is wrong -----------------------------------------------------------------------

    def complaint(self, chunk: Chunk, row: int, column: int | None, dtype: DType) -> BadRowError:
        """Say what is wrong with a row, by the first line of its chunk that has something."""
        found = self._first_bad_line(chunk.lines, chunk.offset, dtype)
        if found is not None:
            return found
        name = self.target_name if column is None else self.feature_names[column]
        line = self._line_number(chunk.offset) + row
        return BadRowError(self.path, "about line", line, name, "expected a finite number")

    def _first_bad_line(
        self, lines: bytes, place: int, dtype: Any = np.float64
    ) -> BadRowError | None:
        found = self._search(lines, dtype)
        if found is None:
            return None
        index, column, what = found
        return BadRowError(self.path, "line", self._line_number(place) + index, column, what)

    def _search(self, lines: bytes, dtype: Any) -> tuple[int, str | None, str] | None:
        """Index, column and fault of the first line that is bad."""
        for index, line in enumerate(lines.split(b"\n")):
            if not line.strip(b"\r"):
                continue
            try:
                fields = self._fields(line)
            except _NoFieldsError as error:
                return index, None, str(error).removeprefix(f"{self.path}: ")
            if len(fields) != len(self.names):
                return index, None, f"expected {len(self.names)} fields, got {len(fields)}"
            for j in self.choice.features:
                if what := self._fault(fields[j].strip(), self.types[j] == "bool", dtype):
                    return index, self.names[j], what
            if self.choice.target is not None:
                text = fields[self.choice.target].strip()
                if not text:
                    return index, self.target_name, missing_value(label=True)
                if not re.match(_LABELS.get(str(self.label_kind), "."), text):
                    return index, self.target_name, unfit_label(text, str(self.label_kind))
        return None

    @staticmethod
    def _fault(text: str, truth: bool, dtype: Any) -> str | None:
        if not text:
            return missing_value()
        if truth:
            return None if re.match(_TRUTH, text) else f"expected true or false, got {show(text)}"
        if not _is_number(text):
            return f"expected a number, got {show(text)}"
        fits = abs(float(text)) <= float(np.finfo(dtype).max)
        return None if fits else unfit_value(float(text), np.dtype(dtype).name)

    def _line_number(self, place: int) -> int:
        """Number of the line, from 1, that starts at a byte."""
        before, count = place, 1
        with open_bytes(self.path) as file:
            while before and (data := file.read(min(before, _CHUNK_BYTES))):
                count += data.count(b"\n")
                before -= len(data)
        return count

    def fraction(self, offset: int, skip: int) -> float | None:
        """Part of the bytes that lie before a restart point."""
        if self.path.suffix == ".gz":
            return None
        return offset / max(self.path.stat().st_size, 1)

    def facts(self) -> dict[str, object]:
        """Delimiter of the fields, and whether there are names."""
        return {"delimiter": self._delimiter, "header": self._start > len(_BOM)}


def _places(good: npt.NDArray[np.bool_], missing: list[int]) -> Any:
    """Where each row is among the good ones; null for the others.

    ``good`` are flags of the rows but for those `missing`, whose numbers are given.
    """
    flags = np.zeros(len(good) + len(missing), dtype=bool)
    flags[np.delete(np.arange(len(flags)), missing)] = good
    return arrow("CSV").array(np.cumsum(flags) - 1, mask=~flags)


def _is_number(text: str) -> bool:
    return re.match(_NUMBER, text) is not None


def _kind(type_: Any) -> str:
    from pyarrow import types

    if types.is_boolean(type_):
        return "bool"
    number = types.is_integer(type_) or types.is_floating(type_) or types.is_null(type_)
    return "number" if number else "text"
