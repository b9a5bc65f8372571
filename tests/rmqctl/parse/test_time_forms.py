"""Every option that takes a time reads the same forms, and says where the time is implausible."""

import pytest

from tests.support.cli import run

FORMS = ["0", "1767225600", "1767225600000", "1767225600000000", "1767225600000000000"]
TAKES_A_TIME = [
    ("consume", "t", "-e", "--from"),
    ("consume", "t", "-e", "--to"),
    ("consume", "t", "-e", "--no-commit", "-g", "new", "--from-where", "timestamp")
    + ("--consume-timestamp",),
    ("message", "stats", "--from"),
    ("message", "search", "m", "--from"),
    ("offset", "reset", "-g", "g", "-t", "t", "-n", "--to-datetime"),
    ("resetOffsetByTime", "-g", "g", "-t", "t", "-n", "-s"),
    ("offset", "history", "--since"),
    ("audit", "list", "--since"),
    ("store", "fsck", "--from"),
    ("lag", "report", "--engine", "local", "--since"),
]


@pytest.fixture
def orders(store):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"m0\nm1\nm2\n")
    run("consume", "t", "-g", "g", "-c", 1, "-q")
    return store


@pytest.mark.parametrize("command", TAKES_A_TIME, ids=" ".join)
def test_every_option_reads_every_unit_of_an_epoch(orders, command):
    found = [run(*command, form).code for form in FORMS]
    assert found == [0] * len(FORMS)


@pytest.mark.parametrize("command", TAKES_A_TIME, ids=" ".join)
@pytest.mark.parametrize("text", ["123", "1" * 23, "1980-05-05", "2500-01-01"])
def test_every_option_refuses_a_time_that_can_not_be_meant(orders, command, text):
    result = run(*command, text)
    assert result.code == 2
    assert "between 1990 and 2200" in result.err


@pytest.mark.parametrize("position", ["@0", "s@0", "@1767225600000000", "@0:now"])
def test_positions_read_the_same_forms(orders, position):
    assert run("consume", "t", "-e", "--offset", position).lines == ["m0", "m1", "m2"]


def test_a_position_says_what_its_time_would_be(orders):
    result = run("consume", "t", "-e", "--offset", "@123")
    assert result.code == 2
    assert "1970-01-01T00:02:03" in result.err


def test_the_translation_of_an_old_command_with_0_works(orders):
    result = run("mqadmin", "consumeMessage", "-t", "t", "-i", "0", "-s", "0")
    assert result.code == 0
    assert [line for line in result.lines if "\tm1\t" in line]


@pytest.mark.parametrize(
    "command",
    [
        ("offset", "reset", "-g", "g", "-t", "t", "--to-datetime"),
        ("resetOffsetByTime", "-g", "g", "-t", "t", "-s"),
    ],
    ids=" ".join,
)
def test_a_reset_to_the_future_says_so(orders, command):
    result = run(*command, "2199-01-01", "-n", "-o", "json")
    assert result.code == 0
    assert "lies in the future" in result.err
    assert "the time lies in the future" in result.json()[0]["note"]


@pytest.mark.parametrize(
    "command",
    [("consume", "t", "-e"), ("message", "stats"), ("message", "search", "m")],
    ids=" ".join,
)
def test_a_range_of_times_that_holds_nothing_is_told(orders, command):
    backwards = run(*command, "--from", "now", "--to", "-1h")
    assert backwards.code == 2
    assert "ends before it begins" in backwards.err
    assert "lies in the future" in run(*command, "--from", "+1h").err


def test_offsets_that_have_not_come_yet_are_told(orders):
    result = run("consume", "t", "--offset", "7:9", "-e")
    assert result.code == 0
    assert "queue 0 of t ends at 3: offset 7 does not exist yet" in result.err
    assert "no message of t lies in the range" in result.err


def test_times_within_the_queue_are_no_word(orders):
    assert run("consume", "t", "--from", "0", "-e").err == ""


@pytest.mark.parametrize("form", [*FORMS, "20260101000000", "-1h", "2026-01-01"])
def test_the_setting_of_a_member_takes_every_form(orders, form):
    settings = ["--set", f"consumeTimestamp={form}"]
    result = run("consume", "t", "-g", "other", "-e", *settings)
    assert "consumeTimestamp" not in result.err
    assert result.code == 0, result.err


@pytest.mark.parametrize("text", ["123", "1" * 23, "1980-05-05", "19800505000000", "soon"])
def test_the_setting_of_a_member_refuses_what_is_no_time(orders, text):
    result = run("consume", "t", "-g", "other", "-e", "--set", f"consumeTimestamp={text}")
    assert result.code == 2
    assert "--set consumeTimestamp" in result.err
