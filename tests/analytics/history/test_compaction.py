"""Kept reports that are joined: each row once, unchanged, for any reader at any time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.dataset
import pyarrow.parquet as parquet
import pytest

from analytics.engines.local import LocalEngine
from analytics.errors import CompactionRunsError, HistoryVersionError, JoinedError
from analytics.history import compaction, swapping
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.reading import all_runs
from analytics.history.swapping import LISTING_S, STAGING
from analytics.history.tables import TABLES, VERSION, VERSION_KEY, Kept
from analytics.lag.selection import Choice
from storage.platform.cloning import exchange
from tests.support.kept_reports import DAY_MS, OLD, document, files, places, rows, run
from tests.support.old_history import extract_history
from tests.support.slim import ROOT, Slim

pytestmark = pytest.mark.slow
NOW = OLD + 60 * DAY_MS


def compact(folder: Path, now: int = NOW, *, by_day: bool = False) -> list[str]:
    """Join what is due; gives the warnings."""
    warnings: list[str] = []
    with compaction.compacting(str(folder), listing_s=0) as old:
        for one in compaction.plan(str(folder), now, by_day=by_day):
            compaction.join(one, warnings.append, old)
    return warnings


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Three days of two brokers in January and one in February."""
    for day in (0, 1, 2, 31):
        run(tmp_path, OLD + day * DAY_MS, {"a": day + 1, "b/1": 9})
    return tmp_path


def test_each_month_becomes_a_file_for_each_table_and_every_report_stays(history: Path) -> None:
    days = [OLD + day * DAY_MS for day in (0, 1, 2, 31)]
    before = [document(history, day) for day in days], places(rows(history, "groups"))
    assert len(files(history)) == 4 * 2 * 8
    assert compact(history) == []
    assert ([document(history, day) for day in days], places(rows(history, "groups"))) == before
    left = files(history)
    assert [name.partition("joined-")[2][:7] for name in left] == ["2026-01", "2026-02"] * 8
    assert {name.partition("/")[0] for name in left} <= set(TABLES)
    assert compact(history) == []
    assert files(history) == left


def test_the_month_and_the_day_of_now_stay(history: Path) -> None:
    compact(history, OLD + 31 * DAY_MS)
    assert len([name for name in files(history) if "month=2026-02/part-" in name]) == 2 * 8
    assert len([name for name in files(history) if "month=2026-01/joined-" in name]) == 8
    run(history, OLD + 30 * DAY_MS, {"a": 1, "b/1": 1})
    compact(history, OLD + 31 * DAY_MS, by_day=True)
    assert len([name for name in files(history) if "joined-2026-01-31-" in name]) == 8
    assert len([name for name in files(history) if "/part-" in name]) == 2 * 8


def test_days_become_months_later(history: Path) -> None:
    before = document(history, OLD), places(rows(history, "groups"))
    compact(history, by_day=True)
    assert len(files(history)) == 4 * 8
    compact(history, by_day=True)
    assert len(files(history)) == 4 * 8
    compact(history)
    assert len(files(history)) == 2 * 8
    assert (document(history, OLD), places(rows(history, "groups"))) == before


def test_many_rows_are_written_some_at_a_time(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = [document(history, OLD + day * DAY_MS) for day in range(3)]
    monkeypatch.setattr(compaction, "ROWS", 3)
    compact(history)
    (path,) = (history / "groups" / "month=2026-01").iterdir()
    assert parquet.ParquetFile(path).num_row_groups == 4
    assert [document(history, OLD + day * DAY_MS) for day in range(3)] == before


def test_reports_of_version_1_are_read_and_joined(tmp_path: Path) -> None:
    folder = extract_history(tmp_path)
    wanted = json.loads((tmp_path / "report-1.json").read_text("utf-8"))
    for row in wanted["groups"]:
        del row["lag_before"], row["lag_change"]
    del wanted["elapsed_ms"], wanted["engine"]
    assert json.loads(document(folder)) == wanted
    run(folder, wanted["as_of"] + 1000, {"new": 3})
    assert json.loads(document(folder, wanted["as_of"])) == wanted
    assert compact(folder, wanted["as_of"] + 2000) == []
    assert json.loads(document(folder, wanted["as_of"])) == wanted
    assert not [name for name in files(folder) if "broker=" in name]
    found = rows(folder, "groups")
    assert {row["broker"] for row in found} == {"broker-a", "broker/b", "new"}
    assert {row["date"] for row in found} == {date(2026, 11, day) for day in (22, 23, 24)}


def test_each_time_is_a_timestamp_beside_its_milliseconds(history: Path) -> None:
    for table in ("groups", "queues", "minutes", "hours"):
        names = [name for name in TABLES[table] if name.endswith("_timestamp")]
        assert names
        for row in rows(history, table):
            assert row["as_of_time"] == datetime.fromtimestamp(row["as_of"] / 1000, UTC)
            assert row["date"] == row["as_of_time"].date()
            for name in names:
                moment = row[name.replace("_timestamp", "_time")]
                assert (moment is None) == (row[name] is None)
                if moment is not None:
                    assert moment.timestamp() * 1000 == row[name]
    for path in history.rglob("*.parquet"):
        assert parquet.read_schema(path).metadata[VERSION_KEY] == str(VERSION).encode()


def test_a_time_without_a_date_is_null_beside_its_milliseconds(tmp_path: Path) -> None:
    from analytics.history.tables import whole_table

    odd = [None, -1, 253_402_300_799_999, 253_402_300_800_000, 2**63 - 1, -(2**63)]
    count = len(odd)
    stored = {"as_of": [OLD] * count, "group": ["g"] * count, "topic": ["t"] * count}
    stored |= {"minute_timestamp": odd, "messages": [1] * count, "bytes": [1] * count}
    table = whole_table(pyarrow, "minutes", pyarrow.table(stored), Kept("", "b", OLD))
    assert table.column("minute_timestamp").to_pylist() == odd
    assert [moment is None for moment in table.column("minute_time").to_pylist()] == [
        *(True, False, False),
        *(True, True, True),
    ]


def later_version(path: Path) -> None:
    """Give a file the number of a version that is not known here."""
    table = parquet.read_table(path, partitioning=None)
    metadata = {VERSION_KEY: str(VERSION + 1).encode()}
    parquet.write_table(table.replace_schema_metadata(metadata), path)


def test_a_file_of_a_later_version_is_named_and_stays(history: Path) -> None:
    (path,) = (history / "queues").rglob(f"part-{OLD + 2 * DAY_MS}@a.parquet")
    later_version(path)
    made = gathered_report(LocalEngine(), find_kept([str(history)], OLD + 2 * DAY_MS), Choice())
    (failed,) = made.unreadable
    assert failed.ref.broker == "a"
    assert f"{path} was written by a later rmqctl (version {VERSION + 1}" in failed.reason
    (warning,) = compact(history)
    assert warning.startswith(f"{path} was written by a later rmqctl")
    assert warning.endswith("; it stays as it is")
    assert path.exists()
    (joined,) = (history / "stores" / "month=2026-01").iterdir()
    later_version(joined)
    with pytest.raises(HistoryVersionError, match="install that one"):
        find_kept([str(history)], None)


def test_a_damaged_file_stays_and_the_others_are_joined(history: Path) -> None:
    before = document(history, OLD)
    (path,) = (history / "tags").rglob(f"part-{OLD + DAY_MS}@a.parquet")
    path.write_bytes(path.read_bytes()[:-20])
    (warning,) = compact(history)
    assert warning.startswith(f"{path} cannot be read: ")
    assert sorted(path.parent.iterdir())[1] == path
    assert document(history, OLD) == before
    assert len(files(history)) == 2 * 8 + 1


def test_a_report_that_was_joined_is_not_replaced(history: Path) -> None:
    run(history, OLD, {"a": 70, "b/1": 9})
    assert json.loads(document(history, OLD))["totals"]["lag"] == 158
    compact(history)
    left = files(history)
    with pytest.raises(JoinedError, match=f"has a report of a as of {OLD} ms"):
        run(history, OLD, {"a": 1})
    assert files(history) == left


def test_files_that_are_copied_once_more_count_once(history: Path, tmp_path: Path) -> None:
    """As rsync does where a compaction has removed what it had copied."""
    before = document(history, OLD)
    copies = {path: path.read_bytes() for path in history.rglob("part-*.parquet")}
    compact(history)
    for path, data in copies.items():
        path.write_bytes(data)
    assert document(history, OLD) == before
    compact(history)
    assert document(history, OLD) == before
    assert len(places(rows(history, "groups"))) == 4 * 2 * 2
    assert len(files(history)) == 2 * 8
    # A second joined file with the same runs, as of a broker that has compacted its own folder.
    for path in history.rglob("joined-*.parquet"):
        path.with_name(path.name[:-12] + "0" * 4 + ".parquet").write_bytes(path.read_bytes())
    assert document(history, OLD) == before
    compact(history)
    assert len(places(rows(history, "groups"))) == 4 * 2 * 2


def test_a_name_of_any_length_is_a_brokers(tmp_path: Path) -> None:
    names = {"n" * 300: 1, "\u8ba2" * 80: 2, "~tilde": 3, "plain": 4}
    run(tmp_path, OLD, names)
    before = document(tmp_path, OLD)
    assert {row["broker"] for row in json.loads(before)["stores"]} == set(names)
    assert max(len(name.rpartition("/")[2]) for name in files(tmp_path)) < 200
    compact(tmp_path)
    assert document(tmp_path, OLD) == before


def test_one_compaction_at_a_time(history: Path) -> None:
    with (
        compaction.compacting(str(history)),
        pytest.raises(CompactionRunsError, match="another process compacts"),
        compaction.compacting(str(history)),
    ):
        pass


def needs_exchange(folder: Path) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
    if not exchange(folder / "one", folder / "other"):
        pytest.skip("needs a file system that exchanges folders")


@pytest.mark.crash
@pytest.mark.parametrize(
    ("first", "step", "exchanges"),
    [
        (5, 18, True),
        (1, 31, False),
        pytest.param(1, 1, True, marks=pytest.mark.long),
        pytest.param(1, 1, False, marks=pytest.mark.long),
    ],
)
def test_a_kill_at_any_instant_leaves_each_row_once(
    tmp_path: Path, first: int, step: int, exchanges: bool
) -> None:
    if exchanges:
        needs_exchange(tmp_path)
    function = "tests.support.killed_compaction:killed_at_every_instant"
    seen = Slim(
        function, folder=str(tmp_path), first=first, step=step, exchanges=exchanges
    ).result()
    assert seen["failures"] == []
    assert seen["instants"] > 40


@pytest.mark.parametrize("times", [2, pytest.param(6, marks=pytest.mark.long)])
def test_readers_beside_it_see_each_row_once(tmp_path: Path, times: int) -> None:
    needs_exchange(tmp_path)
    folder = tmp_path / "history"
    run(folder, OLD, {"a": 1, "b": 2}, full=False)
    wanted = document(folder, OLD)
    looks = 0
    words = [sys.executable, "-m", "tests.support.killed_compaction", str(folder), str(times)]
    with subprocess.Popen(words, cwd=ROOT) as busy:
        while busy.poll() is None:
            assert document(folder, OLD) == wanted
            began = time.monotonic()
            found = listed_once(folder)
            # Old names stay for LISTING_S only: nothing is promised to a program that stood longer.
            if found is not None and time.monotonic() - began < LISTING_S:
                assert sorted(found) == [("a", "billing"), ("a", "shipping")] + [
                    ("b", "billing"),
                    ("b", "shipping"),
                ]
                looks += 1
    assert busy.returncode == 0
    assert looks > 1
    assert len(files(folder)) == 3


def listed_once(folder: Path) -> list[tuple[Any, Any]] | None:
    """What a program sees of the first run that lists a folder, then reads its files; None if a
    file is gone before it was read: it gets FileNotFoundError."""
    try:
        found = rows(folder, "groups")
    except FileNotFoundError:
        return None
    return [(row["broker"], row["group"]) for row in found if row["as_of"] == OLD]


def test_a_program_that_lists_a_folder_meanwhile_sees_all_of_it(history: Path) -> None:
    """It has opened the old folder, and asks for its names after that was exchanged."""
    needs_exchange(history)
    live = history / "groups" / "month=2026-01"
    wanted = {path.name for path in live.iterdir()}
    fd = os.open(live, os.O_RDONLY | os.O_DIRECTORY)
    seen = []
    with compaction.compacting(str(history)) as old:
        for one in compaction.plan(str(history), NOW):
            compaction.join(one, pytest.fail, old)
            if one.live == live:
                assert live.stat().st_ino != os.fstat(fd).st_ino
                seen.append(set(os.listdir(fd)))  # noqa: PTH208 - a descriptor
    assert [names >= wanted for names in seen] == [True]
    assert os.listdir(fd) == []  # noqa: PTH208
    os.close(fd)
    assert not (history / STAGING).exists()


def test_rmqctl_lists_a_folder_again_that_was_exchanged_meanwhile(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange(history)
    before = document(history, OLD)
    listdir, left = os.listdir, [1]

    def exchanged(place: int) -> list[str]:
        """As if the process did not run for a second between opening the folder and listing it."""
        names = listdir(place)
        if left and any(name.startswith("part-") for name in names):
            left.pop()
            compact(history)
            return []  # the old folder, from which all has been removed
        return names

    monkeypatch.setattr(os, "listdir", exchanged)
    assert document(history, OLD) == before
    assert not left


def test_what_comes_in_while_folders_are_exchanged_is_seen_at_once(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange(history)
    made: list[int] = []

    def late(one: Path, other: Path) -> bool:
        made.append(OLD + 60_000 * (len(made) + 1))
        run(history, made[-1], {"a": 5})
        return exchange(one, other)

    monkeypatch.setattr(swapping, "exchange", late)
    with compaction.compacting(str(history)) as old:
        for one in compaction.plan(str(history), NOW):
            if one.month != "2026-01":
                continue
            compaction.join(one, pytest.fail, old)
            assert set(made) <= {row["as_of"] for row in rows(history, one.table)}, one.table
            if one.table == "stores":
                assert set(made) <= {kept.as_of for kept in all_runs(str(history))}
    assert len(made) == 8
    seen = places(rows(history, "groups"))
    assert len(seen) == len(set(seen)) == 4 * 2 * 2 + len(made) * 2
    assert not (history / STAGING).exists()


@pytest.mark.parametrize("lags", [(7,), (7, 8)])
def test_the_last_form_of_a_report_stays_that_is_kept_again_meanwhile(
    history: Path, monkeypatch: pytest.MonkeyPatch, lags: tuple[int, ...]
) -> None:
    """Its file stays in the month's folder, where the days before are joined."""
    needs_exchange(history)
    today = OLD + 2 * DAY_MS

    def late(one: Path, other: Path) -> bool:
        if one.parent.name != "groups":
            return exchange(one, other)
        run(history, today, {"a": lags[0], "b/1": 9})
        done = exchange(one, other)
        for lag in lags[1:]:
            run(history, today, {"a": lag, "b/1": 9})
        return done

    monkeypatch.setattr(swapping, "exchange", late)
    with compaction.compacting(str(history)) as old:
        for one in compaction.plan(str(history), today, by_day=True):
            compaction.join(one, pytest.fail, old)
            if one.table == "groups":
                assert lags_of(history, today) == {("a", lags[-1]), ("b/1", 9)}
    assert lags_of(history, today) == {("a", lags[-1]), ("b/1", 9)}


def lags_of(folder: Path, as_of: int) -> set[tuple[str, int]]:
    found = rows(folder, "groups")
    return {(row["broker"], row["lag"]) for row in found if row["as_of"] == as_of}


def test_a_folder_that_cannot_be_removed_yet_stops_no_other_join(
    history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_exchange(history)
    before = document(history, OLD)
    settle, failures = swapping._settle, [1, 1]

    def settle_later(folder: str, old: Path, *rest: Any) -> None:
        if failures:
            raise OSError(failures.pop(), "no")
        settle(folder, old, *rest)

    monkeypatch.setattr(swapping, "_settle", settle_later)
    assert compact(history) == []
    assert not failures
    assert document(history, OLD) == before
    assert not (history / STAGING).exists()


@pytest.mark.parametrize("fails", [False, True])
def test_an_interrupted_compaction_ends_at_once_and_the_next_one_finishes_it(
    history: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    needs_exchange(history)
    before = document(history, OLD)

    def no(*_: object) -> None:
        raise OSError(1, "no")

    with monkeypatch.context() as patch:
        patch.setattr("time.sleep", lambda _: pytest.fail("it waits"))
        if fails:
            patch.setattr(swapping, "_settle", no)
        with pytest.raises(KeyboardInterrupt):
            interrupted(history, 0 if fails else 60)
    assert document(history, OLD) == before
    assert (history / STAGING).exists()
    compact(history)
    assert document(history, OLD) == before
    assert not (history / STAGING).exists()


@pytest.mark.parametrize("fails", ["hardlink_to", "rename"])
def test_what_came_in_is_not_lost_without_links_or_by_an_interrupt(
    history: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    needs_exchange(history)
    later = OLD + 3 * DAY_MS
    real: Callable[[Path, Path], Path | None] = getattr(Path, fails)

    def failing(path: Path, other: Path) -> Path | None:
        if not path.name.startswith(".joined-."):
            return real(path, other)
        raise OSError(1, "no links") if fails == "hardlink_to" else KeyboardInterrupt

    def late(one: Path, other: Path) -> bool:
        run(history, later, {"a": 5})
        return exchange(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(swapping, "exchange", late)
        patch.setattr(Path, fails, failing)
        with pytest.raises(KeyboardInterrupt):
            interrupted(history, 60)
    is_there = later in {row["as_of"] for row in rows(history, "stores")}
    assert is_there == (fails == "hardlink_to")
    compact(history)
    assert [row["as_of"] for row in rows(history, "stores")].count(later) == 1
    assert not (history / STAGING).exists()


def interrupted(folder: Path, listing_s: float) -> None:
    """A compaction that is interrupted after its first join."""
    with compaction.compacting(str(folder), listing_s=listing_s) as old:
        compaction.join(compaction.plan(str(folder), NOW)[0], pytest.fail, old)
        raise KeyboardInterrupt


def test_what_comes_into_an_old_folder_later_is_seen_from_the_next_join_on(history: Path) -> None:
    needs_exchange(history)
    later = OLD + 3 * DAY_MS
    name = f"part-{later}@a.parquet"
    with compaction.compacting(str(history)) as old:
        first, second, *_ = compaction.plan(str(history), NOW)
        compaction.join(first, pytest.fail, old)
        run(history, later, {"a": 5})
        (first.live / name).rename(first.staged / name)
        compaction.join(second, pytest.fail, old)
        assert (first.live / name).exists()
    assert later in {row["as_of"] for row in rows(history, first.table)}


def test_what_a_killed_compaction_left_is_finished(history: Path) -> None:
    """A file that came into the old folder after it was exchanged is not lost."""
    compact(history)
    staged = history / STAGING / "groups" / "month=2026-01"
    staged.mkdir(parents=True)
    run(history, OLD + 3 * DAY_MS, {"a": 5})
    name = f"part-{OLD + 3 * DAY_MS}@a.parquet"
    (history / "groups" / "month=2026-01" / name).rename(staged / name)
    assert len(places(rows(history, "groups"))) == 4 * 2 * 2
    with compaction.compacting(str(history)):
        pass
    assert len(places(rows(history, "groups"))) == 4 * 2 * 2 + 2
    assert not (history / STAGING).exists()
