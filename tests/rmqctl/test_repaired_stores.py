"""What a repair has taken out on purpose is not left out by damage: readers exit with 0."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from storage.format.cq_unit import PRE_BLANK
from storage.read.replaced import is_tombstone, places_without_message
from storage.readonly import StoreView
from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade, Stored
from tests.support.mended import held, repair, wrong

SIZE = 4096
CONFIG = TINY.with_(
    mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000, max_index_num=400
)
COUNT = 110
DLQ = "%DLQ%readers"
LINES = (
    "consume T -e",
    "consume T -e -o jsonl",
    "consume T -e --tag a",
    "consume T -e -g new --from-where first",
    "consume T --queue 0 --offset 9:12 -o jsonl",
    "message search body -t T -o jsonl",
    "message search body -t T --around 2 -o jsonl",
    "message search -t T --min-size 0 --count-only",
    "message query -t T --key all -o jsonl",
    "message query -t T --key all --scan -o jsonl",
    "message query -t T --tag a -o jsonl",
    "message export -t T --as jsonl",
    "message stats -t T",
    "store tail -e",
    "store carve {new} -t T --execute --yes",
    "dlq browse readers --all",
    "dlq export readers",
    "store fsck",
)
DAMAGED = ("consume T -e", "message search -t T --min-size 0", "dlq browse readers --all")


def made_store() -> HandMade:
    made = HandMade(CONFIG)
    for number in range(COUNT):
        made.put("T", number % 2, b"body %d" % number, keys=("all",), tags="a")
        if number % 10 == 0:
            made.put(DLQ, 0, b"dead %d" % number, keys=("all",), tags="a")
    return made


def zero(root: Path, message: Stored) -> None:
    at = message.commitlog_offset
    with (root / "commitlog" / f"{at - at % SIZE:020}").open("r+b") as file:
        file.seek(at % SIZE)
        file.write(bytes(message.size))


def lose(folder: Path, kind: str) -> Path:
    """A store that has lost a message of each topic, or a file of its log."""
    made = made_store()
    root = made.write(folder)
    if kind == "file":
        (root / "commitlog" / f"{SIZE:020}").unlink()
    else:
        zero(root, next(m for m in made.messages if m.topic == "T" and m.queue_offset == 10))
        zero(root, next(m for m in made.messages if m.topic == DLQ and m.queue_offset == 5))
    return root


@pytest.fixture(params=["record", "file"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return lose(tmp_path / "s", request.param)


@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
@pytest.mark.slow
def test_damage_is_left_out_with_exit_code_8_and_after_a_repair_with_0(root: Path) -> None:
    new = root.parent / "new"
    for line in DAMAGED:
        assert run(*line.split(), "-S", root).code == 8, line
    repair(root)
    assert wrong(root) == []
    assert len(held(root)) < COUNT + COUNT // 10
    for line in LINES:
        found = run(*line.format(new=new).split(), "-S", root)
        assert found.code == 0, (line, found.err)
        for word in ("damaged", "could not be read", "cannot be read", "left out"):
            assert word not in found.err, (line, found.err)


def test_damage_after_a_repair_is_counted_alone(tmp_path: Path) -> None:
    root = lose(tmp_path / "s", "record")
    repair(root)
    zero(root, made_store().messages[-5])
    found = run("consume", "T", "-e", "-o", "jsonl", "-S", root)
    assert (found.code, len(found.lines)) == (8, COUNT - 2)
    assert "1 message could not be read" in found.err


def test_places_without_message_are_those_that_say_so(tmp_path: Path) -> None:
    made = made_store()
    queue = made.queues["T", 0]
    queue[20 * 3 : 20 * 4] = PRE_BLANK
    queue[20 * 5 : 20 * 6] = bytes(20)
    queue[20 * 7 + 8 : 20 * 7 + 12] = struct.pack(">i", 0x7FFFFFFF)
    root = made.write(tmp_path / "s")
    places = {m.queue_offset: m for m in made.messages if (m.topic, m.queue_id) == ("T", 0)}
    with StoreView.open(root) as view:
        assert [places_without_message(view, "T", 0, at, at + 1) for at in range(2, 9)] == [
            *(0, 1, 0, 0, 0, 0, 0)
        ]
        assert places_without_message(view, "T", 0, 0, 10_000) == 1
        assert not is_tombstone(view, places[10].commitlog_offset)
    zero(root, places[10])
    repair(root)
    with StoreView.open(root) as view:
        assert is_tombstone(view, places[10].commitlog_offset)
        assert not is_tombstone(view, places[10].commitlog_offset + 1)
        assert not is_tombstone(view, places[11].commitlog_offset)
        assert not is_tombstone(view, view.log_max_offset())
        assert not is_tombstone(view, -1)


def test_damage_of_a_chosen_tag_is_told_and_no_other(tmp_path: Path) -> None:
    """Hash codes of ``Aa`` and ``BB`` are the same; a place of a repair is no damage."""
    made = HandMade(CONFIG)
    lost = []
    for number in range(40):
        tag = ("Aa", "BB", "other", "wanted")[number % 4]
        lost.append(made.put("T", number % 2, b"body %d" % number, tags=tag))
    root = made.write(tmp_path / "s")
    for message in (lost[7], lost[11], lost[2]):
        zero(root, message)
    for form in ("", "-o jsonl"):
        found = run(*f"consume T -e --tag wanted {form}".split(), "-S", root)
        assert (found.code, len(found.lines)) == (8, 8), found.err
        assert "2 messages could not be read" in found.err
    whole = run("consume", "T", "-e", "--tag", "Aa", "-S", root)
    assert (whole.code, len(whole.lines), whole.err) == (0, 10, "")
    repair(root)
    zero(root, lost[15])
    found = run("consume", "T", "-e", "--tag", "wanted", "-S", root)
    assert (found.code, len(found.lines)) == (8, 7)
    assert "1 message could not be read" in found.err
