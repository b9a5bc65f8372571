"""Records whose store times are damaged: far away, negative, or beyond the years that Python has.

No check sum covers them. Commands that go through time end all the same, and soon.
"""

import time

import pytest

from storage.format.record import CheckKind, check_record
from tests.support.cli import run

COMMANDS = [
    "topic stats --by hour",
    "topic stats t --by queue",
    "topic queues",
    "topic usage",
    "store du",
    "store du --by day",
    "store du --by group",
    "store clean",
    "store info",
    "store fsck --fast",
    "store tail -e",
    "message stats",
    "message stats --by hour",
    "message stats --by day",
    "message export -t t",
    "message get -t t -Q 0 -O 0",
    "lag show",
    "lag show --by queue",
    "lag risk --within 99d",
    "lag check",
    "lag histogram g --of age",
    "lag histogram g --of size",
    "lag report --engine local -q --by minute",
    "lag report --engine local -q --by hour",
    "lag report --engine local -q -o json",
    "group describe g",
    "broker status",
    "offset inspect",
    "offset reset -g g -t t --to-datetime -1h",
    "consume t -e --from -1h",
    "consume t -e --last 3",
    "consume t -e -o jsonl",
    "consume t -e -f %d%s",
    "consume t -e -f %d{%F_%T_%j_%Z}%s",
]
WHICH = [[0], [3], [1, 2], [0, 1, 2, 3]]
TIMES = [0, 1, -1, -(1 << 63), (1 << 63) - 1, 253_402_300_800_000, 46_862_388_166_656]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("times") / "s"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "t", "-Q", 0, "-S", root, stdin=b"a\nb\nc\nd\n").code == 0
    assert run("consume", "t", "-g", "g", "-e", "-n", "1", "-S", root).code in (0, 2)
    return root


def places(data):
    at = 0
    while (found := check_record(data, at, len(data))).kind is CheckKind.MESSAGE:
        yield at
        at += found.size


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "stored"),
    [
        pytest.param(
            which,
            stored,
            id=f"{stored}-{which}",
            # The short run has each time in all records, and each choice of records with one time.
            marks=[] if which == WHICH[-1] or stored == -(1 << 63) else pytest.mark.long,
        )
        for stored in TIMES
        for which in WHICH
    ],
)
def test_commands_that_go_through_time_end(store, which, stored):
    log = store / "commitlog" / f"{0:020d}"
    was = log.read_bytes()
    at = list(places(was))
    with log.open("r+b") as file:
        for number in which:
            file.seek(at[number] + 56)
            file.write(stored.to_bytes(8, "big", signed=True))
    try:
        for line in COMMANDS:
            begun = time.monotonic()
            result = run(*line.split(), "-S", store, "--no-input")
            assert "internal error" not in result.err, (line, result.err)
            assert time.monotonic() - begun < 20, line
    finally:
        with log.open("r+b") as file:
            file.write(was[: 1 << 16])


def test_a_member_prints_each_message_by_a_template_with_a_date(tmp_path):
    root = tmp_path / "s"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "t", "-Q", "0", "-S", root, stdin=b"a\nb\nc\n").code == 0
    log = root / "commitlog" / f"{0:020d}"
    second = list(places(log.read_bytes()))[1]
    with log.open("r+b") as file:
        file.seek(second + 56)
        file.write((253_402_300_800_000).to_bytes(8, "big"))
    form = ("-f", r"%d{%Y} %s\n", "--tz", "UTC")
    result = run("consume", "t", "-g", "g", "-e", *form, "-S", root)
    assert result.code == 0, result.err
    year = time.gmtime().tm_year
    assert result.raw.decode().split("\n")[:3] == [f"{year} a", "253402300800000 b", f"{year} c"]
    assert run("lag", "show", "g", "-S", root, "-o", "json").json()[0]["lag"] == 0
