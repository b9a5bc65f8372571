"""Runs that are proven to be earlier ones of a log are left out, and nothing else changes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from analytics.engines.local import LocalEngine
from analytics.history.compaction import compacting, join, plan
from analytics.history.earlier_runs import without_proven
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.history.logs import newest_of_logs
from analytics.history.reading import all_runs, stores_of
from analytics.history.tables import Kept
from analytics.lag.selection import Choice
from analytics.report.amounts import Row
from analytics.report.partial import PartialReport
from tests.support.kept_reports import DAY_MS, GROUPS, OLD, share

FILE = 1 << 30
TEN_MINUTES = 600_000


def run_of(log: int, as_of: int, *files: int, common: int = 0) -> PartialReport:
    """What a broker of the usual name keeps; its log has some files, and those before ``common``
    are the same in all logs."""
    its = frozenset(
        f"{number * FILE} {of:016X}{number:016X} {of:032X} {OLD - DAY_MS + number} 77"
        for number in files
        for of in [0 if number < common else log]
    )
    end = max(files, default=0) * FILE + 5_000
    one = share("store-a", log, as_of, full=False)
    return one._replace(marks=its, log=(min(files, default=0) * FILE, end))


def keep_runs(folder: Path, *runs: tuple[int, PartialReport]) -> None:
    for as_of, one in runs:
        keep([one], as_of, folder, [(GROUPS[0], "orders")], None)


def left_of(runs: set[Kept]) -> tuple[list[Kept], set[Kept]]:
    stores: dict[Kept, Row] = {}
    left = without_proven(runs, stores, {})
    return left, set(stores)


def test_of_many_runs_of_one_log_the_newest_one_is_read(tmp_path: Path) -> None:
    for number in range(30):
        as_of = OLD + number * TEN_MINUTES
        keep_runs(tmp_path, (as_of, run_of(1, as_of, 3, 4, 5)))
    newest = Kept(str(tmp_path), "store-a", OLD + 29 * TEN_MINUTES)
    assert left_of(all_runs(str(tmp_path))) == ([newest], {newest})
    assert find_kept([str(tmp_path)], None) == [newest]


def test_of_a_log_whose_files_are_deleted_few_runs_are_read(tmp_path: Path) -> None:
    for number in range(40):
        as_of = OLD + number * TEN_MINUTES
        keep_runs(tmp_path, (as_of, run_of(1, as_of, *range(number // 4, number // 4 + 3))))
    _, read = left_of(all_runs(str(tmp_path)))
    assert len(read) <= 12
    assert len(find_kept([str(tmp_path)], None)) == 1


@pytest.mark.parametrize("common", [0, 9])
@pytest.mark.parametrize("seed", range(4))
def test_logs_of_one_name_are_those_that_all_files_give(
    tmp_path: Path, seed: int, common: int
) -> None:
    chance = random.Random(seed)
    first = [chance.randrange(5) for _ in range(3)]
    for number in range(24):
        log = chance.randrange(3)
        first[log] += chance.randrange(3)
        files = range(first[log], first[log] + chance.randrange(4))
        as_of = OLD + number * TEN_MINUTES
        keep_runs(
            tmp_path / f"{chance.randrange(2)}",
            (as_of, run_of(log + 1, as_of, *files, common=common)),
        )
    folders = [str(folder) for folder in sorted(tmp_path.iterdir())]
    runs = {kept for folder in folders for kept in all_runs(folder)}
    broken = sorted(runs)[5]
    broken.path("stores").write_bytes(b"PAR1")
    wanted = newest_of_logs(runs, stores_of(runs, {}))
    stores: dict[Kept, Row] = {}
    unreadable: dict[Kept, str] = {}
    left = without_proven(runs, stores, unreadable)
    missing = [kept for kept in left if kept not in stores]
    assert newest_of_logs(left, stores | stores_of(missing, {})) == wanted
    assert find_kept(folders, None) == [kept for of_log in wanted for kept in of_log]


def test_runs_that_were_joined_are_beside_those_that_were_not(tmp_path: Path) -> None:
    for day in range(2):
        for log in (1, 2):
            as_of = OLD + day * DAY_MS + log
            keep_runs(tmp_path, (as_of, run_of(log, as_of, day, day + 1)))
    with compacting(str(tmp_path)) as old:
        for one in plan(str(tmp_path), OLD + 40 * DAY_MS):
            join(one, print, old)
    as_of = OLD + 2 * DAY_MS
    keep_runs(tmp_path, (as_of, run_of(1, as_of, 2, 3)))
    found = find_kept([str(tmp_path)], None)
    assert [kept.as_of for kept in found] == [as_of, OLD + DAY_MS + 2]
    made = gathered_report(LocalEngine(), found, Choice())
    assert [row["lag"] for row in made.report.groups][:1] == [3]
