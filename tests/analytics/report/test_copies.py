"""A log is a copy of a longer one only if its last record is in that one, at its place."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

from analytics.datasource.plan.kept_logs import kept_logs
from analytics.datasource.plan.log_now import LogLooks, LogNow
from analytics.datasource.query.options import read_options
from analytics.engines.local import LocalEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.copies import marked_places, sort_out
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from storage.configs.consumer_offsets import topic_at_group
from storage.errors import RocketMQError
from tests.support.hand_made import START_MS, TINY, HandMade
from tests.support.spark_source import read_table

T = TypeVar("T")
R = TypeVar("R")
NOW = START_MS + 10_000_000
ALL = Choice()
FILE = TINY.mapped_file_size_commit_log


def some(made: HandMade, count: int, text: str = "") -> HandMade:
    """A store with more messages."""
    made = deepcopy(made)
    for number in range(count):
        made.put("T", number % 2, f"{text}{number}".encode())
    return made


def filled(made: HandMade, files: int) -> HandMade:
    """A store with records in so many files of the log."""
    made = deepcopy(made)
    while len(made.log) <= FILE * (files - 1):
        made.put("T", 0, b"x" * 700)
    return made


def written(root: Path, made: HandMade, first_file: int = 0) -> Path:
    """The store in a folder; the files of its log before ``first_file`` have been deleted."""
    root.mkdir(parents=True)
    made.write(root)
    for path in sorted((root / "commitlog").iterdir())[:first_file]:
        path.unlink()
    (root / "config").mkdir()
    table = {topic_at_group("T", "g"): {"0": 0, "1": 0}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return root


def report(*roots: Path) -> MadeReport:
    refs = [StoreRef(root.name, str(root)) for root in roots]
    return lag_report(LocalEngine(), refs, NOW, ALL)


def brokers(made: MadeReport) -> list[str]:
    return [row["broker"] for row in made.report.stores]


def left(*roots: Path) -> list[str]:
    """The stores that the source for Spark reads."""
    options = read_options({"path": ",".join(map(str, roots))})
    return [log.ref.broker for log in kept_logs(options, LogLooks())]


def parted(folder: Path) -> tuple[Path, Path]:
    """A store that was restored from a backup, and what it was before."""
    backup = some(HandMade(), 20)
    dead = written(folder / "shop.before-restore", some(backup, 30, "dead"))
    return dead, written(folder / "shop", some(backup, 10, "live"))


def test_logs_that_begin_alike_and_part_both_count(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    dead, live = parted(tmp_path)
    for roots in ((dead, live), (live, dead)):
        found = report(*roots)
        assert brokers(found) == [root.name for root in roots]
        assert found.report.totals["lag"] == 50 + 30
        assert found.report.warnings == [
            "shop: its log begins with the same records as that of shop.before-restore, but its "
            "last record is not there: the two logs have parted, and both count"
        ]
        assert left(*roots) == [root.name for root in roots]
        assert "the two logs have parted, and both count\n" in f"{caplog.text}\n"
        caplog.clear()
    assert len(read_table("messages", dead, live)) == 50 + 30


def test_logs_that_part_count_in_kept_reports_as_in_their_own(tmp_path: Path) -> None:
    found = report(*parted(tmp_path))
    keep(found.shares, NOW, tmp_path / "kept", [("g", "T")], None)
    gathered = gathered_report(LocalEngine(), find_kept([str(tmp_path / "kept")], None), ALL)
    assert gathered.report.totals == found.report.totals
    assert brokers(gathered) == sorted(brokers(found))


def test_a_copy_of_a_shorter_log_is_left_out_for_that_one(tmp_path: Path) -> None:
    backup = some(HandMade(), 20)
    live = some(backup, 10, "live")
    roots = (
        written(tmp_path / "dead", some(backup, 30, "dead")),
        written(tmp_path / "live", live),
        written(tmp_path / "backup", backup),
        written(tmp_path / "slave", live),
    )
    found = report(*roots)
    assert brokers(found) == left(*roots) == ["dead", "live"]
    notes = [note.partition(",")[0] for note in found.report.warnings]
    assert notes == [
        "slave: left out",
        "backup: left out",
        "live: its log begins with the same records as that of dead",
    ]
    assert "slave: left out, it is a copy of live, which goes 0 bytes further" in (
        found.report.warnings
    )


@pytest.mark.parametrize(
    ("copy", "whole"),
    [
        ((0, 100), (0, 200)),  # first file and number of files
        ((0, 100), (50, 200)),
        ((0, 131), (130, 260)),
        ((70, 75), (0, 300)),
        ((137, 138), (0, 400)),
        ((5, 9), (3, 1000)),
    ],
)
def test_copies_are_known_however_far_they_are_behind(
    tmp_path: Path, copy: tuple[int, int], whole: tuple[int, int]
) -> None:
    master = filled(HandMade(), whole[1])
    shorter = filled(HandMade(), copy[1])
    roots = (
        written(tmp_path / "copy", shorter, copy[0]),
        written(tmp_path / "whole", master, whole[0]),
    )
    found = report(*roots)
    assert brokers(found) == left(*roots) == ["whole"]
    further = master.log_end - shorter.log_end
    assert found.report.warnings[0] == (
        f"copy: left out, it is a copy of whole, which goes {further} bytes further"
    )


@pytest.mark.parametrize("files", [1, 2, 64, 65, 200, 1000])
def test_few_places_of_a_log_are_marked_and_two_logs_have_one_in_common(files: int) -> None:
    whole = set(marked_places(0, files * FILE, FILE))
    assert whole <= set(range(0, files * FILE, FILE))
    assert len(whole) <= 64 + 32 + 2 * 10
    assert {0, (files - 1) * FILE} <= whole
    for begin in range(files):
        tail = set(marked_places(begin * FILE, 2 * files * FILE, FILE))
        assert not whole.isdisjoint(tail)


class Vanishing:
    """An engine; a store is removed after one kind of work, such as the scan of all stores."""

    name = "local"
    cores = 1
    is_here = False

    def __init__(self, root: Path, after: str) -> None:
        self.root = root
        self.after = after

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        found = LocalEngine().map(function, items, progress)
        if self.after in str(function):
            shutil.rmtree(self.root, ignore_errors=True)
        return found


def test_a_copy_that_is_removed_after_its_scan_is_left_out(tmp_path: Path) -> None:
    made = some(HandMade(), 20)
    copy, whole = written(tmp_path / "copy", made), written(tmp_path / "whole", some(made, 30))
    refs = [StoreRef(root.name, str(root)) for root in (copy, whole)]
    found = lag_report(Vanishing(copy, "try_scan"), refs, NOW, ALL)
    assert (brokers(found), found.report.totals["lag"]) == (["whole"], 50)
    assert found.report.warnings[0].startswith("copy: left out, it is a copy of whole")


@pytest.mark.parametrize("after", ["try_scan", "marks_at"])
def test_a_store_that_is_removed_after_its_scan_is_named_and_left_out(
    tmp_path: Path, after: str
) -> None:
    made = some(HandMade(), 20)
    gone, copy = written(tmp_path / "gone", some(made, 30)), written(tmp_path / "copy", made)
    other = written(tmp_path / "other", some(HandMade(), 5, "other"))
    refs = [StoreRef(root.name, str(root)) for root in (gone, copy, other)]
    found = lag_report(Vanishing(gone, after), refs, NOW, ALL)
    assert [one.ref.broker for one in found.unreadable] == ["gone"]
    assert found.report.warnings[0].startswith("gone: not read: ")
    if after == "try_scan":  # what was its copy is counted
        assert (brokers(found), found.report.totals["lag"]) == (["copy", "other"], 25)
    else:
        assert (brokers(found), found.report.totals["lag"]) == (["other"], 5)


class Removing(LogLooks):
    """A store is removed while the stores after it are looked at."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root

    def look(self, ref: StoreRef) -> LogNow:
        if ref.path != str(self.root) and self.root.exists():
            shutil.rmtree(self.root)
        return super().look(ref)


@pytest.mark.parametrize("how", ["skip", "fail"])
def test_a_store_that_is_removed_while_others_are_looked_at_is_unreadable(
    tmp_path: Path, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = some(HandMade(), 20)
    gone, copy = written(tmp_path / "gone", some(made, 30)), written(tmp_path / "copy", made)
    options = read_options({"path": f"{gone},{copy}", "onUnreadableStore": how})
    if how == "fail":
        with pytest.raises((RocketMQError, OSError)):
            kept_logs(options, Removing(gone))
        return
    caplog.set_level(logging.WARNING)
    assert [log.ref.broker for log in kept_logs(options, Removing(gone))] == ["copy"]
    assert "gone: left out, it cannot be read: " in caplog.text


class Marked(NamedTuple):
    """A log as its marks show it."""

    ref: StoreRef
    log: tuple[int, int]
    marks: frozenset[str]
    records: dict[int, str]


class Counting:
    """Looks records up in memory, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def last_marks(self, logs: Sequence[Marked]) -> list[str | None]:
        return [one.records[max(one.records)] for one in logs]

    def marks_at(self, asked: Sequence[tuple[Marked, Sequence[int]]]) -> list[list[str | None]]:
        self.count += sum(len(places) for _, places in asked)
        return [[one.records.get(place) for place in places] for one, places in asked]


@pytest.mark.parametrize("alike", [0, 1], ids=["strangers", "clones of one image"])
def test_a_thousand_logs_are_compared_with_few_reads(alike: int) -> None:
    """Strangers with none; of clones each with the next 64 longer ones; slaves are found."""
    logs = []
    for number in range(1000):
        end = 1000 + 7 * number
        records = {place: f"{place} a{number} i 1 1" for place in (0, end - 100, end - 10)}
        if alike:
            records[0] = "0 image i 1 1"
        logs.append(_marked(f"b{number}", end, records))
        if number == 500:
            del records[end - 10]
            logs.append(_marked("slave", end - 10, dict(records)))
    looks = Counting()
    found = sort_out(logs, looks)
    assert len(found.kept) == 1000
    assert len(found.left_out) == 1
    assert found.left_out[0].startswith("slave: left out, it is a copy of b500")
    assert len(found.parted) == (999 if alike else 0)
    assert looks.count <= (64 * 1001 if alike else 1)


def _marked(broker: str, end: int, records: dict[int, str]) -> Marked:
    return Marked(StoreRef(broker, f"/{broker}"), (0, end), frozenset({records[0]}), records)
