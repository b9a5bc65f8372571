"""Reads in one compiled step give what single steps give, and only while all is as known."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.format.message import MessageExt
from storage.log.record_reader import UNUSUAL
from storage.queue import reader
from storage.read import by_key
from storage.readonly import StoreView
from storage.results import GetMessageStatus
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples
from tests.support.linux_forms import needs_linux_forms
from tests.support.samples import SMALL, START_MS, Sample, Ticking, new_store, open_store, prepared

if compiled is not None:
    compiled.bind(MessageExt)
FIELDS = [name for name in (*MessageExt.__slots__, "topic", "flag") if name[0] != "_"]
CONFIG = SMALL.with_(mapped_file_size_consume_queue=30 * 20, mapped_file_size_commit_log=8192)
"""Queue files of 30 units and log files of some 40 records: reads cross their ends."""
STEPS = {"pull_at_once": reader, "nearest_at_once": reader, "query_at_once": by_key}


class Steps:
    """How often each step has answered, and has left it to the general way."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answered = dict.fromkeys(STEPS, 0)
        self.left = dict.fromkeys(STEPS, 0)
        for name, module in STEPS.items():
            patch.setattr(module, name, self._counted(name))

    def _counted(self, name: str) -> Callable[..., Any]:
        step = getattr(compiled, name)

        def call(*args: object) -> Any:
            found = step(*args)
            (self.left if found is None else self.answered)[name] += 1
            return found

        return call


def values(found: Any) -> Any:
    if isinstance(found, MessageExt):
        return [getattr(found, name) for name in FIELDS]
    return [values(one) for one in found] if isinstance(found, list | tuple) else found


def alike(ask: Callable[[], Any]) -> Any:
    """The answer, which is the same by compiled steps, when they know the store, and without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", None)
        expected = values(ask())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(native, "compiled", compiled)  # RMQCTL_PURE may hide it
        assert values(ask()) == expected
        assert values(ask()) == expected
    return expected


def put(store: Any, count: int, first: int = 0, queues: int = 1, size: int = 40) -> None:
    """One by one, so that each has a time of its own."""
    for number in range(first, first + count):
        sample = Sample(f"id-{number}", "T", number % queues, size, "A", keys=(f"k{number % 5}",))
        store.put(prepared([sample]))


@pytest.mark.slow
@needs_compiled
@settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    count=st.integers(1, 140),
    queues=st.integers(1, 2),
    damage=st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 255)), max_size=2),
    starts=st.lists(st.integers(-1, 141), min_size=1, max_size=4),
    most=st.sampled_from((-1, 0, 1, 3, 32, 1000)),
    max_bytes=st.sampled_from((1, 500, 1 << 20)),
    times=st.lists(st.integers(-10, 2000) | st.just(1 << 70), min_size=1, max_size=4),
    writers=st.booleans(),
)
def test_answers_are_the_same(
    count: int,
    queues: int,
    damage: list[tuple[int, int]],
    starts: list[int],
    most: int,
    max_bytes: int,
    times: list[int],
    writers: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("once") / "store"
    new_store(root, CONFIG)
    config = CONFIG.with_(max_transfer_bytes_in_memory=max_bytes)
    with open_store(root, config) as store:
        put(store, count, queues=queues)  # its end puts all keys into the index
    with open_store(root, config) as store, StoreView.open(root, config) as apart:
        for place, value in damage:
            number, at = divmod(place, config.mapped_file_size_commit_log)
            for path in sorted((root / "commitlog").iterdir())[number : number + 1]:
                with path.open("r+b") as file:
                    file.seek(at)
                    file.write(bytes((value,)))
        view = store.view if writers else apart
        for queue_id in range(queues):
            for start in starts:
                alike(partial(view.get_message, "T", queue_id, start, most))
            for ms in times:
                alike(partial(view.offset_in_queue_by_time, "T", queue_id, START_MS + ms))
        for key in ("k0", "id-7", "none", "\ud800"):
            alike(partial(view.query_message, "T", key, most))
            alike(partial(view.query_message, "T", key, 5, START_MS, START_MS + 10**6))


@needs_compiled
@pytest.mark.parametrize("writers", [True, pytest.param(False, marks=needs_linux_forms)])
def test_the_steps_answer(writers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        put(store, 100)  # its end puts all keys into the index
    with open_store(root, SMALL) as store, StoreView.open(root, SMALL) as apart:
        view = store.view if writers else apart
        view.get_message("T", 0, 0, 32)
        view.query_message("T", "k1")
        steps = Steps(monkeypatch)
        for _ in range(2):
            assert len(view.get_message("T", 0, 10, 32).messages) == 32
            assert view.offset_in_queue_by_time("T", 0, START_MS + 200) > 0
            assert len(view.query_message("T", "k1").messages) == 20
        put(store, 1, 100)
        assert len(view.get_message("T", 0, 68, 32).messages) == 32
        assert steps.answered == {"pull_at_once": 3, "nearest_at_once": 2, "query_at_once": 2}
        assert not any(steps.left.values())
        assert len(view.query_message("T", "k0").messages) == 21  # one key is in no file yet
        assert steps.left["query_at_once"] == 1
        assert len(view.get_message("T", 0, 69, 32).messages) == 32  # to the end
        assert steps.left["pull_at_once"] == 1


@needs_compiled
@needs_linux_forms  # elsewhere a reader looks the lock file up by its name at each read
def test_after_a_java_broker_nothing_is_answered_from_what_was_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store:
        put(store, 100)
    for ask in (
        lambda view: view.get_message("T", 0, 10, 32).status is GetMessageStatus.FOUND,
        lambda view: view.offset_in_queue_by_time("T", 0, START_MS + 200) > 0,
        lambda view: len(view.query_message("T", "k1").messages) == 20,
    ):
        with StoreView.open(root, SMALL) as view, monkeypatch.context() as patch:
            steps = Steps(patch)
            assert ask(view)
            assert ask(view)
            answered = sum(steps.answered.values())
            assert answered
            before = (root / "lock").stat()
            os.utime(root / "lock", ns=(1, 1))  # as Java does when it starts
            assert ask(view)
            assert sum(steps.answered.values()) == answered
            assert not view.has_shared_state
            os.utime(root / "lock", ns=(before.st_atime_ns, before.st_mtime_ns))


@needs_compiled
@needs_linux_forms
def test_after_a_deletion_of_files_they_are_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    root = new_store(tmp_path / "store", SMALL)
    with open_store(root, SMALL) as store, StoreView.open(root, SMALL) as view:
        put(store, 100)
        asked = (
            lambda: view.get_message("T", 0, 10, 32).status,
            lambda: view.offset_in_queue_by_time("T", 0, START_MS + 200),
        )
        for ask in asked:
            ask(), ask()
        steps = Steps(monkeypatch)
        store.delete_queues("T")
        assert asked[0]() is not GetMessageStatus.FOUND
        assert asked[1]() == 0
        put(store, 50, 200)
        assert view.get_message("T", 0, 0, 1).messages[0].msg_id == "id-200"
        assert view.get_message("T", 0, 0, 1).messages[0].msg_id == "id-200"
        assert sum(steps.left.values()) >= 2
        assert steps.answered["pull_at_once"] == 1


@needs_compiled
def test_after_a_deletion_of_old_log_files_their_messages_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "compiled", compiled)
    config = SMALL.with_(mapped_file_size_commit_log=8192)
    root = new_store(tmp_path / "store", config)
    later = Ticking(int(time.time() * 1000) + 3_600_000)  # its files are old at once
    with (
        open_store(root, config, clock=later) as store,
        StoreView.open(root, config) as view,
    ):
        put(store, 200)
        for _ in range(2):
            assert view.get_message("T", 0, 0, 3).status is GetMessageStatus.FOUND
            assert view.offset_in_queue_by_time("T", 0, START_MS) == 0
        while store.clean(manual=True, reserved_ms=0).log_files:
            pass
        for _ in range(2):
            assert view.get_message("T", 0, 0, 3).status is GetMessageStatus.OFFSET_TOO_SMALL
            first = view.min_offset_in_queue("T", 0)
            assert first > 0
            assert view.offset_in_queue_by_time("T", 0, START_MS) == first


@needs_compiled
def test_what_is_no_store_is_refused_by_the_steps() -> None:
    words = memoryview(bytes(64 * 8)).cast("q")
    known: tuple[Any, ...] = (words, None, 0, 0)
    no_place: tuple[Any, ...] = (0, 1, 0, 0, 30, 0, 4096, {}, {})
    cases: list[tuple[Any, Any]] = [
        (known, ()),
        (known, (0,) * 9),
        (known, (0, 1, 0, 0, 0, 0, 4096, {}, {})),
        ((), no_place),
        ((5, None, 0, 0), no_place),
    ]
    for steady, place in cases:
        with pytest.raises(TypeError):
            compiled.nearest_at_once(steady, place, 5)
    with pytest.raises(TypeError, match="3 arguments"):
        compiled.nearest_at_once(words, None)
    assert compiled.nearest_at_once(known, no_place, 5) is None
    beyond: tuple[Any, ...] = (0, 64, 0, 0, 30, 0, 4096, {}, {})
    assert compiled.nearest_at_once(known, beyond, 5) is None
    others: list[Any] = [
        (words, (-1, 0, 0, 0.0), 0, 0),
        (words[:8], None, 0, 0),
        (words, None, 0, 1),
    ]
    for steady in others:
        assert compiled.nearest_at_once(steady, no_place, 5) is None
    asked = ("T", b"\1T", 0, 0, 1, 9, UNUSUAL, 0)
    assert compiled.pull_at_once(known, no_place, *asked) is None
    common: tuple[Any, ...] = (7, 40, 32, {}, 4096, UNUSUAL)
    assert compiled.query_at_once(known, common, (), "T", "k", 0, 9, 3) is None
    with pytest.raises(TypeError):
        compiled.query_at_once(known, (), (bytes(40),), "T", "k", 0, 9, 3)
    wrongs: list[Any] = [
        (0, *common[1:]),
        (*common[:3], [], 4096, 0),
        (*common[:4], 0, 0),
    ]
    for wrong in wrongs:
        with pytest.raises(ValueError, match="no files"):
            compiled.query_at_once(known, wrong, (bytes(40),), "T", "k", 0, 9, 3)
