"""A record and a unit contradict each other: one repair finds out which is right."""

from storage.format.names import COMMITLOG, CONSUMEQUEUE
from storage.tools.repair.steps import Action
from tests.support.hand_made import TINY, HandMade
from tests.support.mended import held, repair, wrong

CONFIG = TINY.with_(mapped_file_size_commit_log=2048)
QUEUE_ID = 12


def _store(tmp_path, count=40):
    """Two queues in turn, in several log files; the first one ends with queue 0."""
    made = HandMade(CONFIG)
    made.put("Other", 0, b"body 00", keys=["key-00"])
    for number in range(count):
        made.put("T", number % 2, b"body %d" % number, keys=[f"key-{number}"])
    return made, made.write(tmp_path / "s")


def _patch(root, place, data):
    size = CONFIG.mapped_file_size_commit_log
    with sorted((root / COMMITLOG).iterdir())[place // size].open("r+b") as file:
        file.seek(place % size)
        file.write(data)


def _newest_of(made, file):
    size = CONFIG.mapped_file_size_commit_log
    return [m for m in made.messages if m.commitlog_offset // size == file][-1]


def test_a_record_that_fits_in_its_file_is_wrong_if_another_file_has_the_right_one(tmp_path):
    """It says that it is what follows in the other queue, whose record begins the next file."""
    made, root = _store(tmp_path)
    everything = held(root)
    last = _newest_of(made, 0)
    assert (last.topic, last.queue_id) == ("T", 0)
    _patch(root, last.commitlog_offset + QUEUE_ID, (1).to_bytes(4, "big"))
    assert [str(finding.code) for finding in wrong(root)] == ["RECORD_MISPLACED"]
    plan = repair(root)
    assert [step.action for step in plan.steps] == [Action.MEND]
    assert wrong(root) == []
    assert held(root) == everything


def test_units_in_the_folder_of_another_queue_are_wrong(tmp_path):
    _, root = _store(tmp_path)
    everything = held(root)
    topic = root / CONSUMEQUEUE / "T"
    (topic / "1").rename(topic / "5")
    repair(root)
    assert wrong(root) == []
    assert held(root) == everything


def test_keys_of_a_lost_end_of_which_no_unit_tells_are_dropped(tmp_path):
    made, root = _store(tmp_path)
    lost = made.messages[-2:]
    _patch(root, lost[0].commitlog_offset, bytes(sum(message.size for message in lost)))
    for path in (root / CONSUMEQUEUE / "T").glob("*/*"):
        path.unlink()
    (root / "abort").touch()
    plan = repair(root)
    (index,) = (step for step in plan.steps if step.action is Action.REBUILD_INDEX)
    assert (index.why, index.lost) == ("LOG_TAIL_LOST", None)
    assert index.cost
    assert wrong(root) == []
    assert len(held(root)) == len(made.messages) - 2


def test_a_whole_record_of_which_nothing_tells_where_it_belongs_is_left_alone(tmp_path):
    """Two damages: its queue id is another one, and the unit that had the right one is lost.

    It claims the place of another record, which has it: zeros in its stead would help no reader.
    """
    made, root = _store(tmp_path)
    everything = held(root)
    last = _newest_of(made, 0)
    _patch(root, last.commitlog_offset + QUEUE_ID, (1).to_bytes(4, "big"))
    size = CONFIG.mapped_file_size_consume_queue
    place = last.queue_offset * 20
    with sorted((root / CONSUMEQUEUE / "T" / "0").iterdir())[place // size].open("r+b") as file:
        file.seek(place % size)
        file.write(bytes(20))
    log = {path.name: path.read_bytes() for path in (root / COMMITLOG).iterdir()}
    plan = repair(root)
    (left,) = (step for step in plan.steps if step.action is Action.NONE)
    assert (left.why, left.position) == ("RECORD_REPEATED", last.commitlog_offset)
    assert {path.name: path.read_bytes() for path in (root / COMMITLOG).iterdir()} == log
    assert [str(finding.code) for finding in wrong(root)] == ["RECORD_REPEATED"]
    del everything["T", 0, last.queue_offset]
    assert held(root) == everything
