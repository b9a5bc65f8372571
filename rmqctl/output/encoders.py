"""One encoder for each output format: batches of rows to text.

All but the tables stream: the text of a batch is complete, whatever follows.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from rmqctl.output.fields import Field
from rmqctl.output.headings import Times, headings
from rmqctl.output.values import (
    as_json,
    escape_controls,
    escape_markdown,
    exact,
    for_lines,
    for_people,
    for_terminal,
    plain,
    safe_json,
)
from rmqctl.output.view import Format, View

Row = Sequence[Any]
Buffer: TypeAlias = "bytes | memoryview"

_NEEDS_QUOTES: Final = re.compile(r'[",\r\n]')


class Encoder(Protocol):
    """Turns the rows of one result into text."""

    def head(self) -> str:
        """The text before the first row."""
        ...

    def rows(self, rows: Sequence[Row]) -> str:
        """The text of a batch; may be empty if the rows are kept for :meth:`pause`."""
        ...

    def pause(self) -> str:
        """The text of kept rows, when no further row comes for now."""
        ...

    def tail(self) -> str:
        """The text after the last row."""
        ...

    def remark(self) -> str:
        """A sentence about the text so far, for stderr; given once, then empty."""
        ...


class Streaming:
    """An encoder that encodes each row independently."""

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        self.fields = fields
        self.view = view
        self._names = [field.name for field in fields]

    def head(self) -> str:
        """See :class:`Encoder`."""
        return ""

    def members(self, row: Row) -> dict[str, Any]:
        """The row as an object; all rows have the same members."""
        return dict(zip(self._names, row, strict=True))

    def encoded(self, text: Buffer) -> Sequence[Buffer]:
        """The text of rows that a layout has made (rmqctl.output.encoded_rows), in parts."""
        return (text,)

    def pause(self) -> str:
        """See :class:`Encoder`."""
        return ""

    def tail(self) -> str:
        """See :class:`Encoder`."""
        return ""

    def remark(self) -> str:
        """See :class:`Encoder`."""
        return ""


class _JsonLines(Streaming):
    """One compact object per line."""

    def rows(self, rows: Sequence[Row]) -> str:
        return "".join([as_json(self.members(row)) + "\n" for row in rows])


class _JsonArray(Streaming):
    """An array with one object per line."""

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        super().__init__(fields, view)
        self._before = "[\n"

    def rows(self, rows: Sequence[Row]) -> str:
        text = ""
        for row in rows:
            text += self._before + as_json(self.members(row))
            self._before = ",\n"
        return text

    def encoded(self, text: Buffer) -> Sequence[Buffer]:
        before, self._before = self._before, ",\n"
        return before.encode(), memoryview(text)[len(",\n") :]

    def tail(self) -> str:
        return "[]\n" if self._before == "[\n" else "\n]\n"


class _Yaml(Streaming):
    """A list of mappings."""

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        super().__init__(fields, view)
        from rmqctl.output.yaml_rows import YamlRows  # lazy: imports YAML

        self._rows = YamlRows(self._names)
        self._empty = True

    def rows(self, rows: Sequence[Row]) -> str:
        if not rows:
            return ""
        self._empty = False
        return "".join([self._rows.row(list(map(plain, row))) for row in rows])

    def encoded(self, text: Buffer) -> Sequence[Buffer]:
        """See :class:`Streaming`."""
        self._empty = False
        return super().encoded(text)

    def tail(self) -> str:
        return "[]\n" if self._empty else ""


def as_yaml(value: Any) -> str:
    """The value as YAML, keys in order, text as UTF-8."""
    import yaml

    def dumped(*, allow_unicode: bool) -> str:
        return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=allow_unicode, width=2**31))

    text = dumped(allow_unicode=True)
    # YAML escapes control characters by itself, but not bidirectional overrides.
    return text if safe_json(text) == text else dumped(allow_unicode=False)


class _Csv(Streaming):
    """RFC 4180, including CRLF line ends."""

    def head(self) -> str:
        return self._line([f.name for f in self.fields]) if self.view.headers else ""

    def rows(self, rows: Sequence[Row]) -> str:
        text = _cell_writer(self.view)
        return "".join([self._line([text(value) for value in row]) for row in rows])

    @staticmethod
    def _line(cells: list[str]) -> str:
        quoted = [
            '"' + cell.replace('"', '""') + '"' if _NEEDS_QUOTES.search(cell) else cell
            for cell in cells
        ]
        # A single empty cell would be an empty line, which parsers skip.
        return '""\r\n' if quoted == [""] else ",".join(quoted) + "\r\n"


class _Lines(Streaming):
    """plain and tsv: tab-separated, times in RFC 3339, null is ``-``."""

    def head(self) -> str:
        return "\t".join(f.name for f in self.fields) + "\n" if self.view.headers else ""

    def rows(self, rows: Sequence[Row]) -> str:
        zone, raw = self.view.zone, self.view.raw
        kinds = [field.kind for field in self.fields]
        text = "".join(
            [
                "\t".join([for_lines(v, k, zone, raw=raw) for v, k in zip(row, kinds, strict=True)])
                + "\n"
                for row in rows
            ]
        )
        return for_terminal(text) if self.view.terminal else text


class _Markdown(Streaming):
    """A table for issues and reports."""

    def __init__(self, fields: Sequence[Field], view: View) -> None:
        super().__init__(fields, view)
        self._times = Times(view.zone, view.now_ms)
        self._begun = False

    def rows(self, rows: Sequence[Row]) -> str:
        lines = "".join([f"| {' | '.join(self._cells(row))} |\n" for row in rows])
        return self._titles() + lines

    def tail(self) -> str:
        return self._titles()

    def _titles(self) -> str:
        """The heading, after the first rows, as it names the offset of their times."""
        if self._begun:
            return ""
        self._begun = True
        titles = " | ".join(headings(self.fields, self._times.label, raw=self.view.raw))
        rules = " | ".join("---:" if field.numeric else "---" for field in self.fields)
        return f"| {titles} |\n| {rules} |\n"

    def _cells(self, row: Row) -> list[str]:
        return [
            escape_markdown(for_people(value, field.kind, self._times, raw=self.view.raw))
            for value, field in zip(row, self.fields, strict=True)
        ]


def _cell_writer(view: View) -> Callable[[Any], str]:
    """Values are exact for programs; on a terminal, control characters are escaped."""
    if not view.terminal:
        return exact
    return lambda value: escape_controls(exact(value))


def encoder_for(fields: Sequence[Field], view: View) -> Encoder:
    """The encoder of the view's format."""
    if view.format in (Format.TABLE, Format.WIDE):
        from rmqctl.output.tables import Table

        return Table(fields, view)
    streaming: dict[Format, type[_JsonLines | _JsonArray | _Yaml | _Csv | _Lines | _Markdown]] = {
        Format.JSON: _JsonArray,
        Format.JSONL: _JsonLines,
        Format.YAML: _Yaml,
        Format.CSV: _Csv,
        Format.TSV: _Lines,
        Format.PLAIN: _Lines,
        Format.MD: _Markdown,
    }
    return streaming[view.format](fields, view)
