"""Batches that the compiled form appends in one step: what it takes, and what it leaves."""

from __future__ import annotations

import random
import resource
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.config import StoreConfig
from storage.coordination.shared_state import Word
from storage.errors import StoreBrokenError
from storage.format.encode import MessageInner, prepare
from storage.format.encode_column import prepare_column
from storage.format.prepared import PreparedRecords
from storage.format.prepared_table import PreparedTable
from storage.readonly import StoreView
from storage.results import PutMessageResult, PutMessageStatus
from storage.store import MessageStore
from storage.tools.fsck import fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.crash import fast_folder
from tests.support.durable_fs import DurableFileSystem
from tests.support.inner_messages import inner_messages, ipv4_hosts, ipv6_hosts
from tests.support.samples import (
    HOST,
    SMALL,
    START_MS,
    Ticking,
    new_store,
    open_store,
    sync_flush,
)
from tests.support.woken import is_rung_by

ROOMY = SMALL.with_(
    mapped_file_size_commit_log=4 << 20,
    mapped_file_size_consume_queue=20 * 8000,
    max_hash_slot_num=500,
    max_index_num=100_000,
)
TIGHT = SMALL.with_(
    mapped_file_size_commit_log=8 << 10, mapped_file_size_consume_queue=20 * 10, max_index_num=40
)
pytestmark = needs_compiled


@pytest.fixture(autouse=True)
def with_compiled_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "compiled", compiled)


def column(name: str, count: int = 20, queues: int = 2, size: int = 100) -> PreparedRecords:
    return prepare_column(
        "T",
        [i % queues for i in range(count)],
        [f"<{name}-{i}>".encode().ljust(size, b".") for i in range(count)],
        born_timestamp=START_MS,
        born_host=HOST,
        store_host=HOST,
        unique_ids=[f"{name[:4]:.>4}{i:04}".encode() for i in range(count)],
        keys=[f"{name}-{i % 7}" for i in range(count)],
    )


def in_one_step(store: MessageStore, records: PreparedRecords) -> bool:
    """Whether the compiled form appends it."""
    assert type(records) is PreparedTable
    with store.write_lock():
        return store._appender._batch.append(records, START_MS) is not None


def test_it_appends_once_all_is_known(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0)) as store:
        assert not in_one_step(store, column("0")), "there is no file"
        for number in range(2):
            store.put(column(f"{number}"))
        assert in_one_step(store, column("2"))
        assert in_one_step(store, column("3", queues=1))
        assert not in_one_step(store, column("4", queues=3)), "there is no such queue"
        assert in_one_step(store, column("5", size=2000)), "through the descriptor"
        for number in range(60):
            store.put(column(f"6-{number}"))
        assert in_one_step(store, column("7", size=2000))
        assert in_one_step(store, column("8", size=40_000))
        store._shared.words[Word.FAILED] = 1
        assert not in_one_step(store, column("9"))
        store._shared.words[Word.FAILED] = 0
    with StoreView.open(root) as view:
        assert fsck(view).findings == []
        assert view.max_offset_in_queue("T", 0) == 20 + 10 + 20 + 10 + 600 + 20


def test_a_clock_that_goes_back_takes_no_store_time_back(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0)) as store:
        for number in range(2):
            store.put(column(f"{number}"))
        for later_ms, expected_ms in ((0, 0), (-5000, 0), (3000, 3000), (2999, 3000)):
            records = column("2")
            assert type(records) is PreparedTable
            with store.write_lock():
                result = store._appender._batch.append(records, START_MS + later_ms)
            assert result is not None
            last = int(result.queue_offsets[-1])
            assert store.view.store_timestamp("T", 1, last) == START_MS + expected_ms


def test_it_puts_only_while_the_gate_is_held_on_to(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)

    def put_alone(store: MessageStore, name: str, size: int = 100) -> bool:
        records = column(name, size=size)
        assert type(records) is PreparedTable
        return type(store._appender.one.put_batch(*records.parts)) is PutMessageResult

    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True) as store:
        for number in range(4):
            store.put(column(f"{number}"))
        assert put_alone(store, "a")
        with store.write_lock():
            assert not put_alone(store, "b"), "somebody has the turn"
        assert put_alone(store, "c")
        assert put_alone(store, "large", size=2000)
    assert not put_alone(store, "d"), "it is closed"
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 7 * 10
        assert fsck(view).findings == []


@pytest.mark.parametrize("exclusive", [False, True])
def test_with_sync_flush_each_batch_is_on_the_device_when_its_put_returns(
    tmp_path: Path, exclusive: bool
) -> None:
    config = sync_flush(ROOMY)
    root = new_store(tmp_path / "store", config)
    fs = DurableFileSystem(root)
    with open_store(root, config, fs=fs, clock=Ticking(step=0), exclusive=exclusive) as store:
        store.start_services()
        for number in range(1, 6):
            assert store.put(column(f"{number}")).status is PutMessageStatus.PUT_OK
            after_power_loss = fs.buffer(tmp_path / f"cut-{number}")
            with StoreView.open(after_power_loss) as view:
                assert view.max_offset_in_queue("T", 0) == number * 10
    fs.forget()


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_failed_write_is_one_clear_error_and_loses_nothing(
    tmp_path: Path, exclusive: bool
) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    whole = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=exclusive) as store:
        for number in range(4):
            store.put(column(f"{number}", size=2000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (store.log_end + 10_000, whole[1]))
        try:
            with pytest.raises(StoreBrokenError, match="File too large"):
                store.put(column("a", size=2000))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, whole)
        with pytest.raises(StoreBrokenError):
            store.put(column("b"))
    with open_store(root, ROOMY) as store:
        store.put(column("c"))
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 5 * 10
        assert fsck(view).findings == []


def test_who_waits_is_rung(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0), exclusive=True) as store:
        for number in range(4):
            store.put(column(f"{number}"))
        assert is_rung_by(store, lambda: store.put(column("a")).status is PutMessageStatus.PUT_OK)


def test_single_messages_before_it_have_their_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    single = b"KEYS\x01single"
    message = MessageInner("T", 0, b"body", single, START_MS, HOST, HOST, keys=("single",))
    with open_store(root, ROOMY, clock=Ticking(step=0)) as store:
        for number in range(2):
            store.put(column(f"{number}"))
        for number in range(3):
            store.put_message(message)
            assert in_one_step(store, column(f"{number}"))
            store.put_message(message)
        monkeypatch.setattr(native, "compiled", None)  # readers need more of it, if it is hidden
        assert len(store.view.query_message("T", "single", 32, 0, 2 * START_MS).messages) == 6
    with StoreView.open(root) as view:
        assert fsck(view).findings == []


def test_two_openings_take_turns(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with (
        open_store(root, ROOMY, clock=Ticking(step=0)) as one,
        open_store(root, ROOMY, clock=Ticking(step=0)) as other,
    ):
        for number in range(150):
            (one, other)[number % 3 == 1].put(column(f"{number}", count=40))
    with StoreView.open(root) as view:
        assert view.max_offset_in_queue("T", 0) == 150 * 20
        assert fsck(view).findings == []


def test_pages_that_are_made_ahead_are_written_over_nothing(tmp_path: Path) -> None:
    """Two openings, whose own pages end at different places, by batches of up to 300 KiB."""
    odd = ROOMY.with_(mapped_file_size_commit_log=(4 << 20) + (100 << 10))
    root = new_store(tmp_path / "store", odd)
    rng, sent = random.Random(7), 0
    with (
        open_store(root, odd, clock=Ticking(step=0)) as one,
        open_store(root, odd, clock=Ticking(step=0)) as other,
    ):
        for number in range(150):
            size = rng.choice([100, 1_000, 2_000, 6_000, 12_000, 15_000])
            store = rng.choice([one, other])
            assert store.put(column(f"{number}", size=size)).status is PutMessageStatus.PUT_OK
            sent += 20
        end = one.log_end
    with StoreView.open(root) as view:
        assert fsck(view).findings == []
        assert sum(view.max_offset_in_queue("T", queue_id) for queue_id in range(2)) == sent
    files = sorted((root / "commitlog").iterdir())
    assert {path.stat().st_size for path in files} == {odd.mapped_file_size_commit_log}
    last = files[-1]
    following = last.read_bytes()[end - int(last.name) :]
    assert not any(following)


def test_a_long_run_leaves_nothing_behind_its_end(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", ROOMY)
    with open_store(root, ROOMY, clock=Ticking(step=0)) as store:
        for number in range(200):
            store.put(column(f"{number}", count=100))
        end = store.log_end
    assert end > ROOMY.mapped_file_size_commit_log
    files = sorted((root / "commitlog").iterdir())
    data = b"".join(path.read_bytes() for path in files)
    assert not any(data[end:])
    for queue_id in range(2):
        files = sorted((root / "consumequeue" / "T" / str(queue_id)).iterdir())
        data = b"".join(path.read_bytes() for path in files)
        assert not any(data[20 * 10_000 :])
    with StoreView.open(root) as view:
        assert fsck(view).findings == []


def test_what_is_no_batch_is_refused() -> None:
    appending = compiled.appending(tuple, 0, None, [], 10)
    table = prepare([MessageInner("T", 0, b"", b"", 0, HOST, HOST)] * 2)
    assert type(table) is PreparedTable
    good = (table.buffer, table.table, table.queues, table.key_hashes, START_MS)
    assert appending.append_batch(*good) == 1, "it knows no page"
    for place, wrong in ((0, b""), (1, "x"), (1, b"x"), (2, ()), (3, None), (3, b"x")):
        with pytest.raises((TypeError, ValueError)):
            appending.append_batch(*good[:place], wrong, *good[place + 1 :])
    with pytest.raises(TypeError):
        appending.append_batch(*good[:4])
    assert appending.put_batch(*good[:4]) is None, "it has no gate"
    with pytest.raises(ValueError, match="index"):
        appending.use_index(bytearray(9), 1, 0, 0, 0, 0)


messages = st.one_of(
    st.builds(
        lambda body, queue_id, delay: MessageInner(
            "T", queue_id, body, b"", START_MS, HOST, HOST, keys=("k",),
            delay_time_level=int(delay > 0), delay_ms=delay,
        ),
        st.binary(max_size=300), st.integers(0, 2), st.integers(-1, 3),
    ),
    inner_messages(ipv4_hosts | ipv6_hosts),
)  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(st.lists(messages, min_size=2, max_size=12), max_size=30),
    config=st.sampled_from([ROOMY, TIGHT, ROOMY.with_(message_index_enable=False)]),
    run=st.booleans(),
)
def test_any_batches_leave_the_same_bytes_and_say_the_same(
    batches: list[list[MessageInner]],
    config: StoreConfig,
    run: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = MessageInner("T", 0, b"body", b"", START_MS, HOST, HOST, keys=("k", "l"))
    batches = [[plain._replace(queue_id=i % 3) for i in range(6)], *batches]
    found = []
    with fast_folder() as folder:
        for form in (compiled, None):
            monkeypatch.setattr(native, "compiled", form)
            found.append(outcome(folder / str(form is None), batches, config, run=run))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]


def outcome(
    root: Path, batches: list[list[MessageInner]], config: StoreConfig, *, run: bool
) -> tuple[list[object], dict[str, bytes]]:
    """What each put said, and the bytes of all files."""
    MessageStore.create(root, config)
    said: list[object] = []
    with MessageStore.open(root, config, clock=lambda: START_MS) as store:
        if run:
            store._appender.one.begin_run()
        for several in batches:
            result = store.put(prepare(several))
            said.append(
                (result.status, [*result.commitlog_offsets], [*result.queue_offsets], result[3:])
            )
    files = {}
    for name in ("commitlog", "consumequeue", "index"):
        for number, path in enumerate(sorted((root / name).rglob("*"))):
            if path.is_file():
                # an index file's name is the time it was made
                known = number if name == "index" else path.relative_to(root)
                files[f"{name} {known}"] = path.read_bytes()
    return said, files
