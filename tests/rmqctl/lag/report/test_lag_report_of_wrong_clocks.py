"""Kept reports that a machine with a wrong clock has dated: they hide no others."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest

from analytics.errors import KeptFileError
from analytics.history.gathering import find_kept
from tests.support.cli import run
from tests.support.kept_reports import DAY_MS, OLD, files, run as keep

LOCAL = ("lag", "report", "--engine", "local", "--tz", "UTC")
WORDS = ("-g", "billing", "-o", "csv", "--columns", "lag,lag_before")
NO_DATE = 99_999_999_999_999_999


@pytest.fixture
def now() -> int:
    return time.time_ns() // 1_000_000


def test_a_report_that_is_dated_later_than_now_hides_none(tmp_path: Path, now: int) -> None:
    for as_of, lag in ((now - 9 * DAY_MS, 3), (now - 60_000, 5)):
        keep(tmp_path, as_of, {"a": lag, "b": 20})
    later = now + 30 * DAY_MS
    for as_of in (later - 60_000, later):
        keep(tmp_path, as_of, {"a": 900})
    done = run(*LOCAL, "--from-partials", tmp_path, "--compare", tmp_path, *WORDS)
    assert (done.code, done.lines[1:]) == (0, ["25,25"]), done.err
    said = "a: left out 2 kept reports dated later than now, by up to "
    assert f"warning: {said}" in done.err
    assert f"warning: --compare: {said}" in done.err
    assert f"/part-{later}@a.parquet; remove what a wrong clock has dated\n" in done.err
    assert " s old" not in done.err
    whole = run(*LOCAL, "--from-partials", tmp_path, "-o", "json").json()
    assert whole["as_of"] == now - 60_000
    assert len([sentence for sentence in whole["warnings"] if sentence.startswith(said)]) == 1


def test_a_time_takes_reports_that_are_dated_later_than_now(tmp_path: Path, now: int) -> None:
    keep(tmp_path, now - 60_000, {"a": 5})
    keep(tmp_path, now + 30 * DAY_MS, {"a": 900})
    words = (*LOCAL, "--from-partials", tmp_path, *WORDS)
    done = run(*words, "--as-of", now + 30 * DAY_MS)
    assert (done.code, done.lines[1:]) == (0, ["900,"]), done.err
    assert "later than now" not in done.err
    assert run(*words, "--as-of", now).lines[1:] == ["5,"]


def test_a_clock_may_be_ahead_by_some_minutes(tmp_path: Path, now: int) -> None:
    keep(tmp_path, now - 60_000, {"a": 5})
    keep(tmp_path, now + 300_000, {"a": 7})
    done = run(*LOCAL, "--from-partials", tmp_path, *WORDS)
    assert (done.code, done.lines[1:]) == (0, ["7,"])
    assert "later than now" not in done.err


def test_of_later_reports_alone_none_is_made(tmp_path: Path, now: int) -> None:
    later = now + DAY_MS
    keep(tmp_path / "kept", later, {"a": 5})
    done = run(*LOCAL, "--from-partials", tmp_path / "kept", *WORDS)
    assert (done.code, done.out) == (3, ""), done.err
    assert f"{tmp_path / 'kept'} holds only kept reports that are dated later than now" in done.err
    assert f"/part-{later}@a.parquet: the clock of this machine or of a broker is wrong" in done.err


@pytest.mark.parametrize("number", ["", "-1"])
@pytest.mark.parametrize("as_of", [253_402_300_800_000, NO_DATE, 10**30])
def test_a_file_of_a_moment_without_a_date_is_not_one_of_ours(
    tmp_path: Path, as_of: int, number: str
) -> None:
    for day in (0, 1):
        keep(tmp_path, OLD + day * DAY_MS, {"a": 5})
    strangers = []
    for table in ("stores", "queues"):
        strangers += [
            tmp_path / table / "month=2026-01" / f"part-{as_of}{number}@x.parquet",
            tmp_path / table / "broker=x" / "date=2026-01-01" / f"part-{as_of}{number}.parquet",
        ]
    for path in strangers:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    words = (*LOCAL, "--from-partials", tmp_path, *WORDS)
    assert run(*words).lines[1:] == ["5,"]
    done = run("lag", "compact", tmp_path, "-y", "-o", "csv", "--columns", "files,joined_files")
    assert (done.code, set(done.lines[1:])) == (0, {"2,1"}), done.err
    assert run(*words).lines[1:] == ["5,"]
    assert all(path.exists() for path in strangers)
    assert len(files(tmp_path)) == 8 + len(strangers)


@pytest.mark.parametrize("as_of", [NO_DATE, -NO_DATE, None])
def test_a_joined_file_with_a_moment_without_a_date_cannot_be_read(
    tmp_path: Path, as_of: int | None
) -> None:
    for day in (0, 1):
        keep(tmp_path, OLD + day * DAY_MS, {"a": 5})
    assert run("lag", "compact", tmp_path, "-y", "-q").code == 0
    (path,) = (tmp_path / "stores").rglob("joined-*.parquet")
    table = parquet.read_table(path)
    column = pyarrow.array([OLD, as_of], pyarrow.int64())
    parquet.write_table(table.set_column(0, table.schema.field("as_of"), column), path)
    with pytest.raises(KeptFileError, match="cannot be read: it has a report as of"):
        find_kept([str(tmp_path)], None)
    done = run(*LOCAL, "--from-partials", tmp_path, *WORDS)
    assert (done.code, done.out) == (1, ""), done.err
    assert f"{path} cannot be read: it has a report as of {as_of} ms" in done.err
