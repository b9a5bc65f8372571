"""What repair keeps and what it cuts at the end of the log: no byte of a record, all after it."""

from __future__ import annotations

import pytest

from storage.coordination.exclusive import alone
from storage.format.record import BLANK_SIZE, CheckKind, check_record
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck
from storage.tools.fsck.findings import Code
from storage.tools.repair.execution import carry_out_plan
from storage.tools.repair.log_tail import used_to
from storage.tools.repair.plan import make_plan
from storage.tools.repair.steps import Action
from tests.support.hand_made import TINY, HandMade
from tests.support.mended import held, repair, wrong
from tests.support.samples import Sample, prepared

SIZE = 4096
CONFIG = TINY.with_(mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000)
MIB = 1 << 20
READS = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")


def made_store(count=30, queues=2, body=b"body %d", config=CONFIG):
    made = HandMade(config)
    for number in range(count):
        made.put("T", number % queues, body % number)
    return made


def log_file(root, offset, size=SIZE):
    return root / "commitlog" / f"{offset - offset % size:020}"


def write(root, offset, data, size=SIZE):
    with log_file(root, offset, size).open("r+b") as file:
        file.seek(offset % size)
        file.write(data)


def ends(root):
    with StoreView.open(root) as view:
        return {key: view.max_offset_in_queue(*key) for key in view.queues()}


def in_log(plan):
    return [step for step in plan.steps if step.file.startswith("commitlog")]


def goes_on(root, expected):
    """A writer stores after the existing records."""
    with MessageStore.open(root) as store:
        for (topic, queue_id), end in expected.items():
            result = store.put(prepared([Sample("new", topic, queue_id)]))
            assert result.queue_offsets[0] == end
    assert wrong(root) == []


# -- what is left over ------------------------------------------------------------------------


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize(
    ("at", "length"), [(0, 1), (0, 9), (3, 20), (0, None)], ids=["byte", "some", "gap", "all"]
)
def test_all_bytes_behind_the_last_record_become_zeros_and_none_in_front(
    at, length, clean, tmp_path
):
    made = made_store()
    made.clean = clean
    root = made.write(tmp_path / "s")
    before, end = held(root), made.log_end
    whole = log_file(root, end).read_bytes()
    length = SIZE - end % SIZE - at if length is None else length
    write(root, end + at, b"\x01" * length)
    plan = repair(root)
    (step,) = in_log(plan)
    assert (step.action, step.position, step.length) == (Action.CLEAR, end % SIZE, at + length)
    assert log_file(root, end).read_bytes() == whole
    assert wrong(root) == [] or not clean
    assert held(root) == before
    goes_on(root, ends(root))


def test_bytes_far_behind_the_last_record_are_found_by_their_blocks(tmp_path):
    path = tmp_path / "file"
    for used in (0, 1, MIB - 1, MIB, MIB + 1, 3 * MIB - 1, 3 * MIB):
        with path.open("wb") as file:
            file.truncate(4 * MIB)
            if used:
                file.seek(used - 1)
                file.write(b"\x01")
        for start in (0, 1, MIB - 5, MIB, 3 * MIB, 4 * MIB - 1, 4 * MIB):
            assert used_to(str(path), start) == max(start, used), (used, start)


@pytest.mark.parametrize("used", [1, MIB, MIB + 1, 2 * MIB, 3 * MIB])
def test_zeros_that_have_blocks_are_looked_through(used, tmp_path):
    path = tmp_path / "file"
    path.write_bytes((bytes(used - 1) + b"\x01").ljust(3 * MIB, b"\0"))
    assert used_to(str(path), 0) == used
    assert used_to(str(path), used) == used
    assert used_to(str(path), 3 * MIB) == 3 * MIB


def test_a_file_of_bytes_behind_the_end_is_moved_away_and_one_made_ahead_stays(tmp_path):
    made = made_store(20)
    root = made.write(tmp_path / "s")
    before, last = held(root), log_file(root, made.log_end)
    ahead = log_file(root, made.log_end + SIZE)
    ahead.write_bytes(bytes(SIZE))
    assert repair(root).steps == []
    assert ahead.exists()
    ahead.write_bytes(b"\x01".ljust(SIZE, b"\0"))
    further = log_file(root, made.log_end + 2 * SIZE)
    further.write_bytes(b"\x01".ljust(SIZE, b"\0"))
    whole = last.read_bytes()
    plan = repair(root)
    assert [(step.action, step.file[-20:]) for step in in_log(plan)] == [
        (Action.QUARANTINE, further.name),
        (Action.QUARANTINE, ahead.name),
    ]
    assert not ahead.exists()
    assert last.read_bytes() == whole
    assert wrong(root) == []
    assert held(root) == before


@pytest.mark.parametrize("data", [b"\x01".ljust(SIZE, b"\0"), b""], ids=["bytes", "empty"])
def test_a_death_between_two_files_behind_the_end_leaves_no_gap(data, tmp_path):
    made = made_store(20)
    root = made.write(tmp_path / "s")
    before = ends(root)
    ahead = [log_file(root, made.log_end + number * SIZE) for number in (1, 2, 3)]
    for path in ahead:
        path.write_bytes(data)
    with StoreView.open(root) as view:
        plan, config = make_plan(view, fsck(view), 1), view.config
    assert len(in_log(plan)) == 3
    with alone(root):
        for step in carry_out_plan(root, config, plan, 1):
            if step in in_log(plan):
                break
    assert [path.exists() for path in ahead] == [True, True, False]
    repair(root)
    goes_on(root, before)


def test_a_file_made_ahead_stays_where_bytes_are_left_over_in_front_of_it(tmp_path):
    made = made_store(20)
    root = made.write(tmp_path / "s")
    ahead = log_file(root, made.log_end + SIZE)
    ahead.write_bytes(bytes(SIZE))
    write(root, made.log_end, b"left over")
    (step,) = in_log(repair(root))
    assert step.action is Action.CLEAR
    assert ahead.exists()
    assert wrong(root) == []


def test_a_copy_of_another_file_behind_the_end_is_moved_away_once(tmp_path):
    made = made_store(60)
    root = made.write(tmp_path / "s")
    before = held(root)
    ahead = log_file(root, made.log_end + SIZE)
    ahead.write_bytes(log_file(root, 0).read_bytes())
    (step,) = in_log(repair(root))
    assert (step.action, step.file[-20:]) == (Action.QUARANTINE, ahead.name)
    assert wrong(root) == []
    assert held(root) == before


def test_the_blank_record_at_the_end_stays_where_something_else_is_mended(tmp_path):
    """A writer died between the end of a file and the next one."""
    made = made_store(0)
    while len(made.log) < SIZE:
        made.put("T", 0, b"body")
    last = made.messages.pop()
    made.queues[last.topic, 0] = made.queues[last.topic, 0][:-20]
    del made.log[SIZE:]
    root = made.write(tmp_path / "s")
    newest = made.messages[-1]
    end = newest.commitlog_offset + newest.size
    blank = log_file(root, 0).read_bytes()[end:]
    assert any(blank)
    gone = made.messages[3]
    write(root, gone.commitlog_offset, bytes(gone.size))
    (step,) = in_log(repair(root))
    assert (step.action, step.position) == (Action.REPLACE, gone.commitlog_offset)
    assert log_file(root, 0).read_bytes()[end:] == blank
    assert wrong(root) == []


def test_where_the_log_ends_with_its_file_the_next_one_is_moved_away(tmp_path):
    """The end lies at the beginning of a file, which has no record."""
    made = made_store(2)
    while len(made.log) <= SIZE:
        made.put("T", 0, b"body")
    gone = made.messages.pop()
    del made.log[SIZE:]
    made.queues[gone.topic, gone.queue_id] = made.queues[gone.topic, gone.queue_id][:-20]
    root = made.write(tmp_path / "s")
    before = held(root)
    ahead = log_file(root, SIZE)
    ahead.write_bytes(b"\x01".ljust(SIZE, b"\0"))
    plan = repair(root)
    assert not any(ahead.read_bytes()) if ahead.exists() else plan.steps
    assert wrong(root) == []
    assert held(root) == before
    goes_on(root, ends(root))


# -- what was there ---------------------------------------------------------------------------


def lose_last(made, root, count, *, skip=0):
    """Zero the last records, but for the very last ``skip``."""
    gone = made.messages[len(made.messages) - count - skip : len(made.messages) - skip]
    for message in gone:
        write(root, message.commitlog_offset, bytes(message.size))
    return gone


@pytest.mark.parametrize("count", [1, 2, 5])
def test_lost_last_records_keep_their_places_one_by_one(count, tmp_path):
    made = made_store()
    root = made.write(tmp_path / "s")
    before, expected = held(root), ends(root)
    gone = lose_last(made, root, count)
    times = [message.store_timestamp for message in made.messages[:-count]]
    plan = repair(root)
    assert [(s.action, s.position, s.length) for s in in_log(plan)] == [
        (Action.REPLACE, message.commitlog_offset % SIZE, message.size) for message in gone
    ]
    assert Action.REBUILD_QUEUE not in {step.action for step in plan.steps}, (
        "units stay as they are"
    )
    data = log_file(root, made.log_end).read_bytes()
    for message in gone:
        found = check_record(data, message.commitlog_offset % SIZE, SIZE)
        assert (found.kind, found.size) == (CheckKind.MESSAGE, message.size)
    assert ends(root) == expected
    with StoreView.open(root) as view:
        report = fsck(view)
    assert Code.STORE_TIME_BACK not in {finding.code for finding in report.findings}
    assert report.log_end == made.log_end
    lost = {message.commitlog_offset for message in gone}
    assert held(root) == {k: m for k, m in before.items() if m.commitlog_offset not in lost}
    assert max(times) > 0
    goes_on(root, expected)


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize("damage", ["zeros", "size", "magic"])
def test_a_damaged_last_record_keeps_its_place_if_it_was_surely_whole(damage, clean, tmp_path):
    """After a crash bytes past the end may be a record that was being written; zeros in front of
    what the checkpoint vouches for are not."""
    made = made_store()
    made.clean = clean
    root = made.write(tmp_path / "s")
    expected, last = ends(root), made.messages[-1]
    at, data = {"zeros": (0, bytes(last.size)), "size": (0, b"\x7f"), "magic": (4, b"\x01")}[damage]
    write(root, last.commitlog_offset + at, data)
    (step,) = in_log(repair(root))
    assert step.position == last.commitlog_offset % SIZE
    if clean or damage == "zeros":
        assert step.action in {Action.REPLACE, Action.MEND}
    else:
        assert step.action is Action.CLEAR
        expected[last.topic, last.queue_id] -= 1
    assert ends(root) == expected
    goes_on(root, expected)


def test_places_of_lost_records_are_kept_up_to_the_first_that_no_unit_tells_of(tmp_path):
    made = made_store()
    root = made.write(tmp_path / "s")
    gone = lose_last(made, root, 4)
    unknown = gone[1]
    queue = root / "consumequeue" / "T" / str(unknown.queue_id)
    place = unknown.queue_offset * 20
    for path in queue.iterdir():
        data = path.read_bytes()
        first = int(path.name)
        if first <= place < first + 2000:
            path.write_bytes(data[: place - first] + bytes(2000 - (place - first)))
    plan = repair(root)
    assert [(s.action, s.position) for s in in_log(plan)] == [
        (Action.REPLACE, gone[0].commitlog_offset % SIZE)
    ]
    assert wrong(root) == []
    kept = max(
        [m.queue_offset for m in made.messages[:-4] if m.queue_id == gone[2].queue_id],
        default=-1,
    )
    assert ends(root)["T", gone[2].queue_id] <= kept + 2
    goes_on(root, ends(root))


def test_a_light_queue_keeps_its_place_in_a_lost_record(tmp_path):
    made = made_store()
    last = made.messages[-1]
    made.add_unit("%LMQ%light", 0, last.commitlog_offset, last.size, 0)
    root = made.write(tmp_path / "s")
    lose_last(made, root, 1)
    plan = repair(root)
    (step,) = in_log(plan)
    assert (step.action, step.position) == (Action.REPLACE, last.commitlog_offset % SIZE)
    assert wrong(root) == []


@READS
@pytest.mark.parametrize("blank", [True, False], ids=["there", "zeroed"])
def test_the_last_file_that_is_there_ends_with_a_blank_record_before_one_is_made(blank, tmp_path):
    made = made_store(60)
    root = made.write(tmp_path / "s")
    expected = ends(root)
    files = sorted((root / "commitlog").iterdir())
    files[-1].unlink()
    first = int(files[-2].name)
    newest = [m for m in made.messages if m.commitlog_offset < first + SIZE][-1]
    end = newest.commitlog_offset + newest.size
    assert first < end <= first + SIZE - BLANK_SIZE
    if not blank:
        write(root, end, bytes(SIZE - end % SIZE))
    repair(root)
    found = check_record(files[-2].read_bytes(), end % SIZE, SIZE)
    assert (found.kind, found.size) == (CheckKind.BLANK, first + SIZE - end)
    assert wrong(root) == []
    assert ends(root) == expected
    goes_on(root, expected)


@READS
@pytest.mark.parametrize("more", [0, 1, 8])
def test_a_blank_record_of_8_bytes_is_written_before_a_file_is_made(more, tmp_path):
    """The least that is left of a file is the blank record itself."""
    made = made_store(10)
    size = made.messages[-1].size
    left = SIZE - len(made.log) - BLANK_SIZE - more
    body = b"x" * (len(b"body 9") + left - size)
    last = made.put("T", 0, body)
    assert len(made.log) == SIZE - BLANK_SIZE - more
    for _ in range(3):
        made.put("T", 0, b"body")
    root = made.write(tmp_path / "s")
    expected, end = ends(root), last.commitlog_offset + last.size
    log_file(root, SIZE).unlink()
    write(root, end, bytes(BLANK_SIZE + more))
    repair(root)
    found = check_record(log_file(root, 0).read_bytes(), end, SIZE)
    assert (found.kind, found.size) == (CheckKind.BLANK, BLANK_SIZE + more)
    assert wrong(root) == []
    assert ends(root) == expected


@READS
def test_records_of_zeros_at_a_files_begin_have_the_time_of_the_file_before(tmp_path):
    made = made_store(60)
    root = made.write(tmp_path / "s")
    files = sorted((root / "commitlog").iterdir())
    first = int(files[-1].name)
    gone = [m for m in made.messages if m.commitlog_offset >= first]
    files[-1].write_bytes(bytes(SIZE))
    newest = [m for m in made.messages if m.commitlog_offset < first][-1]
    plan = repair(root)
    assert wrong(root) == []
    times = [record.store_timestamp for step in in_log(plan) for record in step.records]
    assert times
    assert set(times) == {newest.store_timestamp}
    assert len(times) == len(gone)


@READS
def test_a_unit_alone_far_behind_the_end_makes_no_files(tmp_path):
    made = made_store(60)
    made.add_unit("T", 0, 50 * SIZE, 100, 0)
    root = made.write(tmp_path / "s")
    before = held(root)
    files = sorted(path.name for path in (root / "commitlog").iterdir())
    repair(root)
    assert sorted(path.name for path in (root / "commitlog").iterdir()) == files
    assert wrong(root) == []
    assert held(root) == before


@READS
@pytest.mark.parametrize("count", [1, 3])
def test_lost_records_at_the_end_of_a_file_and_all_of_the_next_one(count, tmp_path):
    """Places are kept within one file; what was in the next one is cut, and its queues are made
    anew."""
    made = made_store(60)
    root = made.write(tmp_path / "s")
    before = held(root)
    first = made.log_end - made.log_end % SIZE
    log_file(root, first).write_bytes(bytes(SIZE))
    gone = [m for m in made.messages if m.commitlog_offset < first][-count:]
    for message in gone:
        write(root, message.commitlog_offset, bytes(message.size))
    repair(root)
    assert wrong(root) == []
    whole = {m.commitlog_offset for m in made.messages if m.commitlog_offset < first}
    whole -= {m.commitlog_offset for m in gone}
    assert held(root) == {k: m for k, m in before.items() if m.commitlog_offset in whole}
    goes_on(root, ends(root))
