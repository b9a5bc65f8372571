"""When files of the log may be deleted, by RocketMQ's rule."""

import os
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from storage.readonly import StoreView
from storage.retention import (
    HOUR_MS,
    LogFile,
    LogFilesDue,
    RetentionRules,
    due_now,
    log_files,
    rules_by_hand,
    rules_of,
    safe_from,
    used_ratio,
)
from tests.support.samples import TINY, Sample, open_store

DAY = 24 * HOUR_MS


def local(*parts):
    return int(datetime(*parts).timestamp() * 1000)


NIGHT = RetentionRules(3 * DAY, frozenset({4}))


@pytest.mark.feature(52)
@pytest.mark.conformance("A18")
def test_a_file_goes_in_the_first_hour_of_deletion_after_its_time():
    now = local(2026, 3, 10, 12)
    assert NIGHT.due(local(2026, 3, 9, 15, 30), now) == local(2026, 3, 13, 4)
    assert NIGHT.due(local(2026, 3, 9, 4, 30), now) == local(2026, 3, 12, 4, 30)
    assert NIGHT.due(local(2026, 3, 9, 3, 59), now) == local(2026, 3, 12, 4)


@pytest.mark.feature(52)
def test_what_is_overdue_goes_in_the_next_such_hour_or_now():
    old = local(2026, 1, 1)
    assert NIGHT.due(old, local(2026, 3, 10, 12)) == local(2026, 3, 11, 4)
    assert NIGHT.due(old, local(2026, 3, 10, 4, 59)) == local(2026, 3, 10, 4, 59)


@pytest.mark.parametrize("hours", [frozenset(), frozenset({24})])
def test_without_an_hour_of_deletion_only_a_full_disk_deletes(hours):
    never = NIGHT._replace(hours=hours)
    now = local(2026, 3, 10, 12)
    assert never.due(local(2026, 1, 1), now) is None
    assert never._replace(any_hour=True).due(local(2026, 1, 1), now) == now


@pytest.mark.feature(52)
@pytest.mark.conformance("A18")
def test_a_full_disk_takes_the_hour_and_a_fuller_one_the_age():
    now, written = local(2026, 3, 10, 12), local(2026, 3, 9, 15)
    assert NIGHT._replace(any_hour=True).due(written, now) == local(2026, 3, 12, 15)
    assert NIGHT._replace(any_hour=True).due(local(2026, 1, 1), now) == now
    assert NIGHT._replace(at_once=True).due(written, now) == now


@pytest.mark.conformance("A18")
@pytest.mark.parametrize(
    ("used", "made_here", "forcibly", "any_hour", "at_once"),
    [
        (75, True, True, False, False),
        (76, True, True, True, False),
        (85, True, True, True, False),
        (86, True, True, True, True),
        (86, True, False, True, False),
        (86, False, False, True, True),
    ],
)
def test_how_full_the_disk_is_decides_what_matters(
    tmp_path, monkeypatch, used, made_here, forcibly, any_hour, at_once
):
    """More than 75 % (diskMaxUsedSpaceRatio) opens any hour; more than 85 % forces, if enabled."""
    if made_here:
        (tmp_path / "rmqctl").mkdir()
        (tmp_path / "rmqctl/created").touch()
    space = SimpleNamespace(f_blocks=100, f_bfree=100 - used, f_bavail=100 - used)
    monkeypatch.setattr("os.statvfs", lambda _: space)
    config = TINY.with_(clean_file_forcibly_enable=forcibly, delete_when="03; 16;")
    rules = rules_of(tmp_path, config)
    assert rules == RetentionRules(72 * HOUR_MS, frozenset({3, 16}), any_hour, at_once)
    assert rules_of(tmp_path, config, 5) == rules._replace(reserved_ms=5)
    by_hand = rules_by_hand(config)
    assert by_hand.due(7, 9) == 72 * HOUR_MS + 7
    assert by_hand.due(7, 80 * HOUR_MS) == 80 * HOUR_MS


@pytest.fixture
def root(tmp_path):
    """Twenty messages in several log files of 4 KiB."""
    (tmp_path / "s").mkdir()
    with open_store(tmp_path / "s") as store:
        for number in range(20):
            store.put_message(Sample(f"m{number}", "T", 0, 800).inner())
    return tmp_path / "s"


def files_of(root, rules, now_ms):
    with StoreView.open(root, TINY) as view:
        return log_files(root, TINY, rules, view.log_max_offset(), now_ms)


@pytest.mark.feature(52)
def test_no_file_goes_before_an_older_one_and_the_last_one_stays(root):
    now = local(2026, 3, 10, 12)
    names = sorted((root / "commitlog").iterdir())
    days = [9, 6, 8]  # when each was written last: the second one must wait for the first
    for path, day in zip(names, days, strict=False):
        written = local(2026, 3, day) / 1000
        os.utime(path, (written, written))
    files = files_of(root, NIGHT._replace(any_hour=True), now)
    assert [file.first for file in files] == [int(Path(p).name) for p in names]
    assert files[-1].due_timestamp is None
    assert [file.due_timestamp for file in files[:3]] == [local(2026, 3, 12)] * 3
    assert LogFilesDue(files).of(files[1].first + 7) == local(2026, 3, 12)
    assert LogFilesDue(files).of(files[-1].first + 7) is None


def test_the_file_that_is_written_to_stays_if_one_is_made_ahead_of_it(root):
    """A broker makes the next file before it needs it, so the last file may hold nothing yet."""
    before = files_of(root, NIGHT, local(2036, 1, 1))
    ahead = before[-1].first + 4096
    (root / f"commitlog/{ahead:020d}").write_bytes(bytes(4096))
    for path in (root / "commitlog").iterdir():
        os.utime(path, (1, 1))
    rules = NIGHT._replace(any_hour=True, at_once=True)
    files = files_of(root, rules, local(2036, 1, 1))
    assert files == [
        *(file._replace(due_timestamp=local(2036, 1, 1)) for file in before[:-1]),
        LogFile(before[-1].first, None),
        LogFile(ahead, None),
    ]


@pytest.mark.parametrize(
    ("blocks", "free", "usable", "ratio"),
    [
        (100, 50, 50, 0.5),
        (100, 50, 30, 0.63),
        (1000, 999, 999, 0.01),
        (100, 0, 0, 1.0),
        (0, 0, 0, 0),
    ],
)
def test_a_disk_is_as_full_as_rocketmq_says(tmp_path, monkeypatch, blocks, free, usable, ratio):
    """What is reserved for root is neither used nor free; a part of a per cent is a whole one."""
    space = SimpleNamespace(f_blocks=blocks, f_bfree=free, f_bavail=usable)
    monkeypatch.setattr("os.statvfs", lambda _: space)
    assert used_ratio(tmp_path) == ratio


def test_what_is_due_now_may_be_deleted_at_this_very_moment():
    files = [LogFile(0, 100), LogFile(4096, 200), LogFile(8192, None)]
    assert [len(due_now(files, now)) for now in (99, 100, 199, 200, 10**15)] == [0, 1, 1, 2, 2]
    assert due_now(files, 150) == files[:1]


def test_a_record_stays_as_long_as_its_file():
    files = [LogFile(4096, 100), LogFile(8192, None)]
    due = LogFilesDue(files)
    assert [due.of(offset) for offset in (4095, 4096, 8191)] == [None, 100, 100]
    assert due.of(8192) is None


def test_what_is_safe_begins_with_the_first_file_that_stays():
    files = [LogFile(0, 100), LogFile(4096, 200), LogFile(8192, None)]
    assert [safe_from(files, until) for until in (99, 100, 199, 200)] == [0, 4096, 4096, 8192]
    assert LogFilesDue([]).of(5) is None


@pytest.mark.parametrize("any_hour", [False, True])
def test_what_is_due_after_the_last_year_of_calendars_is_kept_for_ever(any_hour):
    now = local(2026, 3, 10, 12)
    for_ever = NIGHT._replace(reserved_ms=2_147_483_647 * HOUR_MS, any_hour=any_hour)
    assert for_ever.due(now, now) is None
    far = NIGHT._replace(any_hour=any_hour)
    assert far.due(400_000_000_000_000, now) is None
    assert far._replace(at_once=True).due(400_000_000_000_000, now) == now
