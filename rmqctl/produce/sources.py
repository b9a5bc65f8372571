"""Sources of the messages of ``produce``: files, standard input, or a template."""

import io
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rmqctl.errors import UsageProblem

from .records import ByteSource, RecordTooLongError, read_records
from .sender import InvalidRecordError

if TYPE_CHECKING:
    from .given_rows import GivenRows, RowReader
    from .parsers import Outgoing, Parser

STDIN: Final = "-"
_FEW: Final = 16
"""Fewer records are parsed before the reader of columns is made."""


class Portion(NamedTuple):
    """Records that arrived together: bodies alone, or messages with the fields of their records,
    as objects or as columns."""

    bodies: list[bytes] | None
    messages: "list[Outgoing]"
    lines: Sequence[int]
    invalid: InvalidRecordError | None = None
    """The invalid record after the portion."""
    rows: "GivenRows | None" = None


class Source(NamedTuple):
    """Messages to send; ``total_bytes`` is None if unknown."""

    portions: Iterator[Portion]
    total_bytes: int | None
    given: "Input | None" = None
    """Where they come from; it knows what was left out once the portions have ended."""
    read: "ReadBytes | None" = None
    """How far a file without lines is read."""

    def passed(self, portion: Portion, before: int) -> int:
        """Bytes of the files up to the end of a portion, the last one that was taken; ``before``
        are those of the portion before it."""
        if self.read is not None:
            return self.read.count
        if self.given is None or self.total_bytes is None:
            return 0
        if portion.invalid is not None:
            return self.given.passed(portion.invalid.line)
        return self.given.passed(portion.lines[-1]) if portion.lines else before


class _Read(NamedTuple):
    """Records that were read at once: the line of the first, their number, and the bytes of the
    files before them and with them."""

    line: int
    number: int
    begin: int
    end: int


class ReadBytes:
    """How many bytes of a file were read so far."""

    count = 0


class Input:
    """The files of a call, in order; ``-`` is standard input."""

    def __init__(
        self, files: Sequence[str], delimiter: bytes, longest: int, *, keeps_empty: bool = False
    ) -> None:
        """``keeps_empty``: an empty line is an empty body, and is not left out."""
        self._files = files or [STDIN]
        self._delimiter = delimiter
        self._longest = longest
        self._keeps_empty = keeps_empty
        self.blank = 0
        """Blank lines that were left out."""
        self.empty: list[str] = []
        """Without a delimiter: the files that were left out, as they are empty."""
        self._line = 1
        self._spans_lines = False  # whether a record may have several lines
        self._before = 0  # bytes of the files that were read as a whole
        self._records_read = _Read(1, 0, 0, 0)
        for name in self._files:
            if name != STDIN and not Path(name).exists():
                raise UsageProblem(f"no such file: {name}")
            if name != STDIN and Path(name).is_dir():
                raise UsageProblem(f"{name} is a folder, not a file")

    @property
    def from_terminal(self) -> bool:
        """Whether the messages are typed on a terminal."""
        return STDIN in self._files and sys.stdin.isatty()

    @property
    def total_bytes(self) -> int | None:
        """Bytes of all files; None if one of them is a pipe."""
        if any(name == STDIN or not Path(name).is_file() for name in self._files):
            return None
        return sum(Path(name).stat().st_size for name in self._files)

    def passed(self, line: int) -> int:
        """Bytes of the files up to the record of a line, one of those that were read last. All
        files are regular ones."""
        first, number, begin, end = self._records_read
        return begin + (end - begin) * min(line + 1 - first, number) // max(number, 1)

    def _has_read(self, source: ByteSource, records: list[bytes]) -> None:
        """Note how far the files are read with the next records."""
        if isinstance(source, io.BufferedReader) and source.seekable():
            end = self._before + source.tell()
            self._records_read = _Read(self._line, len(records), self._records_read.end, end)

    def bodies(self) -> Iterator[Portion]:
        """Each record is a body."""
        for records in self._records():
            first = self._line
            self._line += len(records)
            if self._keeps_empty or b"" not in records:
                yield Portion(records, [], range(first, self._line))
            else:
                yield from self._without_empty(records, first)

    def _without_empty(self, records: list[bytes], first: int) -> Iterator[Portion]:
        """The bodies between empty records: each portion has consecutive lines."""
        begin = 0
        for at in [*(at for at, record in enumerate(records) if not record), len(records)]:
            if begin < at:
                yield Portion(records[begin:at], [], range(first + begin, first + at))
            begin = at + 1
        self.blank += records.count(b"")

    def parsed(
        self, parse: "Parser", *, strips: bool = False, reader: "RowReader | None" = None
    ) -> Iterator[Portion]:
        """Parse each record; an invalid record ends its portion.

        ``strips``: a record of white space is also blank, and left out. ``reader`` takes usual
        records as columns.
        """
        for records in self._records():
            yield from self._read(records, parse, reader, strips=strips)

    def csv(
        self,
        make: "Callable[[dict[str, Any]], Outgoing] | None" = None,
        *,
        ignore_unknown: bool = False,
        keeps_properties: bool = False,
        tell: Callable[[str], None] = lambda _: None,
        key_fields: Sequence[str] = (),
        body_field: str | None = None,
        key_hint: str = "",
        by_columns: bool = False,
        has_places: bool = False,
    ) -> Iterator[Portion]:
        """The first record of each file names the columns; ``make`` gets the cells as fields.

        For the options see CsvParser. ``by_columns``: usual records become columns, for
        ``has_places`` see RowReader. UsageProblem for a header that names no table of messages:
        those of earlier files were yielded.
        """
        from .parsers import CsvParser, csv_cells, from_fields

        self._spans_lines = True
        for name in self._files:
            with opened(name) as source:
                parser: CsvParser | None = None
                reader: RowReader | None = None
                lines = read_records(source, b"\n", self._longest)
                for records in self._until_too_long(_whole_csv_records(lines, self._longest)):
                    self._has_read(source, records)
                    if parser is None:
                        first = self._take_header(records)
                        if first is None:
                            continue
                        try:
                            header = [cell.strip() for cell in csv_cells(first)]
                            parser = CsvParser(
                                header,
                                make or from_fields,
                                ignore_unknown=ignore_unknown,
                                keeps_properties=keeps_properties,
                                tell=tell,
                                key_fields=key_fields,
                                body_field=body_field,
                                key_hint=key_hint,
                            )
                        except ValueError as error:
                            raise UsageProblem(f"{name}: {error}") from None
                        if by_columns:
                            reader = parser.reader(has_places=has_places)
                    yield from self._read(records, parser.parse, reader, strips=True)
            self._before = self._records_read.end

    def tell_blank(self, tell: Callable[[str], None]) -> None:
        """Call ``tell`` with how many blank lines were left out, if any were."""
        if self.blank:
            from storage.counted import counted

            tell(f"left out {counted(self.blank, 'blank line')}")

    def _take_header(self, records: list[bytes]) -> bytes | None:
        """Take the first record that is not blank, and those before it; None if there is none."""
        while records:
            record = records.pop(0)
            self._lines_of([record])
            if record.strip():
                return record.removeprefix(BOM_UTF8)
            self.blank += 1
        return None

    def _records(self) -> Iterator[list[bytes]]:
        for name in self._files:
            with opened(name) as source:
                found = read_records(source, self._delimiter, self._longest)
                for records in self._until_too_long(found):
                    self._has_read(source, records)
                    if self._delimiter or self._keeps_empty or records != [b""]:
                        yield records
                    else:
                        self.empty.append(name)
                        self._line += 1
            self._before = self._records_read.end

    def _until_too_long(self, found: Iterator[list[bytes]]) -> Iterator[list[bytes]]:
        """The same; a record that is too long is an InvalidRecordError of its line."""
        try:
            yield from found
        except RecordTooLongError as error:
            raise InvalidRecordError(self._line, str(error)) from None

    def _lines_of(self, records: list[bytes]) -> Sequence[int]:
        """The numbers of the lines in which the next records begin."""
        first = self._line
        if self._spans_lines:
            counts = [1 + record.count(b"\n") for record in records]
            self._line += sum(counts)
            if self._line - first > len(records):
                return list(accumulate(counts[:-1], initial=first))
        else:
            self._line += len(records)
        return range(first, self._line)

    def _read(
        self, records: list[bytes], parse: "Parser", reader: "RowReader | None", *, strips: bool
    ) -> Iterator[Portion]:
        """Records as columns as far as the reader takes them; the others one by one, in order."""
        if reader is None or len(records) < _FEW:
            yield from self._parse(records, parse, strips=strips)
            return
        from .given_rows import runs_of

        rows = reader.read(records)
        for begin, end, is_taken in runs_of(rows):
            if not is_taken:
                yield from self._parse(records[begin:end], parse, strips=strips)
                continue
            lines = self._lines_of(records[begin:end])
            yield Portion(None, [], lines, rows=rows.part(begin, end))

    def _parse(self, records: list[bytes], parse: "Parser", *, strips: bool) -> Iterator[Portion]:
        messages: list[Outgoing] = []
        lines: list[int] = []
        for record, line in zip(records, self._lines_of(records), strict=True):
            if not record.strip() if strips else not (record or self._keeps_empty):
                self.blank += 1
                continue
            try:
                messages.append(parse(record))
                lines.append(line)
            except ValueError as error:
                yield Portion(None, messages, lines, InvalidRecordError(line, str(error)))
                messages, lines = [], []
        if messages:
            yield Portion(None, messages, lines)


class _Opened:
    """A binary file, or standard input, which is left open."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._file: io.BufferedReader | None = None

    def __enter__(self) -> ByteSource:
        if self._name == STDIN:
            return sys.stdin.buffer  # type: ignore[return-value]  # always buffered: read1 exists
        self._file = Path(self._name).open("rb")
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()


def opened(name: str) -> _Opened:
    """A file, or standard input (``-``), for a ``with`` block."""
    return _Opened(name)


def _whole_csv_records(chunks: Iterator[list[bytes]], longest: int) -> Iterator[list[bytes]]:
    """Join lines with open quotes, as a cell may contain newlines.

    RecordTooLongError for one of more than ``longest`` bytes, such as after an unclosed quote;
    earlier records were yielded.
    """
    pending: list[bytes] = []
    quotes = size = 0
    for lines in chunks:
        whole: list[bytes] = []
        for line in lines:
            quotes += line.count(b'"')
            size += len(line) + 1
            pending.append(line)
            if size > longest + 1:
                if whole:
                    yield whole
                raise RecordTooLongError(f"has more than {longest} bytes: a quote is not closed")
            if quotes % 2:
                continue
            whole.append(b"\n".join(pending))
            quotes = size = 0
            pending.clear()
        if whole:
            yield whole
    if pending:
        yield [b"\n".join(pending) + b"\n"]
