"""Every option that takes a time reads the same forms, and says where the time is implausible."""

import time

import pytest

from rmqctl.consume import join
from tests.support.cli import run

FORMS = ["0", "1767225600", "1767225600000", "1767225600000000", "1767225600000000000"]
FORMS += ["yesterday 15:00", "1h ago"]
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


@pytest.mark.slow
@pytest.mark.parametrize("command", TAKES_A_TIME, ids=" ".join)
def test_every_option_reads_every_unit_of_an_epoch(orders, command):
    found = [run(*command, form).code for form in FORMS]
    assert found == [0] * len(FORMS)


@pytest.mark.slow
@pytest.mark.parametrize("command", TAKES_A_TIME, ids=" ".join)
def test_every_option_refuses_a_time_that_can_not_be_meant(orders, command):
    for text in ("123", "1" * 23, "1980-05-05", "2500-01-01"):
        result = run(*command, text)
        assert result.code == 2, text
        assert "between 1990 and 2200" in result.err, text


@pytest.mark.parametrize("position", ["@0", "s@0", "@1767225600000000", "@0:now"])
def test_positions_read_the_same_forms(orders, position):
    assert run("consume", "t", "-e", "--offset", position).lines == ["m0", "m1", "m2"]


def test_a_position_says_what_its_time_would_be(orders):
    result = run("consume", "t", "-e", "--offset", "@123")
    assert result.code == 2
    assert "1970-01-01T00:02:03" in result.err


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_times_within_the_queue_are_no_word(orders):
    assert run("consume", "t", "--from", "0", "-e").err == ""


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, "20260101000000", "-1h", "2026-01-01"])
def test_the_setting_of_a_member_takes_every_form(orders, form):
    settings = ["--set", f"consumeTimestamp={form}"]
    result = run("consume", "t", "-g", "other", "-e", *settings)
    assert "consumeTimestamp" not in result.err
    assert result.code == 0, result.err


@pytest.mark.slow
@pytest.mark.parametrize("text", ["123", "1" * 23, "1980-05-05", "19800505000000", "soon"])
def test_the_setting_of_a_member_refuses_what_is_no_time(orders, text):
    result = run("consume", "t", "-g", "other", "-e", "--set", f"consumeTimestamp={text}")
    assert result.code == 2
    assert "--set consumeTimestamp" in result.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-10-25T02:30:00.250+02:00", 1_792_888_200_250),
        ("2026-10-25T02:30:00.250+01:00", 1_792_891_800_250),
        ("1792891800250", 1_792_891_800_250),
    ],
)
def test_the_setting_of_a_member_is_exact_in_an_hour_that_occurs_twice(
    orders, monkeypatch, text, moment
):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    taken, real = [], join.configs

    def configs(*args, **options):
        taken.append(real(*args, **options)[0].consume_timestamp)
        return real(*args, **options)

    monkeypatch.setattr(join, "configs", configs)
    options = ["--set", "consumeTimestamp=0", "--set", f" consumeTimestamp={text}"]
    try:
        result = run("consume", "t", "-g", "other", "-e", *options)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (result.code, taken) == (0, [moment]), result.err


@pytest.fixture
def berlin(orders, monkeypatch):
    monkeypatch.setenv("RMQCTL_TZ", "Europe/Berlin")


RESET = ("offset", "reset", "-g", "g", "-t", "t", "-n", "--to-datetime")
BY_TIME = ("resetOffsetByTime", "-g", "g", "-t", "t", "-n", "-s")
CARVE = ("store", "carve", "part", "-t", "t", "-n", "--from")


@pytest.mark.slow
@pytest.mark.parametrize("command", [RESET, BY_TIME, CARVE], ids=" ".join)
def test_a_change_prints_how_it_read_the_time(berlin, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(*command, "2026-01-31 15:00")
    assert result.code == 0
    assert "'2026-01-31 15:00' is 2026-01-31T15:00:00+01:00 (Europe/Berlin)" in result.err
    assert "is 2026" not in run(*command, "2026-01-31 15:00", "-q").err


@pytest.mark.slow
def test_a_change_by_a_duration_prints_the_time(berlin):
    result = run("offset", "reset", "-g", "g", "-t", "t", "-n", "--by-duration", "1d")
    assert "--by-duration '1d' is 2" in result.err
    assert "(Europe/Berlin)" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("word", ["now", "currentTimestamp", "NOW", "-1"])
def test_the_end_of_each_queue_by_mqadmins_words(berlin, word):
    result = run(*BY_TIME, word, "-o", "json")
    assert f"--timestamp {word!r} is the end of each queue" in result.err
    assert [row["new_offset"] for row in result.json()] == [3]


@pytest.mark.slow
def test_a_query_prints_how_it_read_the_time_with_verbose(berlin):
    words = ("message", "search", "m", "--from", "2026-01-31T15:00Z")
    assert run(*words).err == ""
    assert "--from '2026-01-31T15:00Z' is 2026-01-31T15:00:00+00:00 (UTC)" in run(*words, "-v").err


@pytest.mark.slow
@pytest.mark.parametrize("command", [RESET, BY_TIME, CARVE], ids=" ".join)
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "2025-10-26 02:30",
            "occurs twice in Europe/Berlin: 2025-10-26T02:30:00+02:00 and "
            "2025-10-26T02:30:00+01:00; write the one that is meant",
        ),
        (
            "2026-03-29 02:30",
            "does not occur in Europe/Berlin: the clock is put forward over it; write a time that "
            "occurs, such as 2026-03-29T03:30:00+02:00",
        ),
    ],
)
def test_a_change_refuses_a_local_time_in_doubt(berlin, command, text, problem):
    result = run(*command, text)
    assert result.code == 2
    assert problem in result.err


@pytest.mark.slow
def test_a_query_warns_of_a_local_time_in_doubt(berlin):
    twice = run("consume", "t", "-e", "--from", "2025-10-26 02:30")
    assert twice.code == 0
    assert "2025-10-26T02:30:00+01:00; the first is taken" in twice.err
    never = run("consume", "t", "-e", "--from", "2026-03-29 02:30")
    assert "2026-03-29T03:30:00+02:00 is taken" in never.err


@pytest.mark.slow
def test_where_and_positions_refuse_a_local_time_in_doubt(berlin):
    for words in (
        ("topic", "queues", "--where", "first_timestamp > 2025-10-26T02:30"),
        ("consume", "t", "-e", "--offset", "@2025-10-26T02:30"),
        ("consume", "t", "-e", "--offset", "@2025-10-26T02:30:now"),
    ):
        result = run(*words)
        assert result.code == 2
        assert "occurs twice" in result.err


@pytest.mark.slow
def test_where_and_positions_read_the_forms_of_the_day(berlin):
    where = run("topic", "queues", "t", "--where", "first_timestamp > yesterday", "-o", "json")
    assert [row["count"] for row in where.json()] == [3]
    for position in ("@yesterday:tomorrow", "@yesterday 15:00", "@2026-01-01:now", "@1h ago:"):
        assert run("consume", "t", "-e", "--offset", position).lines == ["m0", "m1", "m2"]


@pytest.mark.slow
def test_a_start_in_the_future_is_told(orders):
    for words in (
        ("consume", "t", "-e", "--offset", "@+1h"),
        ("store", "tail", "-e", "--from", "+1h"),
        ("message", "export", "-t", "t", "--from", "tomorrow"),
        ("message", "query", "-t", "t", "-k", "k", "--from", "tomorrow"),
    ):
        assert "lies in the future" in run(*words).err


def test_a_report_that_ends_before_it_begins_is_refused(orders):
    result = run("lag", "report", "--engine", "local", "--since", "-1h", "--as-of", "-2h")
    assert result.code == 2
    assert "ends before it begins" in result.err
