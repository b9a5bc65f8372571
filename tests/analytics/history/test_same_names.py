"""Brokers whose folders have one name keep reports in one folder: each log counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.history.compaction import compacting, join, plan
from analytics.history.daily import days_of
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport
from tests.support.cli import run
from tests.support.kept_reports import DAY_MS, GROUPS, OLD, share

FILE = 1 << 30
"""Bytes of a log file."""
MINUTE_MS = 60_000
TWO = "store-a: 2 brokers with different logs have this name, and each is counted"


def marks(log: str, *files: int, time: int = OLD - DAY_MS) -> frozenset[str]:
    """The marks of some log files, as ``mark_of`` makes them; file 0 begins at ``time``."""
    return frozenset(
        f"{number * FILE} {log}-{number} {log} {time + number * MINUTE_MS} 77" for number in files
    )


def keep_run(folder: Path, as_of: int, lag: int, its: frozenset[str], end: int) -> None:
    """A broker of the usual name keeps its report."""
    one = share("store-a", lag, as_of)._replace(marks=its, log=(0, end))
    keep([one], as_of, folder, [(group, "orders") for group in GROUPS], None)


def gathered(*folders: Path, until: int | None = None) -> MadeReport:
    found = find_kept([str(folder) for folder in folders], until)
    return gathered_report(LocalEngine(), found, Choice())


def lags(made: MadeReport) -> list[int]:
    return [row["lag"] for row in made.report.groups]


def told(made: MadeReport) -> list[str]:
    return [one for one in made.report.warnings if "have this name" in one]


def test_both_logs_of_a_name_count_and_a_warning_names_them(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 100, marks("one", 0), 5000)
    keep_run(tmp_path, OLD + 1, 7, marks("two", 0), 6000)
    made = gathered(tmp_path)
    assert lags(made) == [107, 107]
    (warning,) = told(made)
    assert warning.startswith(TWO)


def test_of_each_log_the_newest_run_counts(tmp_path: Path) -> None:
    for day in range(3):
        keep_run(tmp_path, OLD + day * DAY_MS, 100 + day, marks("one", 0, day), 5000 + day)
        keep_run(tmp_path, OLD + day * DAY_MS + 1, 7 + day, marks("two", 0, day), 900 + day)
    assert lags(gathered(tmp_path)) == [111, 111]
    assert lags(gathered(tmp_path, until=OLD + DAY_MS)) == [101 + 7, 101 + 7]


def test_logs_of_a_name_are_apart_in_several_folders_at_one_moment(tmp_path: Path) -> None:
    keep_run(tmp_path / "host1", OLD, 100, marks("one", 0), 5000)
    keep_run(tmp_path / "host2", OLD, 7, marks("two", 0), 6000)
    assert lags(gathered(tmp_path / "host1", tmp_path / "host2")) == [107, 107]
    keep_run(tmp_path / "copy", OLD, 100, marks("one", 0), 5000)
    made = gathered(tmp_path / "host1", tmp_path / "copy")
    assert (lags(made), told(made)) == ([100, 100], [])


def test_an_empty_log_does_not_hide_another_one_of_its_name(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 100, marks("one", 0), 5000)
    keep_run(tmp_path, OLD + 1, 0, frozenset(), 0)
    assert lags(gathered(tmp_path)) == [100, 100]


def test_a_log_whose_files_were_all_deleted_between_two_runs_is_one_log(tmp_path: Path) -> None:
    week = 7 * DAY_MS
    keep_run(tmp_path, OLD, 100, marks("one", 0, 1), 2 * FILE)
    keep_run(tmp_path, OLD + week, 7, marks("one", 8, 9, time=OLD + 6 * DAY_MS), 10 * FILE)
    made = gathered(tmp_path)
    assert (lags(made), told(made)) == ([7, 7], [])


def test_a_log_that_was_longer_before_is_another_one(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 100, marks("one", 0, 1), 2 * FILE)
    keep_run(tmp_path, OLD + 1, 7, marks("two", 8, 9), 10 * FILE)
    assert lags(gathered(tmp_path)) == [107, 107]


def test_a_run_that_has_lost_its_marks_does_not_part_a_log(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 1, marks("one", 0, 1), 2 * FILE)
    keep_run(tmp_path, OLD + 1, 2, frozenset(), 2 * FILE)
    keep_run(tmp_path, OLD + 2, 3, marks("one", 1, 2), 3 * FILE)
    made = gathered(tmp_path)
    assert (lags(made), told(made)) == ([3, 3], [])


def begun_alike(log: str, common: int, *files: int) -> frozenset[str]:
    """The marks of a log whose first files are those of another one."""
    own = [number for number in files if number >= common]
    return marks("one", *(set(files) - set(own))) | marks(log, *own)


@pytest.mark.parametrize("files", [range(3), range(4, 40)], ids=["few files", "many files"])
def test_logs_of_a_name_that_begin_alike_and_part_both_count(tmp_path: Path, files: range) -> None:
    """A store that was restored elsewhere, for instance; both keep a report each night."""
    half = files[len(files) // 2]
    end = (files[-1] + 1) * FILE
    for day in range(3):
        as_of = OLD + day * DAY_MS
        keep_run(tmp_path, as_of, 100 + day, marks("one", *files), end)
        keep_run(tmp_path, as_of + 1, 7 + day, begun_alike("two", half, *files), end - 5)
    made = gathered(tmp_path)
    assert lags(made) == [102 + 9, 102 + 9]
    (warning,) = told(made)
    assert warning.startswith(TWO)
    days = days_of([str(tmp_path)], Choice(), OLD + 9 * DAY_MS).days
    assert [(day["stores"], day["lag"]) for day in days] == [(2, 214), (2, 218), (2, 222)]


def test_runs_from_before_logs_of_a_name_parted_are_earlier_ones(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 50, marks("one", 0), 5000)
    keep_run(tmp_path, OLD + 1, 100, marks("one", 0, 1), FILE + 5000)
    keep_run(tmp_path, OLD + 2, 7, begun_alike("two", 1, 0, 1), FILE + 4000)
    assert lags(gathered(tmp_path)) == [107, 107]


def test_a_log_that_was_replaced_is_gone_after_eight_days(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 100, marks("one", 0), 5000)
    for day in (7, 8):
        keep_run(tmp_path, OLD + day * DAY_MS, 7, marks("two", 0), 6000)
    assert lags(gathered(tmp_path, until=OLD + 7 * DAY_MS)) == [107, 107]
    made = gathered(tmp_path)
    assert (lags(made), told(made)) == ([7, 7], [])


def test_days_have_both_logs_of_a_name_also_after_they_were_joined(tmp_path: Path) -> None:
    for day in range(2):
        for hour in range(2):
            as_of = OLD + day * DAY_MS + hour * 60 * MINUTE_MS
            keep_run(tmp_path, as_of, 100 + day, marks("one", 0), 5000)
            keep_run(tmp_path, as_of + 1, 7 + day, marks("two", 0), 6000)
    wanted = [(2, 214), (2, 218)]
    for _ in ("small files", "joined ones"):
        days = days_of([str(tmp_path)], Choice(), OLD + 9 * DAY_MS).days
        assert [(day["stores"], day["lag"]) for day in days] == wanted
        assert lags(gathered(tmp_path)) == [109, 109]
        with compacting(str(tmp_path)) as old:
            for one in plan(str(tmp_path), OLD + 40 * DAY_MS):
                join(one, print, old)


def test_a_comparison_counts_both_logs_and_warns(tmp_path: Path) -> None:
    keep_run(tmp_path, OLD, 100, marks("one", 0), 5000)
    keep_run(tmp_path, OLD + 1, 7, marks("two", 0), 6000)
    words = ("-o", "csv", "--columns", "lag,lag_before")
    folder = ("--from-partials", tmp_path, "--compare", tmp_path)
    done = run("lag", "report", "--engine", "local", *folder, *words)
    assert done.lines == ["lag,lag_before", "107,107", "107,107"]
    assert f"--compare: {TWO}" in done.err
