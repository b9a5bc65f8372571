"""A blank record that does not reach the end of its file is damage: readers go on after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from storage import native
from storage.files.read_files import ReadOnlyFiles, StoreFiles
from storage.format import check
from storage.format.layout import BLANK_MAGIC, TWO_INTS
from storage.index.keys_from_log import key_stretches
from storage.log import record_reader
from storage.log.byte_search import find_in_log
from storage.log.record_finder import RecordFinder
from storage.log.walk import LogWalk, Segment, StretchKind
from storage.readonly import StoreView
from storage.record_batch.queue_numbers import QueueNames
from storage.store import MessageStore
from storage.tools.fsck import fsck
from storage.tools.fsck.findings import Code
from storage.tools.rebuild.log_units import LogRuns
from tests.support.cli import run
from tests.support.examples import one_in
from tests.support.hand_made import TINY, HandMade, Stored
from tests.support.mended import held, repair, wrong
from tests.support.samples import Sample, prepared

SIZE = 4096
CONFIG = TINY.with_(
    mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000, max_index_num=400
)
COUNT = 110
PLACES = ("first", "middle", "last of its file", "in the last file", "last")


@pytest.fixture(params=["compiled", "plain"])
def _form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "plain":
        monkeypatch.setattr(native, "compiled", None)
        monkeypatch.setattr(check, "scan_plain", native.references["scan_plain"])
        for name in ("read_run", "read_bodies", "read_at"):
            monkeypatch.setattr(record_reader, name, native.references[name])
    elif native.compiled is None:
        pytest.skip("needs RMQCTL_PURE to be empty")


pytestmark = pytest.mark.usefixtures("_form")


def made_store() -> HandMade:
    made = HandMade(CONFIG)
    for number in range(COUNT):
        made.put("T", number % 2, b"body %d" % number, keys=("all",))
    return made


def at_place(made: HandMade, place: str) -> Stored:
    second = [m for m in made.messages if m.commitlog_offset // SIZE == 1]
    latest = [m for m in made.messages if m.commitlog_offset // SIZE == (made.log_end - 1) // SIZE]
    chosen = {
        "first": second[0],
        "middle": second[len(second) // 2],
        "last of its file": second[-1],
        "in the last file": latest[len(latest) // 2],
        "last": latest[-1],
    }
    return chosen[place]


def write(root: Path, offset: int, data: bytes) -> None:
    with (root / "commitlog" / f"{offset - offset % SIZE:020}").open("r+b") as file:
        file.seek(offset % SIZE)
        file.write(data)


def damaged(folder: Path, place: str) -> tuple[HandMade, Path, Stored]:
    """A store in which one record has the magic code of a blank record."""
    made = made_store()
    root = made.write(folder)
    gone = at_place(made, place)
    write(root, gone.commitlog_offset, TWO_INTS.pack(gone.size, BLANK_MAGIC))
    return made, root, gone


def walked(log: ReadOnlyFiles, end: int, *, as_broker: bool = False) -> list[Segment]:
    walk = LogWalk(log, 0, limit=end, search_all=True, as_broker=as_broker)
    pieces = []
    while (stretch := walk.next()) is not None:
        pieces.append(stretch)
    return pieces


def starts(pieces: list[Segment]) -> list[int]:
    found = []
    for piece in pieces:
        at = piece.start
        for size in piece.sizes if piece.kind is StretchKind.RECORDS else ():
            found.append(at)
            at += size
    return found


@pytest.mark.parametrize("place", PLACES)
def test_a_walk_loses_one_record(place: str, tmp_path: Path) -> None:
    made, root, gone = damaged(tmp_path / "s", place)
    log = StoreFiles(root, CONFIG).log
    pieces = walked(log, made.log_end)
    others = [m.commitlog_offset for m in made.messages if m is not gone]
    assert starts(pieces) == others
    (lost,) = [piece for piece in pieces if piece.kind is StretchKind.LOST]
    assert (lost.start, lost.end) == (gone.commitlog_offset, gone.commitlog_offset + gone.size)
    assert "blank record" in lost.reason


@pytest.mark.parametrize("place", PLACES)
def test_readers_of_the_log_lose_one_record(place: str, tmp_path: Path) -> None:
    made, root, gone = damaged(tmp_path / "s", place)
    others = [m.commitlog_offset for m in made.messages if m is not gone]
    log = StoreFiles(root, CONFIG).log
    assert list(find_in_log(log, 0, made.log_end, b"body ")) == others
    rows = [row for part in key_stretches(log, 0, made.log_end) for row in part.rows]
    assert [offset for _, _, offset, _ in rows] == others
    runs = LogRuns(log, made.log_end, QueueNames(), None)
    assert [int(at) for block, _ in runs for at in block.offset] == others
    assert runs.lost == [(gone.commitlog_offset, gone.commitlog_offset + gone.size)]
    with StoreView.open(root) as view:
        finder = RecordFinder(log, made.log_end, view.unit, SIZE)
        ends = range(SIZE, made.log_end + SIZE, SIZE)
        pieces = [found for end in ends for found in finder.records(end - SIZE, end)]
        report = fsck(view)
    assert [p.start for p in pieces if p.message is not None] == others
    assert [p.start for p in pieces if p.message is None] == [gone.commitlog_offset]
    codes = {finding.code: finding for finding in report.findings}
    assert Code.LOG_BYTES_LOST in codes
    assert Code.BLANK_WRONG not in codes
    assert report.checked.records == COUNT - 1


@pytest.mark.slow
@pytest.mark.parametrize("place", one_in(3, PLACES))
def test_commands_name_the_damage_and_go_on(place: str, tmp_path: Path) -> None:
    made, root, gone = damaged(tmp_path / "s", place)
    lines = (
        ("message", "search", "-t", "T", "--jobs", "1", "--min-size", "0"),
        ("message", "search", "-t", "T", "--jobs", "1", "body"),
        ("message", "query", "-t", "T", "--key", "all", "--scan"),
    )
    for line in lines:
        found = run(*line, "-o", "jsonl", "-S", root)
        assert (found.code, len(found.lines)) == (8, COUNT - 1), (line, found.err)
    found = run("message", "export", "-t", "T", "--as", "jsonl", "-S", root)
    assert (found.code, len(found.lines)) == (8, COUNT - 1)
    assert f"log offset {gone.commitlog_offset}" in found.err
    found = run("store", "tail", "-e", "-o", "jsonl", "-S", root)
    rows = [json.loads(line) for line in found.lines]
    assert sum(row["topic"] is not None for row in rows) == COUNT - 1
    assert gone.commitlog_offset in {row["commitlog_offset"] for row in rows if row["problem"]}
    carved = run("store", "carve", tmp_path / "c", "-t", "T", "--execute", "--yes", "-S", root)
    assert carved.code == 8, carved.err
    assert len(run("consume", "T", "-e", "-o", "jsonl", "-S", tmp_path / "c").lines) == COUNT - 1
    assert run("store", "fsck", "-S", root).code == 4
    path = root / "commitlog" / f"{gone.commitlog_offset - gone.commitlog_offset % SIZE:020}"
    dumped = [json.loads(line) for line in run("store", "dump", path, "-o", "jsonl").lines]
    whole = [row["position"] for row in dumped if row["kind"] == "MESSAGE"]
    number = gone.commitlog_offset // SIZE
    others = [m.commitlog_offset for m in made.messages if m is not gone]
    assert whole == [at for at in others if at // SIZE == number]


@pytest.mark.parametrize("place", PLACES)
def test_repair_mends_that_one_record(place: str, tmp_path: Path) -> None:
    made, root, _ = damaged(tmp_path / "s", place)
    repair(root)
    assert wrong(root) == []
    everything = {(m.topic, m.queue_id, m.queue_offset) for m in made.messages}
    assert held(root).keys() == everything


def test_a_blank_record_of_a_wrong_size_ends_its_file_where_no_record_follows(
    tmp_path: Path,
) -> None:
    made = made_store()
    root = made.write(tmp_path / "s")
    last = at_place(made, "last of its file")
    end = last.commitlog_offset + last.size
    write(root, end, TWO_INTS.pack(77, BLANK_MAGIC))
    log = StoreFiles(root, CONFIG).log
    pieces = walked(log, made.log_end)
    assert [p.end for p in pieces if p.start == end] == [2 * SIZE]
    assert {p.kind for p in pieces} == {StretchKind.RECORDS, StretchKind.BLANK}
    assert len(starts(pieces)) == COUNT
    with StoreView.open(root) as view:
        codes = [finding.code for finding in fsck(view).findings]
    assert codes == [Code.BLANK_WRONG]
    found = run("message", "search", "-t", "T", "--min-size", "0", "-o", "jsonl", "-S", root)
    assert (found.code, len(found.lines)) == (0, COUNT)


def test_a_right_blank_record_ends_its_file_whatever_follows(tmp_path: Path) -> None:
    """Bytes of an earlier, longer log may follow it."""
    made, root, gone = damaged(tmp_path / "s", "middle")
    rest = SIZE - gone.commitlog_offset % SIZE
    write(root, gone.commitlog_offset, TWO_INTS.pack(rest, BLANK_MAGIC))
    pieces = walked(StoreFiles(root, CONFIG).log, made.log_end)
    assert StretchKind.LOST not in {piece.kind for piece in pieces}
    left_out = range(gone.commitlog_offset, gone.commitlog_offset + rest)
    assert not set(left_out) & set(starts(pieces))


@pytest.mark.parametrize("place", PLACES[:-1])
@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
def test_recovery_goes_to_the_next_file_as_a_broker_does(
    clean: bool, place: str, tmp_path: Path
) -> None:
    made, root, gone = damaged(tmp_path / "s", place)
    if not clean:
        (root / "abort").touch()
    log = StoreFiles(root, CONFIG).log
    pieces = walked(log, made.log_end, as_broker=True)
    rest = range(gone.commitlog_offset, gone.commitlog_offset + SIZE - gone.commitlog_offset % SIZE)
    others = [m for m in made.messages if m.commitlog_offset not in rest]
    assert starts(pieces) == [m.commitlog_offset for m in others]
    with MessageStore.open(root) as store:
        stored = store.put(prepared([Sample("new", "T", 0)]))
        if place == "in the last file":
            assert stored.commitlog_offsets[0] % SIZE == 0
        else:
            assert stored.commitlog_offsets[0] == made.log_end
    lost = {(m.topic, m.queue_id, m.queue_offset) for m in made.messages} - held(root).keys()
    assert lost == {(gone.topic, gone.queue_id, gone.queue_offset)}
