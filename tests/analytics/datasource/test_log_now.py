"""A look at the log alone says what a look at all queues says, whatever has happened since."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from random import Random

import pytest

from analytics.datasource.plan.log_now import LogLooks, LogNow, look_at_log, look_at_queues
from analytics.report.copies import mark_at
from analytics.report.stores import StoreRef
from storage.errors import StoreNotFoundError
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.names import parse_file_name
from storage.log.walk import LogWalk, StretchKind
from storage.store import MessageStore
from tests.support import golden
from tests.support.copies import copy_store
from tests.support.damages import NotHere, damage, kinds
from tests.support.examples import one_in
from tests.support.golden_samples import SOME, some
from tests.support.hand_made import TINY, HandMade, Stored
from tests.support.java_lock import java_lock
from tests.support.opened_files import no_queue_is_opened, opened_below
from tests.support.samples import TINY as TINY_STORE, Sample

DAMAGES = [kind for kind in kinds() if kind.startswith(("log", "queue", "index", "checkpoint"))]
CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


def ref_of(root: Path) -> StoreRef:
    return StoreRef(root.name, str(root))


def facts(log: LogNow) -> tuple[int, int, frozenset[str]]:
    return log.begin, log.end, log.marks


def check(looks: LogLooks, root: Path) -> LogNow:
    """A look from the one before, a first look and one at the queues say the same."""
    found = looks.look(ref_of(root))
    first, whole = look_at_log(ref_of(root)), look_at_queues(ref_of(root))
    assert found.log == first.log == whole.log
    assert first.marks == whole.marks
    if found.last is not None and found.end > found.begin:
        with found.opened() as log:
            assert mark_at(log, found.last) == found.last_mark is not None
    return found


@SOME
def test_the_log_of_a_golden_store(name: str) -> None:
    check(LogLooks(), golden.store(name))


@pytest.mark.parametrize("name", some(["basic-4.9", "lmq-4.9", "small-files-4.9", "basic-5.3"]))
def test_a_store_that_was_closed_needs_no_look_at_its_queues(tmp_path: Path, name: str) -> None:
    root = copy_store(golden.store(name), tmp_path / name)
    (root / "abort").unlink(missing_ok=True)
    whole = look_at_queues(ref_of(root))
    looks = LogLooks()
    with no_queue_is_opened(root):
        assert facts(looks.look(ref_of(root))) == facts(whole)
        assert facts(looks.look(ref_of(root))) == facts(whole)


@pytest.mark.slow
@pytest.mark.parametrize("name", some(["small-files-4.9", "torn-half-record-4.9"]))
@pytest.mark.parametrize("kind", one_in(5, DAMAGES))
@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
def test_whatever_is_damaged_the_queues_say_the_same(tmp_path: Path, name: str, kind: str) -> None:
    root = copy_store(golden.store(name), tmp_path / name)
    (root / "abort").unlink(missing_ok=True)
    looks = LogLooks()
    check(looks, root)
    with suppress(NotHere):
        damage(root, kind)
    check(looks, root)


# -- a store that grows and changes ----------------------------------------------------------


class World:
    """A store of a broker, which changes at random."""

    def __init__(self, root: Path, random: Random) -> None:
        self.root = root
        self.random = random
        self.made = HandMade(CONFIG)
        self.halves: set[int] = set()
        """Where prepared messages lie, which are in no queue."""
        self.older: list[tuple[Path, HandMade]] = []

    def write(self) -> None:
        self.root.mkdir(exist_ok=True)
        self.made.write(self.root)

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 30)):
            topic = f"T{self.random.randrange(4)}"
            body = b"x" * self.random.randrange(1, 300)
            keys = (f"k{self.random.random()}",) * self.random.randrange(2)
            half = 4 if self.random.random() < 0.1 else 0
            put = self.made.put(topic, self.random.randrange(3), body, keys=keys, sys_flag=half)
            if half:
                self.halves.add(put.commitlog_offset)
        self.write()

    def readable(self) -> list[Stored]:
        """The messages of a store that only grew."""
        return [one for one in self.made.messages if one.commitlog_offset not in self.halves]

    def delete_oldest(self) -> None:
        files = sorted((self.root / "commitlog").iterdir())
        for path in files[: max(0, self.random.randrange(len(files)))]:
            path.unlink()

    def make_ahead(self) -> None:
        end = self.made.log_end
        for number in (1, 2):
            path = self.root / "commitlog" / f"{end - end % 4096 + number * 4096:020}"
            if not path.exists():
                path.write_bytes(bytes(4096))

    def keep(self) -> None:
        older = self.root.with_name(f"older-{len(self.older)}")
        self.older.append((shutil.copytree(self.root, older), deepcopy(self.made)))

    def restore(self) -> None:
        if self.older:
            shutil.rmtree(self.root)
            older, made = self.random.choice(self.older)
            shutil.copytree(older, self.root)
            self.made = deepcopy(made)

    def make_anew(self) -> None:
        shutil.rmtree(self.root)
        self.made = HandMade(CONFIG, timestamp=self.random.randrange(1 << 40))
        self.append()

    def lose_a_queue(self) -> None:
        topics = sorted((self.root / "consumequeue").iterdir())
        shutil.rmtree(self.random.choice(topics))

    def tear_the_end(self) -> None:
        """As a writer that is in the middle of a record."""
        end = self.made.log_end
        path = self.root / "commitlog" / f"{end - end % 4096:020}"
        if path.exists() and 4096 - end % 4096 > 200:
            with path.open("r+b") as file:
                file.seek(end % 4096)
                file.write(self.random.randbytes(60))

    def change(self) -> str:
        name = self.random.choice(
            ["append"] * 6
            + ["delete_oldest", "make_ahead", "keep", "restore", "make_anew", "lose_a_queue"]
            + ["tear_the_end", "nothing"]
        )
        if name != "nothing":
            getattr(self, name)()
        return name


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 60))]
)
@pytest.mark.slow
def test_a_look_from_the_one_before_is_that_at_the_queues(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "st", Random(seed))
    world.append()
    looks = LogLooks()
    done = []
    for _ in range(25):
        done.append(world.change())
        try:
            check(looks, world.root)
        except AssertionError as error:
            raise AssertionError(f"{done}: {error}") from error


def records_of(root: Path) -> list[int]:
    """Where the records of a store begin."""
    found = []
    with look_at_queues(ref_of(root)).opened() as log:
        walk = LogWalk(log.files, log.files.offsets()[0], as_broker=True)
        while (stretch := walk.next()) is not None:
            at = stretch.start
            for size in stretch.sizes:
                found += [at] if stretch.kind is StretchKind.RECORDS else []
                at += size
    return found


def rewind(source: Path, root: Path, place: int, *, ahead: bool = True) -> None:
    """The files of a store as its broker had them when its log ended at ``place``; with ``ahead``
    the next file of the log is there already. The index is a later one, as of a torn copy."""
    shutil.rmtree(root, ignore_errors=True)
    copy_store(source, root)
    sizes = {path.stat().st_size for path in (root / "commitlog").iterdir()}
    for path in (root / "commitlog").iterdir():
        start = parse_file_name(path.name)
        assert start is not None
        if start > place + (max(sizes) if ahead else -1):
            path.unlink()
        elif start + max(sizes) > place:
            with path.open("r+b") as file:
                file.truncate(max(0, place - start))
                file.truncate(max(sizes))
    for path in (root / "consumequeue").glob("*/*/*"):
        units = path.read_bytes()
        for at in range(0, len(units), CQ_STORE_UNIT_SIZE):
            if CQ_STORE_UNIT.unpack_from(units, at)[0] >= place:
                os.truncate(path, at)
                os.truncate(path, len(units))
                break
        if not any(path.read_bytes()):
            path.unlink()


@pytest.mark.parametrize(
    "name", ["small-files-4.9", "lmq-4.9", pytest.param("transaction-4.9", marks=pytest.mark.long)]
)
@pytest.mark.slow
def test_a_broker_that_lives_is_followed_without_its_queues(tmp_path: Path, name: str) -> None:
    source, root = golden.store(name), tmp_path / name
    places = records_of(source)[1:]
    looks = LogLooks()
    for place in places[:: max(1, len(places) // 5)]:
        rewind(source, root, place)
        (root / "abort").touch()
        (root / "lock").write_bytes(b"lock")
        with java_lock(root):
            found = check(looks, root)
            assert found.end == place
            with no_queue_is_opened(root):
                assert looks.look(ref_of(root)).end == place


def test_our_writers_are_followed_by_the_shared_state(tmp_path: Path) -> None:
    root = tmp_path / "st"
    MessageStore.create(root, TINY_STORE)
    looks = LogLooks()
    assert looks.look(ref_of(root))[2:4] == (0, 0)
    with MessageStore.open(root) as store:
        for number in range(60):
            store.put_message(Sample(f"m{number}", "TU"[number % 2], number % 5, 90).inner())
            if number % 7 == 0:
                found = check(looks, root)
                assert found.end == store.view.log_max_offset()
                with no_queue_is_opened(root):
                    assert looks.look(ref_of(root)) == found
    check(looks, root)
    shutil.rmtree(root / "rmqctl")  # a copy of the broker's files
    check(looks, root)


def test_a_store_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    world = World(tmp_path / "st", Random(1))
    world.append()
    looks = LogLooks()
    looks.look(ref_of(world.root))
    shutil.rmtree(world.root)
    with pytest.raises(StoreNotFoundError):
        looks.look(ref_of(world.root))
    world.write()
    check(looks, world.root)


@pytest.mark.parametrize("at", ["in a file", "at the begin of a file"])
def test_records_after_zeros_are_found(tmp_path: Path, at: str) -> None:
    """The walk ends where zeros begin; only the queues know of what comes after them."""
    config = CONFIG.with_(mapped_file_size_commit_log=1 << 15)
    made = HandMade(config)
    for number in range(300):
        made.put("T", number % 3, b"x" * 100)
    root = tmp_path / "st"
    root.mkdir()
    looks = LogLooks()
    places = [m.commitlog_offset for m in made.messages]
    place = places[-30] if at == "in a file" else 1 << 15
    assert place in places
    assert place >= 1 << 15
    for _ in range(2):
        made.write(root)
        with (root / "commitlog" / f"{place // (1 << 15) * (1 << 15):020}").open("r+b") as file:
            file.seek(place % (1 << 15))
            file.write(bytes(1300))
        assert check(looks, root).end == made.log_end
        for number in range(20):
            made.put("T", number % 3)


def test_the_queues_of_a_store_that_was_not_closed_are_looked_at(tmp_path: Path) -> None:
    world = World(tmp_path / "st", Random(1))
    world.append()
    (world.root / "abort").touch()
    looks = LogLooks()
    for _ in range(2):
        with opened_below(world.root / "consumequeue") as opened:
            looks.look(ref_of(world.root))
        assert opened
