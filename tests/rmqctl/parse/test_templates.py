from datetime import UTC
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rmqctl.parse.input_templates import InputTemplate, ParsedRecord
from rmqctl.parse.templates import Field, OutputTemplate, parse_template
from storage.format.errors import BodyError
from storage.format.message import RESERVED_PROPERTIES

NOW = 1_767_225_600_123
MESSAGE: Any = SimpleNamespace(
    topic="orders",
    queue_id=3,
    queue_offset=41,
    commitlog_offset=7000,
    keys=("k1", "k2"),
    tags="new",
    body=b"caf\xc3\xa9",
    store_timestamp=NOW,
    born_timestamp=NOW - 5,
    properties={"color": "red", "size": "L", "KEYS": "k1 k2", "UNIQ_KEY": "AC1"},
    msg_id="AC1",
    offset_msg_id="0A1",
    reconsume_times=2,
    born_host="10.0.0.1:5000",
)

USERS_NAMES = st.text(min_size=1, max_size=5).filter(lambda name: name not in RESERVED_PROPERTIES)


def text(template: str, message: Any = MESSAGE) -> bytes:
    return OutputTemplate(template, UTC).format(message)


@pytest.mark.feature(20)
@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("%t %q %p %o %P", b"orders 3 3 41 7000"),
        ("%k|%g", b"k1 k2|new"),
        ("%s %v %S", b"caf\xc3\xa9 caf\xc3\xa9 5"),
        ("%T %B", b"1767225600123 1767225600118"),
        ("%d", b"2026-01-01T00:00:00.123+00:00"),
        ("%d{%H:%M:%S}", b"00:00:00"),
        ("%h", b"color=red,size=L"),
        ("%h{json}", b'{"color": "red", "size": "L"}'),
        ("%m %M %r %b", b"AC1 0A1 2 10.0.0.1:5000"),
        ("%s{hex} %s{base64} %s{json}", b'636166c3a9 Y2Fmw6k= "caf\xc3\xa9"'),
        ("%q{json} %t{hex}", b"3 6f7264657273"),
        (r"100%% \t\n\x41\\", b"100% \t\nA\\"),
        ("", b""),
        ("%%{x}", b"%{x}"),
    ],
)
def test_fields_and_modifiers(template, expected):
    assert text(template) == expected


@pytest.mark.parametrize("time", [-(1 << 63), (1 << 63) - 1, 253_402_300_800_000])
def test_a_time_without_a_date_is_its_number(time):
    damaged = SimpleNamespace(**{**vars(MESSAGE), "store_timestamp": time})
    assert text("%d", damaged) == text("%d{%H:%M}", damaged) == str(time).encode()


def test_a_form_of_dates_that_is_no_text_is_refused():
    with pytest.raises(ValueError, match="is no format of a date"):
        parse_template("%d{%H\udcff}")


def test_the_counter_counts_from_one():
    template = OutputTemplate("%i ", UTC)
    assert template.format(MESSAGE) + template.format(MESSAGE) == b"1 2 "


def test_what_cannot_be_formatted_is_not_counted():
    class Damaged:
        @property
        def body(self):
            raise BodyError("damaged")

    template = OutputTemplate("%i %s ", UTC)
    damaged: Any = Damaged()
    with pytest.raises(BodyError):
        template.format(damaged)
    with pytest.raises(BodyError):
        template.join([MESSAGE, b"text", damaged])
    assert template.count == 0
    assert template.join([MESSAGE, b"text "]) == b"1 %b text " % MESSAGE.body
    assert template.count == 1


def test_what_is_not_there_is_empty():
    bare = SimpleNamespace(**{**vars(MESSAGE), "tags": None, "keys": (), "properties": {}})
    assert text("[%g][%k][%h][%h{json}]", bare) == b"[][][][{}]"


def test_a_body_that_is_not_text_keeps_its_bytes_and_is_null_in_json():
    binary: Any = SimpleNamespace(**{**vars(MESSAGE), "body": b"\xff\x00"})
    assert text("%s %s{json}", binary) == b"\xff\x00 null"


@pytest.mark.parametrize("template", ["%x", "%", "a%", "%s{upper}", r"\q", "%s %e"])
def test_malformed_templates_are_refused(template):
    with pytest.raises(ValueError, match="template|escape"):
        parse_template(template)


def test_literals_are_joined():
    assert parse_template(r"a\tb%%%s") == [b"a\tb%", Field("s", "")]


@pytest.mark.parametrize(
    ("template", "record", "expected"),
    [
        ("%s", b"hello", ParsedRecord(b"hello")),
        (r"%k\t%s\n", b"k1 k2\tbody\twith tab", ParsedRecord(b"body\twith tab", keys="k1 k2")),
        ("%g:%s", b":x", ParsedRecord(b"x")),
        ("%t|%q|%s", b"orders|3|x", ParsedRecord(b"x", topic="orders", queue_id=3)),
        ("%q %s", b" x", ParsedRecord(b"x")),
        ("%h %s", b"a=1,b=2 x", ParsedRecord(b"x", properties={"a": "1", "b": "2"})),
        ("%h{json} %s", b'{"a": "1 2"} x', ParsedRecord(b"x", properties={"a": "1 2"})),
        ("%s{hex}", b"00ff", ParsedRecord(b"\x00\xff")),
        ("%s{base64}", b"AP8=", ParsedRecord(b"\x00\xff")),
        ("%s{json}", b'"a\\nb"', ParsedRecord(b"a\nb")),
        ("%k{json} %s", b'"a \\" b" x y', ParsedRecord(b"x y", keys='a " b')),
        ("%k{json} %s", b"null x", ParsedRecord(b"x")),
        ("%o %T %m %d %s", b"41 1767225600123 AC1 2026 x", ParsedRecord(b"x")),
        ("%s", b"", ParsedRecord(b"")),
        ("%s", b"a\nb", ParsedRecord(b"a\nb")),
    ],
)
def test_records_are_read(template, record, expected):
    assert InputTemplate(template).parse(record) == expected


@pytest.mark.parametrize(
    ("template", "reason"),
    [("%k%s", "no text separates"), ("%k", "no body"), ("%s %s", "twice"), ("%s %v", "twice")],
)
def test_templates_that_can_not_be_read(template, reason):
    with pytest.raises(ValueError, match=reason):
        InputTemplate(template)


@pytest.mark.parametrize(
    ("template", "record"),
    [
        (r"%k\t%s", b"no tab"),
        ("%q %s", b"three x"),
        ("%s{hex}", b"0g"),
        ("%s{base64}", b"A"),
        ("%s{json}", b"{"),
        ("%s{json}", b"[1]"),
        ("%s{json}", b"null"),
        ("%k{json} %s", b"[1] x"),
        ("%k %s", b"\xff x"),
        ("%h %s", b"novalue x"),
        ("%q{json} %s", b'"a" x'),
    ],
)
def test_records_that_do_not_fit_are_refused(template, record):
    with pytest.raises(ValueError, match="%|template|property"):
        InputTemplate(template).parse(record)


@given(
    body=st.binary(max_size=40),
    keys=st.lists(st.text("abc\u00fc-", min_size=1), max_size=3),
    tags=st.none() | st.text("xyz", min_size=1),
    properties=st.dictionaries(USERS_NAMES, st.text(max_size=5), max_size=3),
)
def test_what_one_prints_the_other_reads(body, keys, tags, properties):
    template = r"%t %q %k{base64} %g %h{json}%%%i %s{hex}\n"
    message = SimpleNamespace(
        **{
            **vars(MESSAGE),
            "body": body,
            "keys": tuple(keys),
            "tags": tags,
            "properties": properties,
        }
    )
    line = text(template, message).removesuffix(b"\n")
    parsed = InputTemplate(template).parse(line)
    assert parsed.body == body
    assert (parsed.keys or "") == " ".join(keys)
    assert parsed.tags == tags
    assert parsed.properties == properties
    assert parsed.topic == "orders"
    assert parsed.queue_id == 3
