"""Java's DefaultMessageStore opens what we wrote, goes on, and we go on with what it wrote."""

import hashlib
import shutil
import time
from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from tests.interop import answers
from tests.interop.our_producer import LARGEST_PUT, body_of, key_of, producing
from tests.interop.our_writing import write, write_lines
from tests.interop.samples import (
    DEFAULT_FILES,
    SMALL_FILES,
    our_config,
    samples,
    special_samples,
)
from tests.interop.store_probe import OpenStore, Row, Settings, StoreProbe
from tests.support.copies import copy_store

pytestmark = pytest.mark.interop


class _Clock:
    """Steps of 0 to 9 ms, from an hour ago on: store times that repeat and that have gaps."""

    def __init__(self) -> None:
        self.now = time.time_ns() // 1_000_000 - 3_600_000
        self.turn = 0

    def __call__(self) -> int:
        self.turn += 1
        self.now += self.turn * 7 % 10
        return self.now


_CELLS = [
    pytest.param("probe49", SMALL_FILES, id="4.9.7-small"),
    pytest.param("probe49", DEFAULT_FILES, id="4.9.7-default", marks=pytest.mark.long),
    pytest.param("probe53", SMALL_FILES, id="5.3.3-small", marks=pytest.mark.long),
    pytest.param("probe53", DEFAULT_FILES, id="5.3.3-default", marks=pytest.mark.long),
]


@pytest.fixture
def probe(name: str, request: pytest.FixtureRequest) -> StoreProbe:
    found: StoreProbe = request.getfixturevalue(name)
    return found


@pytest.mark.parametrize(("name", "settings"), _CELLS)
def test_java_and_we_take_turns_on_one_folder(
    settings: Settings, probe: StoreProbe, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    MessageStore.create(root, our_config(settings))
    ours = [*samples(120), *special_samples(first=120), *samples(60, first=134)]
    with MessageStore.open(root, clock=_Clock()) as store:
        write(store, ours)
        write_lines(store, 100)
        assert answers.dump(store.view)["maxPhyOffset"] == store.log_end
    assert not (root / "abort").exists()

    numbers = {sample.number for sample in ours if sample.queued}
    with probe.opened(root, settings) as java:
        _agree(root, java, probe)
        _holds(java.dump(), numbers, lines=100)
        more = samples(60, first=1000)
        java.append([sample.java_message() for sample in more])
        numbers |= {sample.number for sample in more}
        _agree(root, java, probe)

    with MessageStore.open(root) as store:
        assert store.recovery is not None
        assert store.recovery.notes == []
        before = answers.dump(store.view)
        _holds(before, numbers, lines=100)
        more = samples(120, first=2000)
        write(store, more)
        numbers |= {sample.number for sample in more}

    with probe.opened(root, settings) as java:
        _agree(root, java, probe)
        after = java.dump()
        _holds(after, numbers, lines=100)
        java.kill()


@pytest.mark.parametrize("kills", [1, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        _CELLS[0],
        *(pytest.param(*cell.values, id=cell.id, marks=pytest.mark.long) for cell in _CELLS[1:]),
    ],
)
def test_java_opens_what_killed_writers_left(
    settings: Settings, kills: int, probe: StoreProbe, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    MessageStore.create(root, our_config(settings))
    acknowledged = {"one": 0, "two": 0}
    for turn in range(kills):
        with (
            producing(root, "one", first=acknowledged["one"]) as one,
            producing(root, "two", first=acknowledged["two"]) as two,
        ):
            for producer in (one, two):
                producer.wait_for(acknowledged[producer.name] + 500)
            acknowledged = {producer.name: producer.kill() for producer in (one, two)}
        assert (root / "abort").exists()

        with probe.opened(root, settings) as java:
            _agree(root, java, probe)
            for name in acknowledged:
                acknowledged[name] = _whole(java.dump(), name, acknowledged[name])
            java.append([sample.java_message() for sample in samples(20, first=turn * 20)])
            if turn % 2:
                java.kill()

    with StoreView.open(root) as view:
        dump = answers.dump(view)
        for name, count in acknowledged.items():
            assert _whole(dump, name, count) == count
        assert sum("n" in row["properties"] for row in dump["messages"]) == 20 * kills


@pytest.mark.parametrize("name", ["probe49", "probe53"])
def test_java_finds_the_keys_that_were_pending_when_we_died(
    probe: StoreProbe, tmp_path: Path
) -> None:
    """A copy made beside the writer is what a SIGKILL would leave of it."""
    root = tmp_path / "store"
    MessageStore.create(root, our_config(SMALL_FILES))
    with MessageStore.open(root, clock=_Clock()) as store:
        write(store, samples(40))
        for sample in samples(60, first=40):
            store.put_message(sample.inner())
        keys_from, log_end = store.view.bounds.keys_from(), store.log_end
        copy = copy_store(root, tmp_path / "copy", ignore=shutil.ignore_patterns("bells"))
    assert keys_from < log_end
    with StoreView.open(copy) as view:
        dump = answers.dump(view)
        questions = answers.key_questions(dump)
        before = answers.query_by_key(view, questions)
    pending = {
        row["commitLogOffset"]
        for row in dump["messages"]
        if row["commitLogOffset"] >= keys_from and "UNIQ_KEY" in (row["properties"] or {})
    }
    assert len(pending) > 20
    assert pending <= {offset for row in before for offset in row["commitLogOffsets"]}
    with probe.opened(copy, SMALL_FILES) as java:
        assert java.query_by_key(questions) == before
        _agree(copy, java, probe)


def _agree(root: Path, java: OpenStore, probe: StoreProbe) -> None:
    """Check that we answer about the folder, beside Java, what Java answers."""
    with StoreView.open(root) as view:
        ours = answers.dump(view)
        answers.same_as(ours, java.dump())
        times = answers.time_questions(ours)
        version = probe.release.version
        assert answers.offset_by_time(view, times, version=version) == java.offset_by_time(times)
        keys = answers.key_questions(ours)
        assert answers.query_by_key(view, keys) == java.query_by_key(keys)


def _holds(dump: Row, numbers: set[int], *, lines: int) -> None:
    """Check that the samples with these numbers are there once, and so many lines."""
    found = [row["properties"] for row in dump["messages"]]
    assert sorted(int(properties["n"]) for properties in found if "n" in properties) == sorted(
        numbers
    )
    assert sum(properties.get("TAGS") == "Line" for properties in found) == lines


def _whole(dump: Row, name: str, acknowledged: int) -> int:
    """Check that a producer's messages are there once, without a gap; gives how many.

    At most the one put that it was killed in is more than what was acknowledged.
    """
    found = [row for row in dump["messages"] if row["topic"] == name]
    numbers = sorted(int(row["properties"]["KEYS"].split("-")[1]) for row in found)
    assert numbers == list(range(len(numbers)))
    assert acknowledged <= len(numbers) <= acknowledged + LARGEST_PUT
    bodies = {row["properties"]["KEYS"]: row["bodySha256"] for row in found}
    for number in numbers:
        body = hashlib.sha256(body_of(name, number)).hexdigest()
        assert bodies[key_of(name, number)] == body
    return len(numbers)
