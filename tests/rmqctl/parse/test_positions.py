from datetime import UTC

import pytest

from rmqctl.parse.positions import END, START, Bound, Point, Position, parse_position

NOW = 1_767_225_600_000


def at(milliseconds):
    return Point(Bound.TIME, milliseconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", Position(START, None)),
        ("end", Position(END, None)),
        ("stored", Position(Point(Bound.STORED), None)),
        ("7", Position(Point(Bound.OFFSET, 7), None)),
        ("0", Position(Point(Bound.OFFSET, 0), None)),
        ("7:", Position(Point(Bound.OFFSET, 7), None)),
        (":9", Position(START, Point(Bound.OFFSET, 9))),
        ("7:9", Position(Point(Bound.OFFSET, 7), Point(Bound.OFFSET, 9))),
        (":end", Position(START, END)),
        ("7:end", Position(Point(Bound.OFFSET, 7), END)),
        ("+3", Position(Point(Bound.START, 3), None)),
        ("-3", Position(Point(Bound.END, 3), None)),
        ("@-1h", Position(at(NOW - 3_600_000), None)),
        ("@1767225600123", Position(at(NOW + 123), None)),
        ("@2026-01-01T10:00", Position(at(NOW + 36_000_000), None)),
        ("@2026-01-01T10:00:", Position(at(NOW + 36_000_000), None)),
        ("@:2026-01-01", Position(START, at(NOW))),
        ("@-1h:-5m", Position(at(NOW - 3_600_000), at(NOW - 300_000))),
        ("@-1h:end", Position(at(NOW - 3_600_000), END)),
        (
            "@2026-01-01T10:00:00:2026-01-01T11:00:00",
            Position(at(NOW + 36_000_000), at(NOW + 39_600_000)),
        ),
        ("@1767225600:1767225601", Position(at(NOW), at(NOW + 1000))),
        ("s@1767225600123", Position(at(NOW + 123), None)),
        ("e@1767225600123", Position(None, at(NOW + 123))),
    ],
)
def test_every_form_of_a_position(text, expected):
    assert parse_position(text, NOW, UTC) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        "x",
        "1:2:3",
        "-",
        "+",
        "@",
        "@x",
        "9:7",
        "@-5m:-1h",
        "begin",
        "--3",
        "1.5",
        "s@",
        ":-1",
    ],
)
def test_malformed_positions_are_refused(text):
    with pytest.raises(ValueError, match="position|time"):
        parse_position(text, NOW, UTC)


def test_times_of_day_make_a_range():
    now = 1_767_274_200_000  # 2026-01-01T13:30Z
    position = parse_position("@09:30:10:00", now, UTC)
    assert position.begin == Point(Bound.TIME, now - 4 * 3_600_000)
    assert position.end == Point(Bound.TIME, now - 3 * 3_600_000 - 1_800_000)
    with pytest.raises(ValueError, match="it ends before it begins"):
        parse_position("@10:00:09:30", now, UTC)
