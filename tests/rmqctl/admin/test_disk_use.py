"""Bytes on the disk by topic and kind, as du counts them, and what decides about deletions."""

import os
import subprocess

import pytest

from broker.api.offsets import OffsetCommit
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import store as admin, topics as topics_admin
from rmqctl.admin.changes import journal_note
from rmqctl.admin.store.disk_files import DiskKind
from rmqctl.admin.store.disk_usage import KnownFigures
from rmqctl.console.health import deletion_line
from storage.clock import now_ms as clock_ms
from storage.configs.store_settings import StoreSettings, write_store_settings
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from storage.parse.durations import format_size
from storage.retention import due_now, log_files, rules_by_hand, used_ratio
from storage.store import MessageStore
from tests.support import golden
from tests.support.samples import SMALL
from tests.support.users import User, as_user, needs_root, shared_folder

NOTE = journal_note("test", reason="to see")
HOUR_MS = 3_600_000
NOW = 1_767_225_600_000


def du(root):
    """What the real du says."""
    done = subprocess.run(
        ["du", "-s", "--block-size=1", str(root)], capture_output=True, text=True, check=True
    )
    return int(done.stdout.split()[0])


def kinds(view, broker):
    return {row.kind: row.disk_bytes for row in admin.disk_use(view, broker).by_kind()}


def check_sums(view, broker):
    """Both tables add up to what du says, and to the log."""
    use = admin.disk_use(view, broker)
    rows, parts = list(use.by_topic()), list(use.by_kind())
    assert sum(row.disk_bytes or 0 for row in rows) == du(view.root)
    assert sum(part.disk_bytes for part in parts) == du(view.root)
    assert use.files.total == du(view.root)
    assert sum(row.bytes or 0 for row in rows) == view.log_max_offset() - view.log_min_offset()
    assert sum(part.share or 0 for part in parts) == pytest.approx(1)
    return rows


@pytest.fixture
def full(tmp_path):
    """Two topics over some log files of 64 KiB."""
    root = tmp_path / "s"
    MessageStore.create(root, SMALL)
    with EmbeddedBroker.open(root) as broker:
        for topic in ("big", "small"):
            broker.update_topic(TopicConfig(topic, 2, 2))
        for n in range(100):
            broker.send(Message("big", bytes(4000), keys=f"k{n}"), n % 2)
            if n % 10 == 0:
                broker.send(Message("small", b"x"), 0)
    return root


def test_the_sum_is_what_du_says(full, ask):
    rows = check_sums(*ask(full))
    topics = {row.topic: row for row in rows if row.kind is DiskKind.TOPIC}
    assert set(topics) == {"big", "small"}
    for topic, row in topics.items():
        assert row.disk_bytes == row.bytes + 20 * row.messages, topic


def test_reserved_blocks_are_apart(full, ask):
    view, broker = ask(full)
    found = kinds(view, broker)
    logs = sum(path.stat().st_blocks * 512 for path in (full / "commitlog").iterdir())
    written = view.log_max_offset() - view.log_min_offset()
    assert found[DiskKind.RESERVED_LOG] == logs - written > 0
    assert found[DiskKind.MESSAGES] + found[DiskKind.DELETED] == written
    queues = sum(path.stat().st_blocks * 512 for path in full.glob("consumequeue/*/*/*"))
    assert found[DiskKind.QUEUE] == 20 * 110
    assert found[DiskKind.QUEUE] + found[DiskKind.RESERVED_QUEUE] == queues
    index = sum(path.stat().st_blocks * 512 for path in (full / "index").iterdir())
    assert found[DiskKind.INDEX] + found[DiskKind.RESERVED_INDEX] == index
    assert found[DiskKind.INDEX] >= 40 + 4 * 40 + 20 * 100


@pytest.mark.slow
def test_the_messages_of_a_deleted_topic_are_kept_on_the_disk(full, ask):
    before = kinds(*ask(full))
    big = next(row.bytes for row in check_sums(*ask(full)) if row.topic == "big")
    view, _ = ask(full)
    list(topics_admin.delete(view, "big").apply(NOTE).rows)
    after = kinds(*ask(full))
    check_sums(*ask(full))
    assert after[DiskKind.DELETED] - before[DiskKind.DELETED] == big
    assert before[DiskKind.MESSAGES] - after[DiskKind.MESSAGES] == big


def test_settings_own_files_and_unknown_ones_have_their_kinds(full, ask):
    before = kinds(*ask(full))
    for name in ("config/x.json", "rmqctl/quarantine/y", "core", "commitlog/note"):
        (full / name).parent.mkdir(exist_ok=True)
        (full / name).write_bytes(b"z" * 10_000)
    after = kinds(*ask(full))
    check_sums(*ask(full))
    grown = {kind for kind in after if after[kind] > before[kind]} - {DiskKind.FOLDERS}
    assert grown == {DiskKind.CONFIG, DiskKind.OWN, DiskKind.OTHER}  # tmpfs has folders of 0 bytes


def test_a_file_with_two_names_counts_once_and_links_are_not_followed(full, ask, tmp_path):
    (log, *_) = sorted((full / "commitlog").iterdir())
    os.link(log, full / "commitlog" / "copy")
    os.link(log, tmp_path / "elsewhere")
    (full / "rmqctl" / "loop").symlink_to(full)
    check_sums(*ask(full))


def test_a_log_with_holes_still_adds_up(full, ask):
    (log, *_) = sorted((full / "commitlog").iterdir())
    whole = log.read_bytes()
    log.unlink()
    with log.open("wb") as file:  # the bodies are zeros: a copy may have holes in their place
        file.write(whole[:200])
        file.seek(len(whole) - 8192)
        file.write(whole[-8192:])
    found = kinds(*ask(full))
    assert found[DiskKind.HOLES] < 0
    check_sums(*ask(full))


def test_a_topic_with_a_damaged_queue_is_unknown_but_the_sum_is_not(full, ask):
    for path in (full / "consumequeue" / "big" / "0").iterdir():
        data = bytearray(path.read_bytes())
        data[3 * 20 + 8 : 3 * 20 + 12] = bytes(4)  # a unit of size 0
        path.write_bytes(bytes(data))
    view, broker = ask(full)
    use = admin.disk_use(view, broker)
    rows = list(use.by_topic())
    if all(row.bytes is not None for row in rows):
        pytest.fail("the damage is not seen")
    assert next(row for row in rows if row.topic == "big").disk_bytes is None
    assert DiskKind.UNKNOWN in {row.kind for row in rows}
    assert sum(row.disk_bytes or 0 for row in rows) == du(full)


class Ended(Exception):
    """The reading is not wanted any more."""


def test_the_reading_of_topics_says_how_far_it_is_and_can_be_ended(full):
    come: list[tuple[int, int]] = []
    known: KnownFigures = {}

    def advance(done, total):
        come.append((done, total))
        if done == 1:
            raise Ended

    with EmbeddedBroker.open(full, read_only=True) as reader:
        view = reader.view
        topics = len({topic for topic, _ in view.queues()})
        use = admin.disk_use(view, reader, now_ms=NOW, known=known, on_progress=advance)
        with pytest.raises(Ended):
            list(use.by_topic())
        assert come == [(0, topics), (1, topics)]
        assert len(known) == 1
        before = dict(known)
        again = admin.disk_use(view, reader, now_ms=NOW, known=known)
        assert list(again.by_topic()) == list(admin.disk_use(view, reader, now_ms=NOW).by_topic())
        assert all(known[topic] is figures for topic, figures in before.items())


def test_what_is_known_of_topics_holds_until_their_queues_are_others(full):
    known: KnownFigures = {}
    with EmbeddedBroker.open(full, read_only=True) as reader:
        view = reader.view

        def check():
            use = admin.disk_use(view, reader, now_ms=NOW, known=known)
            plain = admin.disk_use(view, reader, now_ms=NOW)
            assert list(use.by_topic()) == list(plain.by_topic())

        check()
        before = dict(known)
        check()
        assert all(known[topic] is figures for topic, figures in before.items())
        with EmbeddedBroker.open(full) as writer:
            writer.send(Message("small", b"one more"), 1)
        check()
        assert known["big"] is before["big"]
        assert known["small"] is not before["small"]
        with EmbeddedBroker.open(full) as writer:
            writer.update_consumer_offsets("readers", [OffsetCommit("big", 0, 3)])
        check()
        for path in sorted((full / "commitlog").iterdir())[:2]:  # they are deleted next
            os.utime(path, (0, NOW / 1000 - 100 * 3600))
        check()
        assert known["big"] is not before["big"]
        list(topics_admin.delete(view, "small").apply(NOTE).rows)
        check()
        assert "small" not in known


def totals_of(root):
    with EmbeddedBroker.open(root, read_only=True) as broker:
        files = admin.disk_use(broker.view, broker).files
        return files.total, [str(path.relative_to(root)) for path in files.unreadable]


@needs_root
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_cannot_be_read_is_named(mode):
    with shared_folder() as shared:
        root = shared / "s"
        MessageStore.create(root, SMALL)
        with EmbeddedBroker.open(root) as broker:
            broker.update_topic(TopicConfig("t", 1, 1))
            broker.send(Message("t", b"x"), 0)
        (root / "rmqctl" / "private").mkdir()
        (root / "rmqctl" / "private" / "file").write_bytes(bytes(10_000))
        for path in (root, *root.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (root / "rmqctl" / "private").chmod(mode)
        whole, none = totals_of(root)
        assert (whole, none) == (du(root), [])
        total, unreadable = as_user(User(1005, 1005), totals_of, root)
        assert unreadable == ["rmqctl/private"]
        assert whole - total == (root / "rmqctl/private/file").stat().st_blocks * 512


@pytest.mark.parametrize("name", ["basic-4.9", "retention-4.9", "lmq-4.9", "cqext-4.9", "hole-4.9"])
def test_the_disks_of_brokers_add_up(name, ask):
    view, broker = ask(golden.store(name))
    use = admin.disk_use(view, broker)
    assert sum(row.disk_bytes or 0 for row in use.by_topic()) == du(view.root)
    assert sum(row.disk_bytes for row in use.by_kind()) == du(view.root)


@pytest.mark.parametrize("stored", [True, False])
def test_a_full_disk_has_the_rate_of_the_last_day_and_no_forecast(store, ask, monkeypatch, stored):
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("t", 1, 1))
        broker.send(Message("t", bytes(1000)), 0)
    view, broker = ask(store)
    space = os.statvfs(store)
    full = os.statvfs_result((*space[:3], 0, 0, *space[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    now = clock_ms() + (0 if stored else 2 * 24 * HOUR_MS)
    said = list(admin.disk_use(view, broker, now_ms=now).sentences())[-1]
    rate = f"{format_size(view.log_max_offset())} stored in the last day"
    assert said == (
        f"the disk is 100 % full; {rate if stored else 'no message was stored within the last day'}"
    )


# -- what decides about deletions -----------------------------------------------------------------


@pytest.fixture
def aged(full):
    """Log files that were last written 50, 40, ... hours ago."""
    logs = sorted((full / "commitlog").iterdir())
    assert len(logs) == 7
    for path, hours in zip(logs, (60, 50, 30, 13, 5, 1, 0), strict=True):
        os.utime(path, (0, (NOW - hours * HOUR_MS) / 1000))
    return full


def freed_under(view, rules):
    files = due_now(log_files(view.root, view.config, rules, view.log_max_offset(), NOW), NOW)
    paths = [view.root / "commitlog" / f"{file.first:020d}" for file in files]
    return len(files), sum(path.stat().st_blocks * 512 for path in paths)


def test_each_lever_is_what_the_rule_would_free(aged, ask):
    view, broker = ask(aged)
    found = admin.levers(view, now_ms=NOW)
    assert found.all.files == 7
    assert found.expired == (0, 0)
    assert found.oldest_age_ms == 60 * HOUR_MS
    assert [lever.older_than_ms // HOUR_MS for lever in found.ages] == [48, 24, 12]
    for lever in found.ages:
        rules = rules_by_hand(view.config)._replace(reserved_ms=lever.older_than_ms)
        assert lever.freed == freed_under(view, rules)
        assert admin.clean(view, broker, older_than_ms=lever.older_than_ms, now_ms=NOW).plan[
            lever.freed.files - 1 :
        ]
    assert [lever.freed.files for lever in found.ages] == [2, 3, 4]
    assert found.delete_when == "04"
    assert found.used_percent == pytest.approx(100 * used_ratio(aged))
    assert found.any_hour_percent == 75
    assert found.forced_percent is None  # rmqctl refuses messages on a full disk, by default


BY_HAND = "deleteWhen names no hour: files are deleted by 'rmqctl store clean', or on a full disk"


@pytest.mark.parametrize(
    ("settings", "said", "line"),
    [
        (
            {"delete_when": ""},
            BY_HAND,
            "deleteWhen names no hour   expired now: 1 file, ",
        ),
        (
            {"delete_when": " ; "},
            BY_HAND,
            "deleteWhen names no hour   expired now: 1 file, ",
        ),
        (
            {"file_reserved_time_hours": 80_000_000},
            "no log file gets as old as fileReservedTime (80000000 h): "
            "'rmqctl store clean --older-than AGE' deletes files",
            "no log file gets as old as fileReservedTime   expired now: 0 files, ",
        ),
    ],
    ids=["no hour", "separators alone", "no age"],
)
def test_why_no_run_deletes_a_file_is_said(aged, ask, settings, said, line):
    write_store_settings(aged, StoreSettings({"disk_max_used_space_ratio": 100, **settings}, {}))
    os.utime(min((aged / "commitlog").iterdir()), (0, (NOW - 80 * HOUR_MS) / 1000))
    view, broker = ask(aged)
    sentences = list(admin.disk_use(view, broker, now_ms=NOW).sentences())
    assert said in sentences
    by_hand = "'rmqctl store clean' would delete 1 now"
    assert (by_hand in sentences) is ("delete_when" in settings)
    assert not any("only its newest file" in sentence for sentence in sentences)
    levers = admin.levers(view, now_ms=NOW)
    shown = "".join(span.text for span in deletion_line(None, levers, NOW))
    assert line in shown
    assert "nothing will be deleted" not in shown
    if "delete_when" in settings:
        assert any("deleteWhen names no hour" in sentence for sentence in levers.sentences(NOW))


def test_what_a_full_disk_forces_is_counted_where_it_is_enabled(aged, ask):
    write_store_settings(aged, StoreSettings({"clean_file_forcibly_enable": True}, {}))
    view, _ = ask(aged)
    found = admin.levers(view, now_ms=NOW)
    assert found.forced_percent == pytest.approx(85)
    assert found.forced.files == 6
    text = "\n".join(found.sentences(NOW))
    assert "above 85 % (diskSpaceCleanForciblyRatio) files of any age are deleted" in text
    assert "which would free 6 files, " in text


def test_a_plan_without_files_says_what_decides(aged, ask):
    change = admin.clean(*ask(aged), now_ms=NOW)
    assert change.plan == []
    text = "\n".join(change.summary)
    assert "fileReservedTime is 72 h; the oldest of 7 log files was last written 2d12h ago" in text
    assert "'rmqctl store clean --older-than 24h' would free 3 files, " in text
    assert "the clean hour is 04 (deleteWhen), which would free nothing now" in text
    assert "% full; above 75 % (diskMaxUsedSpaceRatio) expired files are deleted" in text


def test_a_shorter_age_deletes_what_it_said_once_the_name_is_confirmed(aged, ask):
    change = admin.clean(*ask(aged), older_than_ms=24 * HOUR_MS, now_ms=NOW)
    assert change.confirm_name == "s"
    assert len(change.plan) == 3
    for path in (aged / "commitlog").iterdir():  # the writer has its own clock
        os.utime(path)
    for row in change.plan:
        os.utime(aged / row.file, (1, 1))
    rows = list(change.apply(NOTE).rows)
    assert [row.file for row in rows if row.kind == "log"] == [row.file for row in change.plan]
    assert len(list((aged / "commitlog").iterdir())) == 4
    longer = admin.clean(*ask(aged), older_than_ms=100 * HOUR_MS, now_ms=NOW)
    assert longer.confirm_name is None


def test_a_log_of_one_file_has_no_lever(store, ask):
    view, broker = ask(store)
    assert admin.levers(view).oldest_age_ms is None
    (text,) = admin.clean(view, broker).summary
    assert "newest file, which always stays" in text
