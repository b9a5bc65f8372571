"""Rows from columns: the same bytes as rows of messages, in the compiled form and the reference."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st

from rmqctl import native
from rmqctl.output import encoded_rows
from rmqctl.output.encoded_rows import SOURCES, Layout, layout_of, layout_of_template
from rmqctl.output.encoders import encoder_for
from rmqctl.output.fields import fields_of
from rmqctl.output.message_rows import MessageRow, message_row
from rmqctl.output.render import RowStream
from rmqctl.output.stdout import encoded
from rmqctl.output.view import Format, View
from rmqctl.parse.templates import OutputTemplate, parse_template
from storage.format.message import MessageExt
from storage.format.properties import encode_properties
from storage.read.message_table import MessageTable
from tests.support.compiled import needs_compiled

FORMATS = (Format.JSON, Format.JSONL, Format.CSV, Format.TSV, Format.PLAIN, Format.YAML)
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")
HOST = bytes([10, 0, 0, 1, 0, 0, 0x2A, 0x9F])
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
    | st.sampled_from(
        '"\\,\t\r\n\0\x1f\x7f\x80\x9f\xa0\u2027\u2028\u202e\u202f\u2065\u2066\u2069\u206a'
    ),
    max_size=20,
)
NAME = TEXT.filter(bool)
NUMBER32 = st.integers(-(1 << 31), (1 << 31) - 1)
NUMBER64 = st.integers(-(1 << 63), (1 << 63) - 1)
TIME = st.integers(0, 4_102_444_800_000)


@st.composite
def messages(draw: Any) -> MessageExt:
    properties = draw(st.dictionaries(NAME, NAME, max_size=4))
    if draw(st.booleans()):
        properties["KEYS"] = draw(NAME)
    if draw(st.booleans()):
        properties["TAGS"] = draw(NAME)
    if draw(st.booleans()):
        properties["UNIQ_KEY"] = draw(NAME)
    return MessageExt(
        draw(NAME),
        draw(st.binary(max_size=30) | TEXT.map(str.encode)),
        encode_properties(properties),
        flag=draw(NUMBER32),
        queue_id=draw(NUMBER32),
        queue_offset=draw(NUMBER64),
        commitlog_offset=draw(st.integers(0, (1 << 63) - 1)),
        store_size=draw(NUMBER32),
        body_crc=draw(NUMBER32),
        sys_flag=0,
        born_timestamp=draw(TIME),
        born_host_bytes=HOST,
        store_timestamp=draw(TIME),
        store_host_bytes=HOST,
        reconsume_times=draw(NUMBER32),
        prepared_transaction_offset=draw(NUMBER64),
    )


def compiled_rows() -> Any:
    return native.compiled


def table_of(found: Sequence[MessageExt], layout: Layout) -> MessageTable:
    table = MessageTable(layout.fields, 1 << 20, 1 << 29)
    for message in found:
        table.add(message, message.queue_offset)
    return table


def by_messages(found: Sequence[MessageExt], columns: Sequence[str], view: View) -> bytes:
    fields = [field for field in fields_of(MessageRow) if field.name in columns]
    fields.sort(key=lambda field: list(columns).index(field.name))
    rows = [[getattr(message_row(message), field.name) for field in fields] for message in found]
    encoder = encoder_for(fields, view)
    return encoded(encoder.head() + encoder.rows(rows) + encoder.tail())


def by_columns(found: Sequence[MessageExt], columns: Sequence[str], view: View) -> bytes:
    fields = [field for field in fields_of(MessageRow) if field.name in columns]
    fields.sort(key=lambda field: list(columns).index(field.name))
    layout = layout_of(columns, view)
    assert layout is not None
    encoder: Any = encoder_for(fields, view)
    rows = layout.rows(table_of(found, layout))
    text = b"".join(map(bytes, encoder.encoded(rows.text)))
    return encoded(encoder.head()) + text + encoded(encoder.tail())


def test_each_column_of_a_message_has_a_source():
    assert tuple(SOURCES) == MessageRow._fields


@pytest.mark.slow
@needs_compiled
@settings(max_examples=60)
@given(
    st.lists(messages(), min_size=1, max_size=4),
    st.lists(st.sampled_from(MessageRow._fields), min_size=1, unique=True),
    st.sampled_from(FORMATS),
    st.sampled_from([datetime.UTC, BERLIN, datetime.timezone(datetime.timedelta(hours=-3.5))]),
    st.booleans(),
)
def test_rows_are_those_of_messages(found, columns, form, zone, raw):
    view = View(form, zone=zone, raw=raw)
    wanted = by_messages(found, columns, view)
    assert by_columns(found, columns, view) == wanted
    with patch.object(encoded_rows, "encoded_rows", native.references["encoded_rows"]):
        if form not in (Format.TSV, Format.PLAIN):  # its dates need the zone, which it gets as such
            assert by_columns(found, columns, view) == wanted


@pytest.mark.slow
@needs_compiled
@settings(max_examples=40)
@given(
    st.lists(messages(), min_size=1, max_size=4),
    st.lists(
        st.sampled_from(["%" + code for code in "tqopPkgsvSTBdmMrb"])
        | st.sampled_from([r"\n", r"\0", " ", "%%", "a,b"]),
        min_size=1,
    ),
)
def test_templates_are_those_of_messages(found, pieces):
    text = "".join(pieces)
    layout = layout_of_template(parse_template(text), BERLIN)
    template = OutputTemplate(text, BERLIN)
    if layout is None:
        assert not any(piece[0] == "%" and piece != "%%" for piece in pieces)
        return
    assert list(layout.rows(table_of(found, layout))) == list(map(template.format, found))


@pytest.mark.slow
@needs_compiled
@settings(max_examples=40)
@given(
    st.lists(messages(), min_size=1, max_size=4),
    st.lists(st.sampled_from(MessageRow._fields), min_size=1, unique=True),
    st.sampled_from(FORMATS),
    st.data(),
)
def test_rows_that_are_not_chosen_have_no_text(found, columns, form, data):
    view = View(form, zone=BERLIN)
    layout = layout_of(columns, view)
    assert layout is not None
    table = table_of(found, layout)
    chosen = bytes(data.draw(st.booleans()) for _ in found)
    block = layout.rows(table, chosen)
    whole = list(layout.rows(table))
    wanted = [row if keep else None for row, keep in zip(whole, chosen, strict=True)]
    assert list(block) == wanted
    assert bytes(block.text) == b"".join(row for row in wanted if row is not None)
    with patch.object(encoded_rows, "encoded_rows", native.references["encoded_rows"]):
        if form not in (Format.TSV, Format.PLAIN):
            assert list(layout.rows(table, chosen)) == wanted


CONDITIONS = (
    "queue_offset > 0 and flag < 0",
    "tags = null or not keys ~ a",
    "body != null",
    "body_base64 ~ '=$' or body_size in (0, 3)",
    "properties.TAGS ~ '.' and store_timestamp > 1995-01-01",
    "born_host = 10.0.0.1:10911",
    "msg_id !~ 0 and topic ~ '.'",
)


@pytest.mark.slow
@needs_compiled
@settings(max_examples=60)
@given(
    st.lists(messages(), max_size=6),
    st.lists(st.sampled_from(MessageRow._fields), min_size=1, unique=True),
    st.sampled_from(FORMATS),
    st.sampled_from(CONDITIONS),
    st.data(),
)
def test_a_condition_leaves_the_rows_that_it_leaves_of_messages(found, columns, form, where, data):
    chosen = bytes(data.draw(st.booleans()) for _ in found)
    view = View(form, zone=BERLIN, columns=columns, where=where)
    by_rows, by_table = Sink(), Sink()
    stream = RowStream(MessageRow, view, by_rows)
    stream.write(message_row(one) for one, keep in zip(found, chosen, strict=True) if keep)
    stream.finish()
    other = RowStream(MessageRow, view, by_table)
    layout = other.layout()
    assert layout is not None
    block = layout.rows(table_of(found, layout), chosen)
    assert [row is not None for row in block] == list(map(bool, chosen))
    other.write_encoded(block)
    other.finish()
    assert by_table.text == by_rows.text
    assert other.count == stream.count


def test_rows_that_are_counted_after_a_condition_are_of_messages():
    view = View(Format.JSONL, where="queue_id = 0", limit=5)
    assert RowStream(MessageRow, view, Sink()).layout() is None


class Sink:
    """What was written."""

    def __init__(self) -> None:
        self.text = b""

    def write(self, text: str, /) -> None:
        self.text += encoded(text)

    def write_bytes(self, data: bytes | memoryview, /) -> None:
        self.text += data

    def flush(self) -> None:
        """All is there."""


@needs_compiled
def test_bodies_alone_with_their_delimiter():
    layout = encoded_rows.layout_of_bodies(b"\0;")
    assert layout is not None
    bodies = [b"one", b"", b"\xff\n"]
    found = [MessageExt("t", body, store_host_bytes=HOST, born_host_bytes=HOST) for body in bodies]
    block = layout.rows(table_of(found, layout))
    assert bytes(block.text) == b"one\0;\0;\xff\n\0;"
    assert list(block) == [b"one\0;", b"\0;", b"\xff\n\0;"]


@pytest.mark.parametrize("text", ["%h", "%i", "%s{hex}", "%d{%Y}", "plain"])
def test_other_templates_need_messages(text):
    assert layout_of_template(parse_template(text)) is None


@pytest.mark.parametrize("form", [form for form in Format if form not in FORMATS])
def test_formats_for_people_need_rows(form):
    assert layout_of(["body"], View(form)) is None


@pytest.mark.parametrize("form", [Format.CSV, Format.TSV, Format.PLAIN])
def test_a_terminal_needs_rows(form):
    assert layout_of(["body"], View(form, terminal=True)) is None


@needs_compiled
def test_a_change_of_the_clocks_within_a_table():
    """One hour before and after the end of summer time: two offsets."""
    change = int(datetime.datetime(2026, 10, 25, 1, tzinfo=datetime.UTC).timestamp() * 1000)
    found = [
        MessageExt("t", b"", store_timestamp=time, store_host_bytes=HOST, born_host_bytes=HOST)
        for time in (change - 3_600_000, change - 1, change, change + 3_600_000)
    ]
    view = View(Format.TSV, zone=BERLIN)
    text = by_columns(found, ["store_timestamp"], view)
    assert text == by_messages(found, ["store_timestamp"], view)
    assert text.count(b"+02:00") == text.count(b"+01:00") == 2


@needs_compiled
@pytest.mark.parametrize(
    ("kind", "buffers"),
    [
        (encoded_rows.Value.INT, (b"\0\0\0",)),
        (encoded_rows.Value.LONG, (b"\0" * 7,)),
        (encoded_rows.Value.NAME, (b"\0\0\0\0\x05\0\0\0", b"abc")),
        (encoded_rows.Value.NAME, (b"\x02\0\0\0\x01\0\0\0", b"abc")),
        (encoded_rows.Value.NAME, (b"\xff\xff\xff\xff\x01\0\0\0", b"abc")),
        (encoded_rows.Value.LIST, (b"\0\0\0\0\x02\0\0\0", b"\0\0\0\0\x01\0\0\0", b"a")),
        (encoded_rows.Value.LIST, (b"\0\0\0\0",)),
        (99, (b"",)),
        (-1, (b"",)),
    ],
)
def test_wrong_buffers_are_refused(kind, buffers):
    with pytest.raises(ValueError, match="a column has"):
        compiled_rows().encoded_rows(((b"", int(kind), 0, buffers),), 1, 0, b"", None)


@needs_compiled
def test_a_choice_of_too_few_rows_is_refused():
    with pytest.raises(ValueError, match="not all rows"):
        compiled_rows().encoded_rows((), 2, 0, b"", b"\1")
