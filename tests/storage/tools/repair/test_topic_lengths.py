"""A topic that is too long or too short shifts the properties: one record, two findings, one step.

No checksum covers either length. The unit names the topic, so the head is mended from it; the
properties are right again by that and need no step of their own.
"""

import json
import shutil

import pytest

from storage.format.names import ABORT
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from storage.tools.repair.plan import make_plan
from storage.tools.repair.steps import Action
from tests.support.cli import run
from tests.support.examples import one_in
from tests.support.mended import held, repair, wrong
from tests.support.record_damages import record_places

_MESSAGES = 6


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "s"
    assert run("store", "init", root, "--small").code == 0
    lines = "".join(
        json.dumps({"body": f"body {n}", "keys": f"k{n}", "tags": "tag"}) + "\n"
        for n in range(_MESSAGES)
    )
    words = ("produce", "orders", "-S", root, "--queue", 0, "--input", "jsonl")
    sent = run(*words, stdin=lines.encode())
    assert sent.code == 0, sent.err
    return root


def shift_topic(root, number, by, into_properties=b""):
    """Make the topic of a record longer by ``by`` at the cost of its properties."""
    [log] = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    at, size = record_places(log)[number]
    topic_at = data.index(b"orders", at)
    end = topic_at + len(b"orders") + by
    data[topic_at - 1] += by
    data[end : end + 2] = (at + size - end - 2).to_bytes(2, "big")
    if into_properties:
        data[end + 4 : end + 4 + len(into_properties)] = into_properties
    log.write_bytes(data)


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("by", one_in(2, [-2, -1, 1, 12, 40]))
@pytest.mark.parametrize("number", [0, _MESSAGES - 1])
def test_one_step_writes_a_record_and_the_others_are_as_they_were(root, number, by, killed):
    before = held(root)
    assert len(before) == _MESSAGES
    if killed:
        (root / ABORT).touch()
    shift_topic(root, number, by)
    [record] = [step for step in planned(root) if step.action in (Action.MEND, Action.REPLACE)]
    # A length in the middle of the properties holds a zero: they may be cut off.
    assert record.action is (Action.REPLACE if by > 1 else Action.MEND)
    names = [step.file for step in planned(root) if step.action is Action.REBUILD_QUEUE]
    assert set(names) <= {"consumequeue/orders/0"}
    repair(root)
    assert wrong(root) == []
    lost = {("orders", 0, number)} if by > 1 else set()
    after = held(root)
    bodies = {key: message.body for key, message in before.items() if key not in lost}
    assert {key: message.body for key, message in after.items()} == bodies
    whole = [key for key in bodies if key[2] != number]
    assert [after[key] for key in whole] == [before[key] for key in whole]


def test_properties_that_are_no_text_in_a_mended_record_are_replaced_in_the_same_step(root):
    shift_topic(root, 1, -2, b"\xff\xfe")
    [record] = [step for step in planned(root) if step.action is Action.MEND]
    assert record.cost == "these properties of the message are lost"
    assert any(step.action is Action.REBUILD_INDEX for step in planned(root))
    repair(root)
    assert wrong(root) == []
    assert b"??" in held(root)["orders", 0, 1].properties


def test_a_topic_that_no_folder_can_have_is_no_queue_to_rebuild(root):
    """No unit leads to this record, and its properties are no text: only these are replaced."""
    [log] = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    at, size = record_places(log)[-1]
    topic_at = data.index(b"orders", at)
    data[topic_at + 2] = 0
    data[at + size - 1] = 0xFF
    log.write_bytes(data)
    shutil.rmtree(root / "consumequeue" / "orders")
    names = [step.file for step in planned(root) if step.action is Action.REBUILD_QUEUE]
    assert "\0" not in "".join(names)
    repair(root)


def planned(root):
    with StoreView.open(root) as view:
        return make_plan(view, fsck(view), 0).steps
