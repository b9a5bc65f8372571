"""The texts of times.tsv: what each means, and that GNU date and systemd read them alike.

The programs of the system run with a clock that stands still at the row's time
(tests/support/fixed_clock.c), so that relative forms can be compared, too.
"""

import json
import os
import re
import shutil
import subprocess
import time
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from storage.parse.times import parse_time, parse_zone, read_time
from tests.support.cli import ROOT

CORPUS = Path(__file__).with_name("times.tsv")
CLOCK = ROOT / "tests/support/fixed_clock.c"
REFUSED = "refused"


class Row(NamedTuple):
    now: int
    zone: str
    text: str
    expected: int | None
    """None: refused."""
    same_as: frozenset[str]
    note: str


def in_ms(text):
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def read_corpus():
    lines = [line for line in CORPUS.read_text().splitlines() if not line.startswith("#")]
    for line in lines[1:]:
        now, zone, text, expected, same_as, note = line.split("\t")
        yield Row(
            in_ms(now),
            zone,
            json.loads(text),
            None if expected == REFUSED else in_ms(expected),
            frozenset(same_as.split(",")) - {"-"},
            note,
        )


ROWS = list(read_corpus())
TAKEN = [row for row in ROWS if row.expected is not None]
by_text = pytest.mark.parametrize("row", TAKEN, ids=lambda row: f"{row.text} {row.zone} {row.now}")


def test_the_corpus_has_300_texts_and_each_kind():
    assert len({row.text for row in ROWS}) >= 300
    assert len({row.zone for row in ROWS}) >= 10
    assert sum(bool(row.same_as) for row in ROWS) >= 200
    assert sum(row.expected is None for row in ROWS) >= 60
    assert {"twice", "never"} <= {row.note for row in ROWS}


@by_text
def test_a_text_means_its_time(row):
    instant = read_time(row.text, row.now, parse_zone(row.zone))
    assert instant.timestamp == row.expected
    doubt = instant.doubt
    if row.note:
        assert doubt
        assert {"twice": "occurs twice", "never": "does not occur"}[row.note] in doubt.problem
        with pytest.raises(ValueError, match=re.escape(doubt.problem)):
            parse_time(row.text, row.now, parse_zone(row.zone))
    else:
        assert doubt is None
        assert parse_time(row.text, row.now, parse_zone(row.zone)) == row.expected


@pytest.mark.parametrize("row", [row for row in ROWS if row.expected is None], ids=repr)
def test_a_text_that_is_no_time_is_refused_with_a_remedy(row):
    with pytest.raises(ValueError, match=re.escape(row.note)) as refused:
        read_time(row.text, row.now, parse_zone(row.zone))
    near = re.search(r"did you mean '(.*?)'", str(refused.value))
    if near:
        read_time(near[1], row.now, parse_zone(row.zone))


@by_text
def test_what_was_understood_is_read_back_as_the_same_time(row):
    instant = read_time(row.text, row.now, parse_zone(row.zone))
    if instant.timestamp:
        assert parse_time(instant.understood(), row.now) == instant.timestamp


@pytest.fixture
def local_zone(monkeypatch):
    """Sets the local zone of this process."""

    def to(name):
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield to
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("zone", sorted({row.zone for row in TAKEN}))
def test_the_local_zone_means_the_same_as_the_zone_by_name(local_zone, zone):
    local_zone(zone)
    for row in (row for row in TAKEN if row.zone == zone):
        instant = read_time(row.text, row.now, None)
        assert instant.timestamp == row.expected, row
        by_name = read_time(row.text, row.now, parse_zone(zone))
        assert instant.doubt == by_name.doubt
        assert instant.understood() == by_name.understood()


@pytest.fixture(scope="session")
def fixed_clock(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("needs cc on PATH")
    library = tmp_path_factory.mktemp("clock") / "fixed_clock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(CLOCK)], check=True)
    return library


def environment(clock, now, zone):
    fixed = {"LD_PRELOAD": str(clock), "FIXED_NOW_MS": str(now), "TZ": zone, "LC_ALL": "C"}
    return {**os.environ, **fixed}


def answers(program, rows):
    """The rows of a program, by the time and the zone of the call."""
    chosen = sorted((row for row in rows if program in row.same_as), key=lambda row: row[:2])
    for call, alike in groupby(chosen, key=lambda row: row[:2]):
        yield call, list(alike)


def test_gnu_date_reads_the_same_times(fixed_clock):
    version = subprocess.run(["date", "--version"], capture_output=True, text=True, check=False)
    if "GNU" not in version.stdout:
        pytest.skip("needs date on PATH that is GNU's")
    for (now, zone), rows in answers("date", TAKEN):
        done = subprocess.run(
            ["date", "-f", "-", "+%s%3N"],
            input="\n".join(row.text for row in rows) + "\n",
            env=environment(fixed_clock, now, zone),
            capture_output=True,
            text=True,
            check=True,
        )
        found = [int(line) for line in done.stdout.split()]
        assert list(zip((row.text for row in rows), found, strict=True)) == [
            (row.text, row.expected) for row in rows
        ]


@pytest.mark.slow
def test_systemd_reads_the_same_times(fixed_clock):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd on PATH")
    for (now, zone), rows in answers("systemd", TAKEN):
        done = subprocess.run(
            ["systemd-analyze", "timestamp", "--", *(row.text for row in rows)],
            env=environment(fixed_clock, now, zone),
            capture_output=True,
            text=True,
            check=True,
        )
        found = [
            int(seconds) * 1000 + int((fraction or "0").ljust(3, "0")[:3])
            for seconds, fraction in re.findall(r"UNIX seconds: @(\d+)(?:\.(\d+))?", done.stdout)
        ]
        assert list(zip((row.text for row in rows), found, strict=True)) == [
            (row.text, row.expected) for row in rows
        ]
