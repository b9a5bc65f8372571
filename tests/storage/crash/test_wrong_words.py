"""One wrong word of the shared state: readers and writers do not trust it."""

from __future__ import annotations

import os
import random
import shutil
import struct
import time
from itertools import product
from pathlib import Path

import pytest

from storage.coordination.shared_state import SLOTS, WORD_NAMES, Word
from storage.errors import StoreError
from storage.readonly import StoreView
from storage.tools.fsck import Code, Severity, fsck
from tests.support.copies import copy_store
from tests.support.crash import Child
from tests.support.every_instant import LATER
from tests.support.examples import one_in
from tests.support.samples import SMALL, Sample, Ticking, batch, new_store, open_store, prepared

HUGE = 4_294_967_295
SLOT_0 = SLOTS // 8
MESSAGES = {("A", 0): 20, ("A", 1): 10, ("B", 0): 8}
WORDS = [Word.LOG_END, Word.NAMES_BYTES, Word.FROM, Word.TO, Word.STAGE, Word.KEYS_FROM]
WORDS += [Word.FLUSHED_TO, Word.LAST_STORE_TIMESTAMP, SLOT_0, SLOT_0 + 2, SLOT_0 + 4]
VALUES = [0, 1, -1, HUGE, 1 << 62, "less", "more"]


@pytest.fixture(scope="module")
def closed(tmp_path_factory) -> Path:
    """A store that was closed cleanly: 38 messages, the last ones singly."""
    root = new_store(tmp_path_factory.mktemp("closed") / "store", SMALL)
    with open_store(root, SMALL) as store:
        fill(store)
    return root


def fill(store) -> None:
    for first in range(10):
        store.put(prepared(batch(f"b-{first}", 3, "A", (0, 1))))
    for number in range(8):
        store.put(prepared([Sample(f"s-{number}", "B")]))


@pytest.fixture(scope="module")
def killed(tmp_path_factory) -> Path:
    """The same messages, of a writer that was killed."""
    root = new_store(tmp_path_factory.mktemp("killed") / "killed", SMALL)

    def run(_) -> None:
        fill(open_store(root, SMALL))
        os.kill(os.getpid(), 9)

    assert Child(run).wait()[0]
    return root


def working_copy(root: Path, folder: Path) -> Path:
    """A copy whose page counts: it names the file that it lies in."""
    target = folder / "copy"
    shutil.rmtree(target, ignore_errors=True)
    copy_store(root, target, ignore=shutil.ignore_patterns("bells"))
    info = (target / "rmqctl" / "shared").stat()
    set_word(target, Word.DEVICE, info.st_dev)
    set_word(target, Word.INODE, info.st_ino)
    set_word(target, Word.LOCK_MTIME, (target / "lock").stat().st_mtime_ns)
    return target


def word(root: Path, number: int) -> int:
    with (root / "rmqctl" / "shared").open("rb") as file:
        file.seek(8 * number)
        found: int = struct.unpack("=q", file.read(8))[0]
        return found


def set_word(root: Path, number: int, value: int) -> None:
    with (root / "rmqctl" / "shared").open("r+b") as file:
        file.seek(8 * number)
        file.write(struct.pack("=q", value))


def ids(root: Path) -> list[str]:
    """What a reader has of all queues."""
    found = []
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            at, end = view.queue_bounds(topic, queue_id)
            reads = 0
            while at < end:
                got = view.get_message(topic, queue_id, at, 32)
                found += [message.msg_id for message in got.messages]
                at = got.next_begin_offset
                reads += 1
                assert reads < 1000, f"queue {queue_id} of {topic} has no end: {end}"
    return sorted(found)


def judge(root: Path, sent: list[str]) -> None:
    """A reader has all, a writer loses none, and goes on where the queues end."""
    start = time.monotonic()
    assert ids(root) == sent
    with open_store(root, SMALL, clock=Ticking(LATER)) as store:
        for number, ((topic, queue_id), before) in enumerate(MESSAGES.items()):
            result = store.put(prepared([Sample(f"new-{number}", topic, queue_id)]))
            assert result.queue_offsets == (before,)
    assert ids(root) == sorted([*sent, "new-0", "new-1", "new-2"])
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    "wrong", one_in(4, product(WORDS, VALUES)), ids=lambda pair: f"{pair[0]}-{pair[1]}"
)
@pytest.mark.parametrize("state", ["closed", "killed"])
def test_one_wrong_word_loses_nothing(state, wrong, closed, killed, tmp_path):
    number, value = wrong
    original = closed if state == "closed" else killed
    sent = ids(original)
    assert len(sent) == 38
    root = working_copy(original, tmp_path)
    before = word(root, number)
    set_word(root, number, {"less": before - 1, "more": before + 1}.get(value, value))
    judge(root, sent)


def test_a_page_that_is_right_is_trusted(closed, killed, tmp_path):
    for original in (closed, killed):
        with open_store(working_copy(original, tmp_path), SMALL, clock=Ticking(LATER)) as store:
            assert store.recovery is None
        with StoreView.open(working_copy(original, tmp_path)) as view:
            assert view.has_shared_state


def test_a_second_opening_beside_a_wrong_page_is_refused(closed, tmp_path):
    root = working_copy(closed, tmp_path)
    with open_store(root, SMALL, clock=Ticking(LATER)):
        set_word(root, Word.LOG_END, 0)
        with pytest.raises(StoreError, match="end all writers"):
            open_store(root, SMALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [200, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(3600)])]
)
def test_any_changed_words_end_in_bounded_work(count, closed, tmp_path):
    """One or several words of it, its slots and its waiters: what a reader shows was sent,
    a writer opens or refuses in a sentence, and nothing takes long."""
    chance = random.Random(count)
    sent = set(ids(closed))
    root = working_copy(closed, tmp_path)
    clean = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    used = [*WORD_NAMES, *range(SLOT_0, SLOT_0 + 8), 512, 1024, 1280]
    for round_ in range(count):
        changed = {
            chance.choice(used): odd_value(chance, root)
            for _ in range(chance.choice((1, 1, 1, 2, 5)))
        }
        for number, value in changed.items():
            set_word(root, number, value)
        start = time.monotonic()
        try:
            assert set(ids(root)) <= sent, changed
            if round_ % 4 == 0:
                with open_store(root, SMALL, clock=Ticking(LATER)) as store:
                    store.put(prepared([Sample("new", "A")]))
        except StoreError:
            pass  # one sentence
        assert time.monotonic() - start < 20, changed
        restore(root, clean)


def odd_value(chance: random.Random, root: Path) -> int:
    return chance.choice(
        [
            0,
            -1,
            HUGE,
            chance.randrange(-(1 << 63), 1 << 63),
            chance.randrange(10_000),
            word(root, chance.choice([*WORD_NAMES])),
            1 << chance.randrange(63),
        ]
    )


def restore(root: Path, clean: dict[Path, bytes]) -> None:
    for path in root.rglob("*"):
        if path.is_file() and path not in clean:
            path.unlink()
    for path, data in clean.items():
        if not path.exists() or path.read_bytes() != data:
            times = path.stat() if path.exists() else None
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            if path.name == "lock" and times is not None:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_the_check_names_words_that_are_wrong(closed, tmp_path) -> None:
    copy = working_copy(closed, tmp_path)
    with StoreView.open(copy) as view:
        assert fsck(view).findings == []
    set_word(copy, Word.FLUSHED_TO, HUGE)
    with StoreView.open(copy) as view:
        (finding,) = fsck(view).findings
    assert (finding.code, finding.severity) == (Code.SHARED_STATE_WRONG, Severity.WARNING)
    assert finding.file == "rmqctl/shared"
    assert word(copy, Word.FLUSHED_TO) == HUGE, "a check changes nothing"
    open_store(copy, SMALL).close()
    with StoreView.open(copy) as view:
        assert fsck(view).findings == []
