"""Messages put one by one and messages put together leave the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.errors import InvalidMessageError
from storage.format.encode import MessageInner, prepare
from storage.format.host import pack_host
from storage.format.properties import encode_properties
from storage.readonly import StoreView
from storage.results import PutMessageStatus
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.samples import Ticking

CONFIG = StoreConfig(
    mapped_file_size_commit_log=16 << 10,
    mapped_file_size_consume_queue=20 * 30,
    max_hash_slot_num=20,
    max_index_num=80,
)
HOSTS = (pack_host("10.0.0.1:4711"), pack_host("[fe80::1]:4711"))


def messages(count: int) -> list[MessageInner]:
    made = []
    for number in range(count):
        keys = tuple(f"key-{number}-{i}" for i in range(number % 4))
        made.append(
            MessageInner(
                ("T", "U")[number % 2],
                number % 3,
                b"%d" % number * (number % 50),
                encode_properties({"KEYS": " ".join(keys), "TAGS": "A"}),
                1_700_000_000_000 + number,
                HOSTS[number % 5 == 0],
                HOSTS[number % 7 == 0],
                flag=number,
                # now and then a message of a transaction, which gets no unit
                sys_flag=0x4 if number % 11 == 10 else 0,
                tags="A" if number % 2 else None,
                keys=keys,
                delay_time_level=2 if number % 13 == 12 else 0,
                delay_ms=5000,
            )
        )
    return made


def store_with(
    folder: Path, *, together: int, exclusive: bool, step_ms: int = 0
) -> dict[str, bytes]:
    MessageStore.create(folder, CONFIG)
    given = messages(200)
    clock = Ticking(1_700_000_000_999, 0)
    with MessageStore.open(folder, exclusive=exclusive, clock=clock) as store:
        if together == 0:
            for message in given:
                clock.now += step_ms
                store.put_message(message)
        else:
            for first in range(0, len(given), together):
                clock.now += step_ms
                store.put(prepare(given[first : first + together]))
    found = {}
    for name in ("commitlog", "consumequeue"):
        for path in sorted((folder / name).rglob("*")):
            if path.is_file():
                found[str(path.relative_to(folder))] = path.read_bytes()
    for number, path in enumerate(sorted((folder / "index").iterdir())):
        found[f"index {number}"] = path.read_bytes()  # its name is the time it was made
    return found


@pytest.mark.conformance("A10")
@pytest.mark.slow
def test_one_by_one_and_together_leave_the_same_bytes(tmp_path: Path) -> None:
    one_by_one = store_with(tmp_path / "a", together=1, exclusive=False)
    assert len([name for name in one_by_one if name.startswith("commitlog")]) > 2
    assert len([name for name in one_by_one if name.startswith("index")]) > 2
    for together in (0, 2, 60):
        found = store_with(tmp_path / f"b{together}", together=together, exclusive=False)
        assert sorted(found) == sorted(one_by_one)
        assert [n for n in found if found[n] != one_by_one[n]] == []


@needs_compiled
@pytest.mark.parametrize("step_ms", [0, 1])
@pytest.mark.parametrize("together", [0, 1, 2, 60])
def test_the_compiled_forms_leave_the_bytes_of_the_pure_ones(
    tmp_path: Path, together: int, step_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for form in (compiled, None):
        monkeypatch.setattr(native, "compiled", form)
        path = tmp_path / str(form is None)
        found.append(store_with(path, together=together, exclusive=False, step_ms=step_ms))
    assert sorted(found[0]) == sorted(found[1])
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []


def test_an_exclusive_store_writes_the_same_bytes(tmp_path: Path) -> None:
    shared = store_with(tmp_path / "a", together=1, exclusive=False)
    for together in (0, 1):
        path = tmp_path / f"b{together}"
        assert store_with(path, together=together, exclusive=True) == shared


def test_a_message_that_no_record_can_hold_is_refused_and_the_next_one_is_not(
    tmp_path: Path,
) -> None:
    MessageStore.create(tmp_path, CONFIG)
    good = messages(1)[0]
    with MessageStore.open(tmp_path) as store:
        store.put_message(good)
        store.put_message(good)
        for bad in (
            good._replace(topic="t" * 128),
            good._replace(properties=b"x" * 40_000),
            good._replace(properties=b"x" * 70_000),
        ):
            with pytest.raises(InvalidMessageError):
                store.put_message(bad)
        too_large = good._replace(body=bytes(CONFIG.mapped_file_size_commit_log))
        assert store.put_message(too_large).status is PutMessageStatus.MESSAGE_ILLEGAL
        assert store.put_message(good).queue_offsets[0] == 2


@pytest.mark.slow
def test_a_long_run_leaves_nothing_behind_its_end(tmp_path: Path) -> None:
    config = CONFIG.with_(mapped_file_size_commit_log=3 << 20)
    MessageStore.create(tmp_path, config)
    message = messages(6)[5]._replace(body=b"x" * 1000)
    with MessageStore.open(tmp_path, clock=lambda: 1_700_000_000_999) as store:
        for _ in range(4000):
            store.put_message(message)
        end = store.log_end
    data = b"".join(path.read_bytes() for path in sorted((tmp_path / "commitlog").iterdir()))
    assert not any(data[end:])
    with StoreView.open(tmp_path) as view:
        assert fsck(view).findings == []
