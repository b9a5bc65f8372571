"""A real broker that starts beside our writers fails, and nothing of ours is lost by its attempt.

Its store has loaded and recovered the folder, as after a crash, before it comes to the lock.
"""

import json
from pathlib import Path

import pytest

from storage.errors import StoreInUseError
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Severity, fsck
from tests.interop import answers
from tests.interop.broker_process import started_broker
from tests.interop.our_producer import body_of, group_of, key_of, producing
from tests.interop.samples import SMALL_FILES, our_config, samples
from tests.interop.store_probe import Settings, StoreProbe
from tests.support.cli import run
from tests.support.java import Release

pytestmark = pytest.mark.interop

_TINY_FILES: Settings = {**SMALL_FILES, "maxHashSlotNum": 500, "maxIndexNum": 20_000}
_USUAL_FILES: Settings = {
    "mappedFileSizeCommitLog": 1 << 26,
    "mappedFileSizeConsumeQueue": 600_000,
    "maxHashSlotNum": 50_000,
    "maxIndexNum": 200_000,
}


@pytest.mark.parametrize(
    ("settings", "attempts"),
    [
        pytest.param(_TINY_FILES, 1, id="tiny"),
        pytest.param(_USUAL_FILES, 1, id="usual", marks=pytest.mark.long),
        pytest.param(_TINY_FILES, 4, id="tiny-4", marks=pytest.mark.long),
        pytest.param(_USUAL_FILES, 4, id="usual-4", marks=pytest.mark.long),
    ],
)
def test_a_broker_beside_two_producers_fails_and_nothing_of_ours_is_lost(
    settings: Settings, attempts: int, java49: Release, probe49: StoreProbe, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    MessageStore.create(root, our_config(settings))
    with producing(root, "one") as one, producing(root, "two") as two:
        for producer in (one, two):
            producer.wait_for(300)
        for _ in range(attempts):
            files = len(list((root / "commitlog").iterdir()))
            before = [one.acknowledged, two.acknowledged]
            with started_broker(java49, root, tmp_path, settings) as broker:
                assert not broker.booted
                assert broker.code == 255
                assert "Lock failed" in broker.logged
            for producer, acknowledged in zip((one, two), before, strict=True):
                producer.wait_for(acknowledged + 300)
            if settings is _TINY_FILES:
                assert len(list((root / "commitlog").iterdir())) > files
        counts = {producer.name: producer.stop() for producer in (one, two)}
    assert not (root / "abort").exists()

    _all_there(root, counts)
    offsets = json.loads(run("-S", root, "offset", "list", "-o", "json").out)
    kept = {row["group"]: row["committed_offset"] for row in offsets if row["queue_id"] == 0}
    assert kept == {group_of(name): count for name, count in counts.items()}
    config = (root / "config" / "consumerOffset.json").read_text()
    for name, count in counts.items():
        assert f'"{name}@{group_of(name)}":{{0:{count}\n' in config

    with probe49.opened(root, settings) as java:
        with StoreView.open(root) as view:
            answers.same_as(answers.dump(view), java.dump())
            keys = answers.key_questions(answers.dump(view), most=200)
            assert answers.query_by_key(view, keys) == java.query_by_key(keys)
        java.kill()


def test_beside_java_we_do_not_write_and_read_what_it_appends(
    probe49: StoreProbe, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    MessageStore.create(root, our_config(SMALL_FILES))
    sent = run("-S", root, "produce", "T", stdin=b"one\ntwo\nthree\n")
    assert sent.code == 0, sent.err
    with probe49.opened(root, SMALL_FILES) as java:
        java.append([sample.java_message() for sample in samples(60)])
        before = _contents(root)
        with pytest.raises(StoreInUseError, match=f"pid {java.pid}"):
            MessageStore.open(root)
        refused = run("-S", root, "produce", "T", stdin=b"four\n")
        assert refused.code == 5
        assert refused.err.count("\n") == 1
        assert "Java broker" in refused.err
        read = run("-S", root, "consume", "T", "-e")
        assert sorted(read.lines) == ["one", "three", "two"]
        assert _contents(root) == before

        with StoreView.open(root) as view:
            answers.same_as(answers.dump(view), java.dump())
            java.append([sample.java_message() for sample in samples(120, first=60)])
            dump = java.dump()
            assert len(dump["messages"]) == 183
            answers.same_as(answers.dump(view), dump)
            keys = answers.key_questions(dump, most=100)
            assert answers.query_by_key(view, keys) == java.query_by_key(keys)
    sent = run("-S", root, "produce", "T", stdin=b"four\n")
    assert sent.code == 0, sent.err


def _all_there(root: Path, counts: dict[str, int]) -> None:
    """Check that all messages of the producers are there once, found by key once, and well."""
    with StoreView.open(root) as view:
        for name, count in counts.items():
            found = [
                message
                for topic, queue_id in view.queues()
                if topic == name
                for message in answers.read_queue(view, topic, queue_id)
            ]
            bodies = sorted(message.body for message in found)
            assert bodies == sorted(body_of(name, number) for number in range(count))
            for number in range(0, count, 7):
                hits = view.query_message(name, key_of(name, number)).messages
                assert [key_of(name, number) in hit.keys for hit in hits].count(True) == 1
        findings = fsck(view).findings
    assert [finding for finding in findings if finding.severity is not Severity.INFO] == []


def _contents(root: Path) -> dict[Path, bytes]:
    """Give the bytes of all files but the one that a running store writes by itself."""
    return {
        path: path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != "checkpoint"
    }
