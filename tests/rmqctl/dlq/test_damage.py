"""Dead letters and retries in damaged stores: what can be read is shown, the rest is counted."""

import shutil

import pytest

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK
from storage.format.message import Message
from tests.support.cli import run
from tests.support.copies import copy_store
from tests.support.dead_letters import bury
from tests.support.hand_made import TINY, HandMade


@pytest.fixture
def torn(store, tmp_path):
    """A store of four dead letters, of which the bodies of two have changed on the device."""
    dead_letters = bury(store, "g", [Message("t", b"body %d" % n) for n in range(4)])
    copy = tmp_path / "torn"
    copy_store(store, copy)
    (log,) = [path for path in (copy / "commitlog").iterdir() if path.name.isdigit()]
    data = bytearray(log.read_bytes())
    for dead_letter in dead_letters[1:3]:
        at = data.index(dead_letter.body, dead_letter.commitlog_offset)
        data[at] ^= 0x20
    log.write_bytes(data)
    return copy


@pytest.mark.slow
def test_what_can_be_read_is_shown_and_the_rest_is_counted(torn):
    for command in (("browse",), ("export",), ("groups", "--by", "tag")):
        done = run("dlq", command[0], "g", *command[1:], "-S", torn, "-o", "json")
        assert done.code == 8
        assert "2 dead letters cannot be read; see 'rmqctl store fsck'" in done.err
    rows = run("dlq", "browse", "g", "-S", torn, "-o", "json").json()
    assert [row["queue_offset"] for row in rows] == [0, 3]
    (row,) = run("dlq", "list", "-S", torn, "-o", "json").json()
    assert (row["depth"], row["unhandled"]) == (4, 4), "they are there, and nobody has seen to them"


@pytest.mark.slow
def test_what_can_not_be_read_is_not_sent_and_not_marked(torn):
    done = run("dlq", "redrive", "g", "--all", "-S", torn, "--execute", "-y", "-o", "json")
    assert "2 dead letters cannot be read" in done.err
    assert [row["queue_offset"] for row in done.json()] == [0, 3]
    (row,) = run("dlq", "list", "-S", torn, "-o", "json").json()
    assert row["unhandled"] == 2
    assert run("dlq", "show", "g", "1", "-S", torn).code == 4


@pytest.mark.parametrize(
    ("lost", "limit", "left_out"),
    [
        ({0, 1, 2}, 5, 3),
        ({0, 1, 2}, 9, 3),
        ({1, 4}, 4, 2),
        ({1, 4}, 3, 1),
        ({40, 79}, 70, 1),
        ({8, 9}, 5, 0),
    ],
)
def test_a_limit_says_what_was_left_out_before_it(tmp_path, lost, limit, left_out):
    made = HandMade(TINY.with_(mapped_file_size_commit_log=65536))
    for _ in range(12 if max(lost) < 12 else 80):
        made.put("%DLQ%g", 0, b"body")
    root = made.write(tmp_path / "s")
    (log,) = (root / "commitlog").iterdir()
    data = bytearray(log.read_bytes())
    for number in lost:
        data[data.index(b"body", made.messages[number].commitlog_offset)] ^= 0x20
    log.write_bytes(data)
    for command in ("browse", "export"):
        done = run("dlq", command, "g", "--limit", limit, "-S", root, "-o", "jsonl")
        assert len(done.lines) == limit
        assert done.code == (8 if left_out else 0)
        assert (f"{left_out} dead letters cannot be read" in done.err) is bool(left_out)


@pytest.fixture
def empties(store, tmp_path, monkeypatch):
    """Makes dead letters in a copy of the store; gives them, and what empties the place of one as
    repairs do."""

    def made(count):
        letters = bury(store, "g", [Message("t", b"body %d" % n) for n in range(count)])
        copy = tmp_path / "copy"
        copy_store(store, copy)
        monkeypatch.setenv("RMQCTL_STORE", str(copy))

        def empty(number, how="tombstone"):
            if how == "pre-blank":
                write(copy / "consumequeue" / "%DLQ%g" / "0", number * len(PRE_BLANK), PRE_BLANK)
            else:
                lose(copy, letters[number])
                assert run("store", "repair", "--yes").code == 0
            return [letter for letter in letters if letter is not letters[number]]

        return letters, empty

    return made


def write(folder, position, data):
    """Write into the only file of a folder."""
    (path,) = [path for path in folder.iterdir() if path.name.isdigit()]
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def lose(root, letter):
    write(root / "commitlog", letter.commitlog_offset, bytes(letter.store_size))


def listed():
    (row,) = run("dlq", "list", "-o", "json").json()
    return row


@pytest.mark.parametrize(
    ("number", "how"),
    [(0, "tombstone"), (1, "tombstone"), (3, "tombstone"), (0, "pre-blank"), (1, "pre-blank")],
)
@pytest.mark.slow
def test_a_place_that_a_repair_emptied_is_no_dead_letter(empties, number, how):
    _, empty = empties(4)
    assert run("dlq", "ack", "g", "2", "-y").code == 0
    left = empty(number, how)
    assert listed() == {
        "group": "g",
        "depth": 3,
        "unhandled": 2,
        "oldest_timestamp": left[0].store_timestamp,
        "newest_timestamp": left[-1].store_timestamp,
        "bytes": sum(letter.store_size for letter in left),
    }
    assert "1 of 3 is handled" in run("dlq", "browse", "g").err
    assert run("dlq", "ack", "g", "--all", "-y").code == 0
    assert (listed()["depth"], listed()["unhandled"]) == (3, 0)


@pytest.mark.slow
def test_an_emptied_place_that_was_handled_is_not_counted_as_handled(empties):
    _, empty = empties(4)
    assert run("dlq", "ack", "g", "1", "-y").code == 0
    empty(1)
    assert (listed()["depth"], listed()["unhandled"]) == (3, 3)


@pytest.mark.slow
def test_a_group_with_an_emptied_place_only_has_no_dead_letter(empties):
    _, empty = empties(1)
    empty(0)
    assert listed() == {
        "group": "g",
        "depth": 0,
        "unhandled": 0,
        "oldest_timestamp": None,
        "newest_timestamp": None,
        "bytes": 0,
    }


@pytest.mark.slow
def test_records_are_looked_at_only_where_a_repair_may_have_been(empties, tmp_path):
    """A log that is not in memory would be read page by page, for each list."""
    _, empty = empties(3)
    empty(1)
    ours = tmp_path / "copy" / "rmqctl"
    shutil.rmtree(ours / "journal")
    assert listed()["depth"] == 2
    assert run("dlq", "ack", "g", "0", "-y").code == 0, "the journal begins anew"
    assert listed()["depth"] == 3
    assert run("dlq", "browse", "g", "--all").code == 0
    shutil.rmtree(ours)
    assert listed()["depth"] == 3
    assert run("dlq", "browse", "g", "--all").code == 0


@pytest.mark.slow
def test_the_time_of_a_dead_letter_that_cannot_be_read_is_unknown(empties, tmp_path):
    letters, _ = empties(3)
    lose(tmp_path / "copy", letters[0])
    assert (listed()["depth"], listed()["unhandled"]) == (3, 3)
    assert listed()["oldest_timestamp"] is None
    assert listed()["newest_timestamp"] == letters[2].store_timestamp


@pytest.mark.parametrize("lost", [1, 2])
def test_the_size_counts_dead_letters_after_missing_units(lost, tmp_path):
    """Each file of the queue has four units; one file, or one with what follows it, is gone."""
    made = HandMade(TINY.with_(mapped_file_size_consume_queue=4 * CQ_STORE_UNIT_SIZE))
    stored = [made.put("%DLQ%g", 0, b"body") for _ in range(20)]
    root = made.write(tmp_path)
    for number in range(1, 1 + lost):
        (root / "consumequeue" / "%DLQ%g" / "0" / f"{number * 80:020}").unlink()
    (row,) = run("dlq", "list", "-S", root, "-o", "json").json()
    assert row["depth"] == 20, "each missing unit stands for a dead letter"
    assert row["bytes"] == (20 - 4 * lost) * stored[0].size
    assert row["newest_timestamp"] - row["oldest_timestamp"] == 19 * (
        made.messages[1].store_timestamp - made.messages[0].store_timestamp
    )


@pytest.mark.slow
def test_a_broken_mark_file_is_said_and_named(torn):
    run("dlq", "ack", "g", "0", "-y", "-S", torn)
    path = torn / "rmqctl" / "handled.json"
    path.write_bytes(path.read_bytes()[:-2])
    done = run("dlq", "browse", "g", "-S", torn)
    assert (done.code, "handled.json" in done.err, done.out) == (4, True, "")


@pytest.mark.slow
def test_a_queue_that_lacks_places_ends_the_run_and_is_named(store):
    """The first error is told, not what becomes of it: nothing can be synced any more."""
    run("topic", "create", "t", "--queues", 8)
    bury(store, "g", [Message("t", b"body %d" % n) for n in range(8)])
    run("produce", "t", stdin=b"line\n" * 16)
    (units,) = (store / "consumequeue" / "t" / "1").iterdir()
    data = bytearray(units.read_bytes())
    last = max(at for at in range(0, len(data), 20) if any(data[at + 8 : at + 12]))
    data[last + 8 : last + 12] = bytes(4)  # its size
    units.write_bytes(data)
    done = run("dlq", "redrive", "g", "--all", "--execute", "-y", "-o", "jsonl")
    assert (done.code, "queue 1 of t lacks places" in done.err) == (4, True), done.err
    number = done.err.split("--resume ")[1].split()[0]
    assert len(done.out.splitlines()) < 8, "queues take their turns"
    done = run("dlq", "redrive", "g", "--resume", number, "--execute", "-y", "-o", "json")
    assert done.code == 0, done.err
    found = run(
        "consume", "t", "-e", "-q", "--where", "properties.RMQCTL_REDRIVE_RUN", "-o", "json"
    )
    assert sorted(row["body"] for row in found.json()) == [f"body {n}" for n in range(8)]


def test_an_id_with_small_letters_is_found_without_the_index(tmp_path):
    """The index may lack a key; a user may set any text as the unique id."""
    made = HandMade(index=False)
    for unique in ("order-7a", "ORDER-7A", "ORDER-8"):
        made.put("%DLQ%g", properties={"UNIQ_KEY": unique}, body=b"x")
    root = made.write(tmp_path / "s")
    for wanted, found in (("order-7a", 0), ("ORDER-7A", 1), ("order-8", 2)):
        shown = run("dlq", "show", "g", wanted, "-S", root, "-o", "json")
        assert shown.code == 0, shown.err
        assert shown.json()["queue_offset"] == found
