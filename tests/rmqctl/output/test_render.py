import csv
import io
import json
from datetime import UTC
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
import yaml

from rmqctl.errors import UsageProblem
from rmqctl.output.fields import Wide
from rmqctl.output.render import RowStream, render_help, render_one, render_rows
from rmqctl.output.values import as_json
from rmqctl.output.view import Format, View

NOW = 1_767_225_600_000


class Row(NamedTuple):
    topic: Annotated[str, "its name"]
    lag: Annotated[int | None, "messages behind"]
    lag_bytes: int
    age_ms: int
    store_timestamp: int
    keys: list[str]
    properties: Annotated[dict[str, str], Wide("every property")]


A = Row("a", 1, 2048, 90_000, NOW, ["k1", "k2"], {"color": "red"})
B = Row('b|\t\n\\,"\x1b[31m\u00fc', None, 0, 5, NOW, [], {})
ROWS = [A, B]


def text_of(form, rows=ROWS, **options):
    out = io.StringIO()
    count = render_rows(Row, rows, View(Format(form), zone=UTC, now_ms=NOW, **options), out)
    assert options or count == len(rows)
    return out.getvalue()


@pytest.mark.feature(134)
def test_json_is_an_array_of_all_fields_with_exact_values():
    assert json.loads(text_of("json")) == [row._asdict() for row in ROWS]
    assert "\u00fc" in text_of("json")


def test_an_empty_list_is_an_empty_array():
    assert json.loads(text_of("json", [])) == []
    assert text_of("jsonl", []) == ""
    assert yaml.safe_load(text_of("yaml", [])) == []


def test_jsonl_is_one_object_a_line():
    assert [json.loads(line) for line in text_of("jsonl").splitlines()] == [
        row._asdict() for row in ROWS
    ]


@pytest.mark.feature(135)
def test_yaml_is_a_list_of_all_fields():
    assert yaml.safe_load(text_of("yaml")) == [row._asdict() for row in ROWS]


@pytest.mark.feature(136)
def test_csv_is_rfc_4180_with_the_wide_fields_and_null_is_empty():
    text = text_of("csv")
    assert text.startswith("topic,lag,lag_bytes,age_ms,store_timestamp,keys,properties\r\n")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert rows[0] == {
        "topic": "a",
        "lag": "1",
        "lag_bytes": "2048",
        "age_ms": "90000",
        "store_timestamp": str(NOW),
        "keys": "k1 k2",
        "properties": '{"color":"red"}',
    }
    assert rows[1]["topic"] == B.topic
    assert rows[1]["lag"] == ""


def test_a_csv_row_of_one_unknown_value_is_not_an_empty_line():
    assert text_of("csv", [B], columns=("lag",)) == 'lag\r\n""\r\n'


@pytest.mark.feature(136)
def test_tsv_has_the_values_of_plain_and_the_wide_fields():
    lines = text_of("tsv").split("\n")
    plain = text_of("plain").split("\n")
    assert [line.rpartition("\t")[0] for line in lines[:-1]] == plain[:-1]
    assert [line.rpartition("\t")[2] for line in lines[:-1]] == [
        *("properties", '{"color":"red"}', "{}")
    ]
    assert lines[2].split("\t")[:2] == [
        B.topic.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n"),
        "-",
    ]


def test_plain_has_a_header_rfc_3339_times_and_a_dash_for_unknown():
    lines = text_of("plain").split("\n")
    assert lines[0] == "topic\tlag\tlag_bytes\tage_ms\tstore_timestamp\tkeys"
    assert lines[1] == "a\t1\t2048\t90000\t2026-01-01T00:00:00.000+00:00\tk1 k2"
    assert lines[2].split("\t")[1] == "-"
    assert text_of("plain", raw=True).split("\n")[1].split("\t")[4] == str(NOW)


@pytest.mark.feature(147)
def test_a_table_in_a_pipe_is_aligned_and_never_cut():
    long = A._replace(topic="x" * 300)
    lines = text_of("table", [A, long]).split("\n")
    assert lines[0].startswith("TOPIC ")
    assert "x" * 300 in lines[2]
    assert [len(line) for line in lines[1:3]] == [len(lines[2])] * 2
    assert " 2K " in lines[1]
    assert " 1m30s " in lines[1]
    assert "2026-01-01 00:00:00.000" in lines[1]
    assert lines[1].count("-") == 2  # the date's; nothing is unknown


def test_a_table_never_lets_a_message_command_the_terminal():
    for terminal in (False, True):
        text = text_of("wide", terminal=terminal)
        assert "\x1b" not in text
        assert "\\x1b[31m" in text
        assert "color" in text  # wide shows the wide fields


def test_a_table_on_a_terminal_keeps_to_its_width_but_for_longer_names(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    row = A._replace(topic="x" * 300, keys=["k" * 300])
    lines = text_of("table", [row], terminal=True).splitlines()
    assert "x" * 300 in lines
    lines.remove("x" * 300)
    assert len(lines) == 2
    assert max(map(len, lines)) == 70
    assert lines[1].endswith("k\u2026")
    assert max(map(len, text_of("wide", [row], terminal=True).splitlines())) > 300


def test_where_there_is_no_room_texts_are_cut_and_numbers_are_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    row = A._replace(topic="x" * 300, lag=1234567890123)
    text = text_of("table", [row], terminal=True)
    assert "1234567890123" in text
    assert "2026-01-01 00:00:00.000" in text
    assert "LAG_BYTES" in text


def test_an_empty_table_on_a_terminal_is_nothing():
    assert text_of("table", [], terminal=True) == ""
    assert text_of("table", []).startswith("TOPIC")


def test_colour_is_only_there_when_asked_for():
    assert "\x1b[" in text_of("table", terminal=True, color=True)
    assert "\x1b[" not in text_of("table", terminal=True, color=False)


def test_markdown_escapes_bars():
    lines = text_of("md").splitlines()
    assert lines[0] == "| topic | lag | lag_bytes | age | stored (UTC) | keys |"
    assert lines[1] == "| --- | ---: | ---: | ---: | --- | --- |"
    assert "b\\|" in lines[3]
    assert len(lines) == 4


@pytest.mark.parametrize("form", ["table", "wide", "plain", "csv", "tsv"])
def test_no_headers(form):
    assert "topic" not in text_of(form, headers=False).lower()


@pytest.mark.feature(137)
def test_columns_choose_and_order_also_wide_fields():
    assert text_of("plain", columns=("properties", "topic")).split("\n")[:2] == [
        "properties\ttopic",
        '{"color":"red"}\ta',
    ]
    assert json.loads(text_of("json", columns=("LAG-BYTES",))) == [
        {"lag_bytes": 2048},
        {"lag_bytes": 0},
    ]


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(UsageProblem, match="--columns: 'lagg' is not a field .did you mean 'lag'"):
        text_of("plain", columns=("lagg",))
    with pytest.raises(UsageProblem, match="--sort: 'x' is not a field .fields: topic, lag"):
        text_of("plain", sort=("x",))


@pytest.mark.feature(137)
def test_sort_goes_both_ways_and_unknown_is_last_in_both():
    rows = [A._replace(lag=lag) for lag in (2, None, 3, 1)]

    def lags(*sort):
        return [row["lag"] for row in json.loads(text_of("json", rows, sort=sort))]

    assert lags("lag") == [1, 2, 3, None]
    assert lags("-lag") == [3, 2, 1, None]
    assert lags("topic", "-lag") == [3, 2, 1, None]


class Settings(NamedTuple):
    new: Any


@pytest.mark.parametrize(
    "in_order",
    [
        [2, 10, "a", "b", None],
        [False, 0.5, 24, "DELETE", {"topic_name": "a"}, {"topic_name": "b"}],
        [[1, 2], "a", ["b", "c"], None],
        [2, 10.5],
        [[1], [2]],
    ],
)
def test_values_of_several_types_are_sorted_numbers_before_texts(in_order):
    def ordered(rows, sort):
        out = io.StringIO()
        render_rows(Settings, rows, View(Format.JSON, sort=(sort,)), out)
        return [row["new"] for row in json.loads(out.getvalue())]

    rows = [Settings(value) for value in reversed(in_order)]
    assert ordered(rows, "new") == in_order
    known = [value for value in in_order if value is not None]
    unknown = [None] * (len(in_order) - len(known))
    assert ordered(rows, "-new") == [*reversed(known), *unknown]


def test_limit_cuts_after_sorting_and_stops_reading_without():
    rows = [A._replace(lag=lag) for lag in (2, 3, 1)]
    assert [r["lag"] for r in json.loads(text_of("json", rows, sort=("lag",), limit=2))] == [1, 2]
    source = iter(rows)
    assert len(json.loads(text_of("json", source, limit=1))) == 1
    assert len(list(source)) == 2
    assert text_of("jsonl", rows, limit=0) == ""


@pytest.mark.feature(137)
def test_where_keeps_rows_by_hidden_fields_too():
    text = text_of("plain", where="properties.color = red", columns=("topic",))
    assert text == "topic\na\n"


def test_a_stream_prints_what_it_has_when_flushed():
    out = io.StringIO()
    stream = RowStream(Row, View(Format.TABLE, columns=("topic",)), out)
    stream.write([A])
    assert out.getvalue() == ""
    stream.flush()
    assert out.getvalue() == "TOPIC\na\n"
    stream.write([A])
    stream.finish()
    assert out.getvalue() == "TOPIC\na\na\n"


def test_a_stream_is_full_at_its_limit():
    stream = RowStream(Row, View(Format.JSONL, limit=2), io.StringIO())
    full = []
    for rows in ([A], [A, A], [A]):
        stream.write(rows)
        full.append(stream.full)
    assert full == [False, True, True]
    assert stream.count == 2


class Inner(NamedTuple):
    files: int
    bytes: int


class Info(NamedTuple):
    path: str
    commitlog: Inner
    writers: list[int]
    last_timestamp: int | None


INFO = Info("/x", Inner(1, 4096), [7, 8], None)


def one(form, **options):
    out = io.StringIO()
    render_one(Info, INFO, View(Format(form), zone=UTC, **options), out)
    return out.getvalue()


@pytest.mark.feature(134)
def test_a_single_thing_is_an_object_in_json():
    value = {
        "path": "/x",
        "commitlog": {"files": 1, "bytes": 4096},
        "writers": [7, 8],
        "last_timestamp": None,
    }
    assert json.loads(one("json")) == value
    assert json.loads(one("jsonl")) == value
    assert yaml.safe_load(one("yaml")) == value


def test_a_single_thing_is_a_field_a_line_for_people():
    assert one("plain").splitlines() == [
        "path\t/x",
        "commitlog.files\t1",
        "commitlog.bytes\t4096",
        "writers\t[7,8]",
        "last_timestamp\t-",
    ]
    assert "commitlog.bytes  4K\n" in one("table")


@pytest.mark.feature(138)
def test_help_lists_fields_with_types_and_units():
    out = io.StringIO()
    render_help(Row, View(Format.TABLE), out)
    lines = [line.split() for line in out.getvalue().splitlines()]
    assert lines[0] == ["FIELD", "TYPE", "UNIT", "MEANING"]
    assert lines[2][:4] == ["lag", "integer", "or", "null"]
    assert lines[3] == ["lag_bytes", "integer", "bytes"]
    assert lines[5] == ["store_timestamp", "integer", "ms", "since", "1970-01-01", "UTC"]
    assert " ".join(lines[7]) == "properties object every property (not in table, plain and md)"


def test_json_escapes_what_a_terminal_or_a_reader_of_lines_takes_for_more():
    text = "del\x7f c1\x9b ls\u2028 ps\u2029 lone\ud800 \u00e9"
    written = as_json({"a": text})
    assert written == '{"a":"del\\u007f c1\\u009b ls\\u2028 ps\\u2029 lone\\ud800 \u00e9"}'
    assert json.loads(written) == {"a": text}


@pytest.mark.parametrize("form", ["table", "wide", "plain"])
def test_names_of_members_are_escaped_like_values(form):
    row = A._replace(properties={"\x1b]0;t\x07\tx": "v"})
    out = io.StringIO()
    view = View(Format(form), columns=("properties",), zone=UTC, now_ms=NOW, terminal=True)
    render_one(Row, row, view, out)
    assert "properties.\\x1b]0;t\\x07\\tx" in out.getvalue()
    assert "\x1b" not in out.getvalue()


@pytest.mark.parametrize("form", ["csv", "tsv", "plain"])
def test_what_is_exact_in_a_pipe_is_escaped_on_a_terminal(form):
    assert "\x1b" in text_of(form)
    shown = text_of(form, terminal=True)
    assert "\\x1b[31m" in shown
    assert "\x1b" not in shown


def test_markdown_shows_text_as_text():
    shown = text_of("md", [A._replace(topic="a\\|b <i>&amp; `c` *d* [e](f)")])
    assert r"| a\\\|b \<i>\&amp; \`c\` \*d\* \[e](f) |" in shown


def test_fractions_are_rounded_for_people_and_exact_for_programs():
    class Rate(NamedTuple):
        rate: float

    def shown(form):
        out = io.StringIO()
        rows = [Rate(12345.678), Rate(1 / 3), Rate(0.00012345), Rate(0.0)]
        render_rows(Rate, rows, View(Format(form), headers=False), out)
        return out.getvalue().split()

    assert shown("table") == ["12346", "0.33", "0.00012", "0.00"]
    assert shown("tsv") == ["12345.678", repr(1 / 3), "0.00012345", "0.0"]


class LongNames(NamedTuple):
    """Figures under long headings."""

    group: Annotated[str, "a text"]
    committed_offset: Annotated[int, "a number"]
    oldest_unread_age_ms: Annotated[int, "a duration"]


def test_headings_stay_on_one_line_and_columns_are_left_out_instead(monkeypatch):
    row = LongNames("g" * 28, 5, 1000)
    (heading, _) = terminal_lines(row, 28 + 2 + 16 + 2 + 17, monkeypatch)
    assert heading.split() == ["GROUP", "COMMITTED_OFFSET", "OLDEST_UNREAD_AGE"]
    (heading, values) = terminal_lines(row, 64, monkeypatch)
    assert heading.split() == ["GROUP", "COMMITTED_OFFSET"]
    assert values.split() == ["g" * 28, "5"]


def test_a_long_name_stands_alone_and_the_row_goes_on_below(monkeypatch):
    for columns in (40, 60, 100):
        heading, name, rest = terminal_lines(LongNames("g" * 300, 5, 1000), columns, monkeypatch)
        assert name == "g" * 300
        assert len(heading) == len(rest) <= columns
        assert rest.split()[0] == "5"


def terminal_lines(row, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    view = View(Format.TABLE, terminal=True)
    out = io.StringIO()
    render_rows(LongNames, [row], view, out)
    return out.getvalue().splitlines()


def test_text_that_turns_others_round_is_escaped_for_people_and_bytes_stay_bytes():
    row = A._replace(topic="a\u202eb\u2066\u2028 \u200d\U0001f680 \udcff")
    assert "a\\u202eb\\u2066\\u2028 \u200d\U0001f680 \\xff" in text_of("table", [row])
    assert "a\u202eb\u2066\u2028 \u200d\U0001f680 \udcff" in text_of("tsv", [row])


class Nested(NamedTuple):
    name: Annotated[str, "a text"]
    clients: Annotated[list[Any], "objects"]
    services: Annotated[dict[str, Any], "objects of objects"]


def test_objects_in_a_single_thing_have_lines_of_their_own():
    row = Nested("a", [{"id": "x", "since_timestamp": NOW}], {"s": {"running": True, "pid": None}})
    out = io.StringIO()
    render_one(Nested, row, View(Format.TABLE, zone=UTC, now_ms=NOW), out)
    assert [line.split(maxsplit=1) for line in out.getvalue().splitlines()] == [
        ["name", "a"],
        ["clients.1.id", "x"],
        ["clients.1.since", "(UTC)  2026-01-01 00:00:00.000"],
        ["services.s.running", "true"],
        ["services.s.pid", "-"],
    ]


def test_headings_are_names_of_fields_too():
    lines = text_of("plain", columns=("topic", "age", "stored"), sort=("-age",)).splitlines()
    assert lines[0] == "topic\tage_ms\tstore_timestamp"
    assert lines[1].split("\t")[:2] == ["a", "90000"]
    assert text_of("plain", where="age > 1m", columns=("topic",)) == "topic\na\n"


def test_a_time_of_another_offset_than_the_headings_has_its_own():
    zone = ZoneInfo("Europe/Berlin")
    summer = NOW - 180 * 86_400_000
    rows = [A, A._replace(store_timestamp=summer)]
    out = io.StringIO()
    render_rows(Row, rows, View(Format.TABLE, zone=zone, now_ms=NOW), out)
    heading, winter, other = out.getvalue().splitlines()
    assert "STORED (UTC+1)" in heading
    assert "2026-01-01 01:00:00.000 " in winter
    assert "2025-07-05 02:00:00.000+02:00" in other


@pytest.mark.parametrize(
    ("word", "color"), [("STOP", "31"), ("LOST", "31"), ("WARN", "33"), ("OK", "32"), ("NONE", "")]
)
def test_states_are_coloured_and_texts_are_not(word, color):
    view = View(Format.TABLE, terminal=True, color=True)
    out = io.StringIO()
    render_rows(State, [State(word, word)], view, out)
    line = out.getvalue().splitlines()[1]
    assert line.split() == [f"\x1b[{color}m{word}\x1b[0m" if color else word, word]
    out = io.StringIO()
    render_rows(State, [State(word, word)], view._replace(color=False), out)
    assert "\x1b" not in out.getvalue()


class State(NamedTuple):
    status: Annotated[str, "a state"]
    note: Annotated[str, "a text"]
