"""The renderer: filters, sorts, limits and prints the rows of a command, in any format."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from rmqctl.output.encoders import Streaming, as_yaml, encoder_for
from rmqctl.output.fields import Field, Kind, Rank, fields_of, kind_of_member
from rmqctl.output.headings import Times, headings
from rmqctl.output.shaping import (
    Row,
    chosen_fields,
    condition_of,
    predicate_of,
    sort_keys,
    sorted_rows,
)
from rmqctl.output.stdout import BytesOut, Out
from rmqctl.output.values import (
    LONG,
    as_json,
    escape_controls,
    escape_tabs,
    for_lines,
    for_people,
    for_terminal,
    plain,
)
from rmqctl.output.view import Format, View

if TYPE_CHECKING:
    from rmqctl.output.encoded_rows import Layout
    from rmqctl.output.row_block import RowBlock

_DEEPEST: Final = 3
"""Levels of members that have lines of their own in the table of a single thing."""
_BATCH: Final = 1000
"""Rows per batch."""
_BATCH_BYTES: Final = 1 << 20
"""Bytes of bodies per batch; a single one may have more."""


class RowStream:
    """Prints rows of one type as they come.

    Streams, unless ``--sort`` or a table needs all rows. Call :meth:`flush` when no further row
    comes for now, and :meth:`finish` at the end.
    """

    def __init__(self, row_type: type, view: View, out: Out) -> None:
        self._out = out
        self._view = view
        self._all = fields_of(row_type)
        self._indexes = [self._all.index(field) for field in chosen_fields(self._all, view)]
        self._whole = self._indexes == list(range(len(self._all)))
        self._encoder = encoder_for([self._all[index] for index in self._indexes], view)
        self._keep = predicate_of(self._all, view)
        self._order = sort_keys(self._all, view.sort)
        self._sorted: list[Row] = []
        sizes = [index for index, field in enumerate(self._all) if field.name == "body_size"]
        self._size = sizes[0] if sizes else None
        self._left = view.limit
        self.count = 0
        """Number of printed rows."""
        self._begun = False
        self._ended = False

    @property
    def taken(self) -> int:
        """Number of printed rows, and of those that are kept to be sorted."""
        return self.count + len(self._sorted)

    @property
    def full(self) -> bool:
        """Whether ``--limit`` is reached; further rows are not printed."""
        return self._left is not None and self._left <= 0 and not self._order

    def write(self, rows: Iterable[Row]) -> None:
        """Print rows; stops reading the iterable once the limit is reached."""
        if self._order:
            self._sorted.extend(row for row in rows if self._keep is None or self._keep(row))
            return
        if self.full:
            return
        batch: list[Row] = []
        room = _BATCH_BYTES
        for row in rows:
            if self._keep is None or self._keep(row):
                batch.append(row)
                if len(batch) == self._left:
                    break
                if self._size is not None:
                    room -= row[self._size] or 0
                if len(batch) == _BATCH or room < 0:
                    self._print(batch)
                    batch, room = [], _BATCH_BYTES
        self._print(batch)

    def layout(self) -> "Layout | None":
        """How rows of messages are made for :meth:`write_encoded`; None if they are sorted, or
        counted after a filter, or in a format that needs their values."""
        is_counted = self._keep is not None and self._left is not None
        if is_counted or self._order or not isinstance(self._out, BytesOut):
            return None
        from rmqctl.output.encoded_rows import layout_of  # lazy: for messages only

        condition = condition_of(self._all, self._view)
        names = [self._all[index].name for index in self._indexes]
        return layout_of(names, self._view, condition)

    def write_encoded(self, rows: "RowBlock") -> None:
        """Print rows that :meth:`layout` has made and no filter has left out, up to the limit."""
        shown = rows if self._left is None else rows.upto(self._left)
        if not (count := shown.kept if self._keep is None else shown.written):
            return
        assert isinstance(self._encoder, Streaming)
        assert isinstance(self._out, BytesOut)
        if self._left is not None:
            self._left -= count
        self.count += count
        self._begin()
        for part in self._encoder.encoded(shown.text):
            self._out.write_bytes(part)

    def _print(self, rows: Sequence[Row]) -> None:
        if not rows:
            return
        if self._left is not None:
            self._left -= len(rows)
        self.count += len(rows)
        shown: Sequence[Row] = rows
        if not self._whole:
            shown = [[row[index] for index in self._indexes] for row in rows]
        self._begin()
        if self._size is not None and any((row[self._size] or 0) > LONG for row in rows):
            from rmqctl.output.long_values import write_row

            for row in shown:
                write_row(row, lambda one: self._encoder.rows([one]), self._view, self._out)
            self._put("")
        else:
            self._put(self._encoder.rows(shown))

    def _put(self, text: str) -> None:
        """Print text, and what the encoder remarks on it."""
        self._out.write(text)
        remark = self._encoder.remark()
        if remark and self._view.remark is not None:
            self._view.remark(remark)

    def _begin(self) -> None:
        """Print the head with the first row, so a command that fails before prints nothing."""
        if not self._begun:
            self._begun = True
            self._out.write(self._encoder.head())

    def flush(self) -> None:
        """Make all output so far visible to the reader."""
        self._put(self._encoder.pause())
        self._out.flush()

    def finish(self) -> None:
        """Print the rest and end the stream, once."""
        if self._ended:
            return
        if self._order:
            rows = sorted_rows(self._sorted, self._order)
            self._sorted = []
            self._print(rows if self._left is None else rows[: self._left])
        self._begin()
        self._ended = True
        self._put(self._encoder.tail())
        view = self._view
        if not self.count and view.terminal and view.nothing is not None and _is_table(view):
            view.nothing(view.where is not None)


def _is_table(view: View) -> bool:
    return view.format in (Format.TABLE, Format.WIDE)


def render_rows(row_type: type, rows: Iterable[Row], view: View, out: Out) -> int:
    """Print all rows of a list command; returns the number of printed rows."""
    stream = RowStream(row_type, view, out)
    stream.write(rows)
    stream.finish()
    return stream.count


def render_one(row_type: type, row: Row, view: View, out: Out) -> None:
    """Print a single object: an object in JSON and YAML, one field per line in tables."""
    fields = fields_of(row_type)
    keep = predicate_of(fields, view)
    if view.limit == 0 or (keep is not None and not keep(row)):
        if view.format in (Format.JSON, Format.YAML):
            out.write("null\n")
        return
    shown = [(field, row[fields.index(field)]) for field in chosen_fields(fields, view)]
    names, values = [field.name for field, _ in shown], [member for _, member in shown]
    from rmqctl.output.long_values import write_row  # lazy: lists need it for large bodies only

    match view.format:
        case Format.JSON:
            write_row(values, lambda row: as_json(_object(names, row), 2) + "\n", view, out)
        case Format.YAML:
            write_row(values, lambda row: as_yaml(_object(names, row)), view, out)
        case Format.TABLE | Format.WIDE | Format.PLAIN:
            present = [
                (field, member)
                for field, member in shown
                if member is not None or not field.omit_null or view.columns
            ]
            out.write(_vertical(present, view))
        case _:
            encoder = encoder_for([field for field, _ in shown], view)
            out.write(encoder.head())
            write_row(values, lambda row: encoder.rows([row]), view, out)
            out.write(encoder.tail())


def _object(names: Sequence[str], row: Row) -> dict[str, Any]:
    return {name: plain(value) for name, value in zip(names, row, strict=True)}


def _vertical(shown: Sequence[tuple[Field, Any]], view: View) -> str:
    """One line per field; members of objects have lines of their own, in tables those of objects
    in lists and objects, too."""
    deepest = 1 if view.format is Format.PLAIN else _DEEPEST
    pairs = [pair for field, value in shown for pair in _members(field, value, deepest)]
    if view.format is Format.PLAIN:
        lines = "".join(
            f"{escape_tabs(field.name)}\t{for_lines(value, field.kind, view.zone, raw=view.raw)}\n"
            for field, value in pairs
        )
        return for_terminal(lines) if view.terminal else lines
    from rmqctl.output.tables import aligned

    times = Times(view.zone, view.now_ms)
    values = [for_people(value, field.kind, times, raw=view.raw) for field, value in pairs]
    titles = headings([field for field, _ in pairs], times.label, raw=view.raw)
    named = zip(map(escape_controls, titles), values, strict=True)
    return aligned([list(member) for member in named], (False, False))


def _members(field: Field, value: Any, depth: int) -> Iterator[tuple[Field, Any]]:
    """The members of an object, or of the objects in a list, down to a depth; else the value."""
    members: Mapping[str, Any] = {}
    if depth and (isinstance(value, Mapping) or hasattr(value, "_fields")):
        members = plain(value)
    elif depth > 1 and _is_list(value):
        objects = plain(value)
        if all(isinstance(each, Mapping) for each in objects):
            members = {str(number): each for number, each in enumerate(objects, 1)}
    if not members:
        yield field, value
    for name, member in members.items():
        inner = field._replace(name=f"{field.name}.{name}", kind=_kind_of(name, member))
        yield from _members(inner, member, depth - 1)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and not hasattr(value, "_fields")


def _kind_of(name: str, value: Any) -> Kind:
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return kind_of_member(name) or Kind.STRING
    return Kind.STRING


class FieldRow(NamedTuple):
    """One line of ``-o help``."""

    field: Annotated[str, "the field", Rank.KEY]
    type: Annotated[str, "its type in JSON", Rank.KEY]
    unit: Annotated[str, "the unit of a number", Rank.MAIN]
    meaning: Annotated[str, "what it is", Rank.KEY]


def render_help(row_type: type, view: View, out: Out) -> None:
    """Print the fields of a row type, for ``-o help``."""
    rows = [
        FieldRow(
            field.name,
            field.json_type + (" or null" if field.nullable else ""),
            field.unit,
            field.help + (" (not in table, plain and md)" if field.wide else ""),
        )
        for field in fields_of(row_type)
    ]
    shape = View(Format.TABLE, headers=view.headers, terminal=view.terminal, color=view.color)
    render_rows(FieldRow, rows, shape, out)


def check_view(row_types: Iterable[type], view: View) -> None:
    """Raise UsageProblem for columns, sort keys or conditions with a field that no type has."""
    fields = list({f.name: f for kind in row_types for f in fields_of(kind)}.values())
    chosen_fields(fields, view)
    sort_keys(fields, view.sort)
    predicate_of(fields, view)


def is_wanted(row_type: type, view: View, name: str) -> bool:
    """Whether a field is printed, or read by ``--where`` or ``--sort``.

    Otherwise a field that takes long to find may stay None.
    """
    fields = fields_of(row_type)
    condition = condition_of(fields, view)
    used = {field.name for field in chosen_fields(fields, view)}
    used.update(fields[index].name for index, _ in sort_keys(fields, view.sort))
    return name in used or (condition is not None and name in condition.names)
