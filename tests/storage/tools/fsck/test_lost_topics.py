"""topics.json is gone, or has fewer queues than there are."""

from __future__ import annotations

import json
import shutil

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Severity, fsck
from tests.support.cli import run
from tests.support.rich_store import SIZES
from tests.support.samples import Sample, new_store, open_store, prepared


@pytest.fixture
def root(tmp_path):
    """A store with 40 messages in the 8 queues of T."""
    root = tmp_path / "s"
    MessageStore.create(root, SIZES)
    assert run("topic", "create", "T", "--queues", 8, "-S", root).code == 0
    assert run("produce", "T", "-c", 40, "--template", "%i", "-S", root).code == 0
    return root


def lose(root):
    for name in ("topics.json", "topics.json.bak"):
        (root / "config" / name).unlink(missing_ok=True)


def findings(root):
    with StoreView.open(root) as view:
        return fsck(view).findings


def test_a_lost_topics_file_is_found_and_recovered(root):
    lose(root)
    (finding,) = findings(root)
    assert (finding.code, finding.severity) == ("CONFIG_MISSING", Severity.WARNING)
    assert finding.file == "config/topics.json"
    assert finding.fix == "rmqctl store recover-config"
    assert run("store", "recover-config", "--execute", "--yes", "-S", root).code == 0
    assert findings(root) == []
    with StoreView.open(root) as view:
        assert view.topics()["T"].read_queue_nums == 8


def test_a_broker_that_knows_groups_had_topics_too(root):
    assert run("group", "create", "g", "-S", root).code == 0
    lose(root)
    shutil.rmtree(root / "rmqctl" / "journal")
    assert [finding.code for finding in findings(root)] == ["CONFIG_MISSING"]


def test_repair_puts_a_lost_topics_file_together_again(root):
    lose(root)
    (row,) = run("store", "repair", "-o", "json", "-S", root).json()
    assert (row["action"], row["file"]) == ("RESTORE", "config/topics.json")
    assert run("store", "repair", "--execute", "--yes", "-S", root).code == 0
    assert findings(root) == []


def test_queues_that_no_group_reads_are_found_and_the_remedy_works(root):
    lose(root)
    assert run("topic", "create", "T", "--queues", 4, "-S", root).code == 0
    (finding,) = findings(root)
    assert (finding.code, finding.severity) == ("QUEUE_NOT_READ", Severity.INFO)
    assert finding.file == "consumequeue/T"
    assert "20 messages in queues 4 to 7" in finding.what
    program, *words = finding.fix.split()
    assert program == "rmqctl"
    assert run(*words, "--yes", "-S", root).code == 0
    assert findings(root) == []


def test_a_store_that_no_broker_has_used_needs_no_topics_file(tmp_path):
    root = new_store(tmp_path / "s")
    with open_store(root) as store:
        store.put(prepared((Sample("m", "T"),)))
    assert findings(root) == []


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "%LMQ%l"])
def test_topics_of_the_system_alone_need_no_topics_file(root, tmp_path, topic):
    new = new_store(tmp_path / "new")
    with open_store(new) as store:
        store.put(prepared((Sample("m", topic),)))
    (root / "rmqctl" / "journal").rename(new / "rmqctl" / "journal")
    assert findings(new) == []


@pytest.mark.parametrize("queue_id", [0, 99])
def test_progress_below_zero_is_none(root, queue_id):
    text = json.dumps({"offsetTable": {"T@g": {str(queue_id): -1}}})
    (root / "config" / "consumerOffset.json").write_text(text)
    assert findings(root) == []
