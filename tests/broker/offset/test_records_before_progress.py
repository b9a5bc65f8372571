"""A power loss never leaves progress past a message whose retry, or next copy, it took."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from broker.api.offsets import OffsetCommit
from broker.api.send import SendOptions
from broker.api.send_back import SendBackRequest
from broker.api.transactions import EndTransactionRequest, LocalTransactionState
from broker.embedded.broker import EmbeddedBroker
from broker.offset.offset_move import move_offsets_of_store
from broker.transaction.check import TransactionCheckService
from storage.append import flush
from storage.configs.progress import ProgressFile
from storage.files.fs import FileSystem
from storage.format.message import SCHEDULE_TOPIC, TRANS_HALF_TOPIC, Message
from storage.format.message_id import parse_offset_msg_id
from storage.format.sys_flag import MessageSysFlag
from tests.support.durable_fs import DurableFileSystem
from tests.support.recording_client import RecordingClient, consumer, heartbeat
from tests.support.same_records import only
from tests.support.samples import SMALL, Ticking, new_store, open_store

PREPARED = SendOptions(sys_flag=MessageSysFlag.TRANSACTION_PREPARED_TYPE)
CHECKS = ("CID_RMQ_SYS_TRANS", TRANS_HALF_TOPIC)


@pytest.fixture
def power(tmp_path):
    """A device that can lose its power; no sync of the log by time."""
    root = new_store(tmp_path / "store", SMALL)
    syncs: list[str] = []
    fs = DurableFileSystem(root, syncs.append)
    opened = []

    def start():
        broker = EmbeddedBroker(open_store(root, SMALL, fs=fs, clock=Ticking()))
        broker.progress._file = ProgressFile(root, fs)
        opened.append(broker)
        return broker

    def lose():
        broker = EmbeddedBroker(open_store(fs.buffer(tmp_path / "after"), SMALL))
        opened.append(broker)
        return broker

    yield SimpleNamespace(start=start, lose=lose, syncs=syncs)
    for broker in opened:
        broker.close()
    fs.forget()


def sent(broker):
    broker.send(Message("T", b"body"), 0)
    broker.flush()  # the message is on the device for long
    return only(broker.view.get_message("T", 0, 0, 1).messages)


def back(message, **how):
    return SendBackRequest("g", "T", message.commitlog_offset, message.msg_id, **how)


def log_syncs(power):
    return [what for what in power.syncs if what.startswith("after sync 0000")]


@pytest.mark.parametrize("is_noted", [False, True])
def test_a_retry_is_on_the_device_before_the_progress_past_its_message(power, is_noted):
    broker = power.start()
    broker.send_message_back(back(sent(broker)))
    if is_noted:
        broker.progress.note("g", OffsetCommit("T", 0, 1))
        broker.progress.persist()
    else:
        broker.progress.commit("g", [OffsetCommit("T", 0, 1)])
    after = power.lose()
    assert after.consumer_offsets()["g", "T"] == {0: 1}
    assert after.view.max_offset_in_queue(SCHEDULE_TOPIC, 2) == 1


def test_a_dead_letter_is_on_the_device_before_the_progress_past_its_message(power):
    broker = power.start()
    broker.send_message_back(back(sent(broker), delay_level=-1))
    broker.progress.commit("g", [OffsetCommit("T", 0, 1)])
    after = power.lose()
    assert after.consumer_offsets()["g", "T"] == {0: 1}
    assert after.max_offset("%DLQ%g", 0) == 1


@pytest.mark.parametrize("is_dead", [False, True])
def test_what_another_process_sent_back_is_on_the_device_before_its_notes_count(power, is_dead):
    """Its retry is in the log, and its progress only in a file beside its entry."""
    owner, heir = power.start(), power.start()
    owner.connect("a", RecordingClient())
    owner.heartbeat(heartbeat("a", consumer("g", "T")))
    owner.send_message_back(back(sent(owner)))
    owner.progress.note("g", OffsetCommit("T", 0, 1))
    if is_dead:
        heir.progress.adopt([owner.members.notices.name])
    else:
        known = heir.progress.query("g", "T", 0)
        heir.progress.commit("g", [OffsetCommit("T", 0, known.offset)])
    after = power.lose()
    assert after.consumer_offsets()["g", "T"] == {0: 1}
    assert after.view.max_offset_in_queue(SCHEDULE_TOPIC, 2) == 1


@pytest.mark.parametrize("is_dead", [False, True])
def test_a_retry_that_is_sent_as_a_new_message_is_on_the_device_before_progress(power, is_dead):
    """An orderly consumer sends it so, and one whose broker refuses a message that comes back."""
    broker = power.start()
    sent(broker)
    broker.connect("a", RecordingClient())
    broker.heartbeat(heartbeat("a", consumer("g", "T")))
    options = SendOptions(reconsume_times=99 if is_dead else 0)
    for number in range(1, 4):  # as a producer does that keeps its options
        broker.send(Message("%RETRY%g", b"again"), 0, options)
        broker.progress.commit("g", [OffsetCommit("T", 0, number)])
    after = power.lose()
    assert after.consumer_offsets()["g", "T"] == {0: 3}
    assert after.max_offset("%DLQ%g" if is_dead else "%RETRY%g", 0) == 3


def test_a_move_of_other_progress_takes_over_notes_after_the_log_is_synced(power):
    owner, other = power.start(), power.start()
    owner.connect("a", RecordingClient())
    owner.heartbeat(heartbeat("a", consumer("g", "T")))
    owner.send_message_back(back(sent(owner)))
    owner.progress.note("g", OffsetCommit("T", 0, 1))
    other.progress.move("h", {("T", 0): 0})
    after = power.lose()
    assert after.consumer_offsets()["g", "T"] == {0: 1}
    assert after.view.max_offset_in_queue(SCHEDULE_TOPIC, 2) == 1


def test_a_command_that_moves_progress_syncs_the_end_of_the_log_by_name(power, monkeypatch):
    owner = power.start()
    owner.connect("a", RecordingClient())
    owner.heartbeat(heartbeat("a", consumer("g", "T")))
    owner.send_message_back(back(sent(owner)))
    owner.progress.note("g", OffsetCommit("T", 0, 1))
    root = owner.view.root
    synced = []

    class Seen(FileSystem):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            synced.append(Path(f"/proc/self/fd/{fd}").readlink())

        def sync_dir(self, path: Path) -> None:
            super().sync_dir(path)
            synced.append(path)

    monkeypatch.setattr(flush, "FileSystem", Seen)
    move_offsets_of_store(root, {("T@h", 0): 0}, {"command": "test"}, lambda: 5)
    log = root / "commitlog"
    assert synced == [*sorted(log.iterdir()), log]
    assert owner.consumer_offsets()["g", "T"] == {0: 1}


def test_commits_without_a_retry_sync_no_log(power):
    broker = power.start()
    message = sent(broker)
    broker.send_message_back(back(message))
    broker.progress.commit("g", [OffsetCommit("T", 0, 1)])
    before = len(log_syncs(power))
    broker.send(Message("T", b"another"), 0)
    broker.progress.commit("g", [OffsetCommit("T", 0, 2)])
    broker.send_message_back(back(message))
    broker.flush()
    flushed = len(log_syncs(power))
    broker.progress.commit("g", [OffsetCommit("T", 0, 3)])  # the flush has synced the retry
    assert before > 0
    assert len(log_syncs(power)) == flushed


def prepared_half(broker):
    message = Message("T", b"half", properties={"TRAN_MSG": "true", "PGROUP": "p"})
    result = broker.send(message, 1, PREPARED)
    broker.flush()
    return result


def checks_of(broker, now):
    store = broker.store
    return TransactionCheckService(
        broker.config,
        broker._topics,
        broker.progress,
        view=lambda: store.view,
        put=store.put,
        ask=lambda question: True,
        now=now,
        file_reserved_ms=72 * 3_600_000,
    )


def test_a_copy_of_a_half_message_is_on_the_device_before_the_position_past_it(power):
    broker = power.start()
    prepared_half(broker)
    checks_of(broker, lambda: broker.store.now() + 60_000).check()
    after = power.lose()
    assert after.consumer_offsets()[CHECKS] == {0: 1}
    assert after.view.max_offset_in_queue(TRANS_HALF_TOPIC, 0) == 2


def test_a_committed_message_is_on_the_device_before_the_position_past_its_half(power):
    broker = power.start()
    half = prepared_half(broker)
    _, place = parse_offset_msg_id(half.offset_msg_id)
    broker.end_transaction(
        EndTransactionRequest(
            "p",
            half.queue_offset,
            place,
            LocalTransactionState.COMMIT_MESSAGE,
            msg_id=half.msg_id,
        )
    )
    checks_of(broker, lambda: broker.store.now() + 60_000).check()
    after = power.lose()
    assert after.consumer_offsets()[CHECKS] == {0: 1}
    assert after.max_offset("T", 1) == 1
