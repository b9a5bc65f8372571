"""The report of a check is the same whether one process reads the log or several share it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from storage.files.read_files import StoreFiles
from storage.format.record import read_head
from storage.readonly import StoreView
from storage.tools.fsck import Code, Finding, Report, fsck, log_pass
from storage.tools.fsck.jobs import LogJobs
from storage.tools.fsck.log import LogCheck
from storage.tools.fsck.log_part import LogPart, LogRange, split_log
from tests.support import golden, golden_samples
from tests.support.anatomy import Anatomy
from tests.support.cli import ROOT
from tests.support.damages import NotHere, damage, kinds
from tests.support.examples import one_in

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""Some kinds of damage take the log's last files away, and readers warn of that."""

NAME = "small-files-4.9"
STORE_TIMESTAMP_AT, PHYSICAL_OFFSET_AT = 56, 28


def check(root: Path, jobs: int) -> Report:
    with StoreView.open(root) as view:
        return fsck(view, jobs=jobs)


def borders(root: Path, jobs: int) -> list[int]:
    """Where the parts begin that a check by some processes makes of the log."""
    with StoreView.open(root) as view:
        start = view.log_min_offset()
        log = StoreFiles(root, view.config).log
        ranges = split_log(log, start, view.log_max_offset(), jobs)
    return [first for first, _ in ranges[1:]]


@pytest.mark.slow
@golden_samples.SOME
def test_of_stores_of_real_brokers(name: str) -> None:
    root = golden.store(name)
    alone = check(root, 1)
    for jobs in (2, 3):
        assert check(root, jobs) == alone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(NAME, 6, id="some kinds"),
        *(pytest.param(name, 1, marks=pytest.mark.long) for name in (NAME, "retention-5.3")),
    ],
)
def test_of_stores_with_each_kind_of_damage(name: str, step: int, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    unlike, done = [], 0
    for kind in list(kinds())[::step]:
        try:
            damaged = damage(root, kind)
        except NotHere:
            continue
        try:
            unlike += [kind] * (check(root, 3) != check(root, 1))
        finally:
            damaged.undo()
        done += 1
    assert unlike == []
    assert done > 30 // step


class Record:
    """A record of the log in its file, to be written into."""

    def __init__(self, root: Path, offset: int) -> None:
        with StoreView.open(root) as view:
            self._position = offset % view.config.mapped_file_size_commit_log
            first = offset - self._position
            self.path = root / "commitlog" / f"{first:020d}"
        self.head = read_head(self.path.read_bytes(), self._position)

    def write(self, at: int, data: bytes) -> None:
        """Write ``data`` ``at`` bytes after the begin of the record, maybe before it."""
        with self.path.open("r+b") as file:
            file.seek(max(0, self._position + at))
            file.write(data)


def damaged_head(root: Path, border: int) -> None:
    Record(root, border).write(4, b"\0\0\0\0")


def damaged_body(root: Path, border: int) -> None:
    Record(root, border).write(92, b"?!")


def zeros_over_the_border(root: Path, border: int) -> None:
    Record(root, border).write(-100, bytes(300))


def older_than_before(root: Path, border: int) -> None:
    Record(root, border).write(STORE_TIMESTAMP_AT, (1_000_000).to_bytes(8, "big"))


def says_it_is_elsewhere(root: Path, border: int) -> None:
    Record(root, border).write(PHYSICAL_OFFSET_AT, (border + 7).to_bytes(8, "big"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "harm",
    one_in(
        2,
        [
            damaged_head,
            damaged_body,
            zeros_over_the_border,
            older_than_before,
            says_it_is_elsewhere,
        ],
    ),
)
def test_of_a_store_with_damage_where_parts_meet(harm, tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    sound = check(root, 1)
    places = borders(root, 2)
    assert len(places) > 10
    for border in places[::4]:
        harm(root, border)
        alone = check(root, 1)
        assert alone.findings != sound.findings
        assert check(root, 2) == alone
        assert check(root, 3) == alone


@pytest.mark.slow
def test_of_a_store_with_neighbours_in_wrong_places(tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    for offset in [record.offset for record in Anatomy(root).records][10:200]:
        Record(root, offset).write(PHYSICAL_OFFSET_AT, (offset + 4096).to_bytes(8, "big"))
    alone = check(root, 1)
    assert Code.RECORD_MISPLACED in {finding.code for finding in alone.findings}
    assert check(root, 2) == check(root, 3) == alone


@pytest.mark.slow
def test_of_a_store_whose_times_go_back_again_and_again(tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    for border in borders(root, 2)[1::2]:
        older_than_before(root, border)
    alone = check(root, 1)
    assert [f.code for f in alone.findings].count(Code.STORE_TIME_BACK) > 8
    assert check(root, 2) == check(root, 3) == alone


def walked_parts(root: str) -> None:
    """Write whether each part that another process has walked was taken; run as a program."""
    taken = []

    def absorb(log: LogCheck, part: LogPart) -> bool:
        taken.append(was(log, part))
        return taken[-1]

    was = LogCheck.absorb
    LogCheck.absorb = absorb  # type: ignore[method-assign, assignment]
    assert check(Path(root), 2).healthy
    sys.stdout.write(str(taken))


@pytest.mark.slow
def test_of_a_sound_store_each_part_is_walked_once() -> None:
    # In a process of its own: a thread that an earlier test left would keep fsck from forking.
    root = golden.store(NAME)
    program = f"from {__name__} import walked_parts; walked_parts({str(root)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == str([True] * (len(borders(root, 2)) + 1))


@pytest.mark.slow
def test_a_part_with_many_findings_is_walked_by_the_one_who_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = golden.extract(NAME, tmp_path)
    damaged_body(root, borders(root, 2)[3])
    monkeypatch.setattr(log_pass, "MOST_FINDINGS", 0)
    assert check(root, 2) == check(root, 1)


@pytest.mark.slow
def test_what_is_told_at_once_and_progress_come_in_the_order_of_the_log(tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    for border in borders(root, 2)[::5]:
        damaged_body(root, border)
    told: list[Finding] = []
    done: list[tuple[int, int]] = []
    with StoreView.open(root) as view:
        report = fsck(
            view,
            jobs=3,
            on_finding=told.append,
            progress=lambda position, total: done.append((position, total)),
        )
    assert told == report.findings
    assert done == sorted(done)
    assert done[-1][0] == done[-1][1]


def test_a_process_that_dies_is_an_error() -> None:
    def die(piece: LogRange) -> None:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        # Here nothing goes on until the other one has taken its part.
        others._take(wait_for_one=True)

    here = os.getpid()
    with (
        LogJobs([(0, 1), (1, 2), (2, 3)], die, 1) as others,
        pytest.raises(ChildProcessError, match=r"died \(exit code -9\)"),
    ):
        list(others.parts())


def test_what_a_process_can_not_read_is_raised_here() -> None:
    def fail(piece: LogRange) -> None:
        if os.getpid() != here:
            raise OSError(5, "Input/output error")
        others._take(wait_for_one=True)

    here = os.getpid()
    with (
        LogJobs([(0, 1), (1, 2), (2, 3)], fail, 1) as others,
        pytest.raises(OSError, match="Input/output error"),
    ):
        list(others.parts())
