"""Of a queue that is only inspected nothing is read ahead: of thousands it would be gigabytes."""

from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.coordination.shared_state import SHARED_STATE_NAME
from storage.readonly import StoreView
from storage.store import MessageStore

MESSAGES = 2_000
END = "consumequeue/T/0/00000000000000000000"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "store"
    MessageStore.create(root, SMALL_STORE.with_(mapped_file_size_consume_queue=20 * 5_000))
    with EmbeddedBroker.open(root) as broker:
        broker.update_topic(TopicConfig("T", 1, 1))
        broker.send_column("T", [b"x"] * MESSAGES)
    return root


def read_ahead() -> list[bool]:
    """Of each map of the queue's file in this process: whether the kernel reads it ahead."""
    found, of_queue = [], False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if "-" in name and not name.endswith(":"):
            of_queue = rest.endswith(END)
        elif of_queue and name == "VmFlags:":
            found.append("rr" not in rest.split())
    return found


@pytest.mark.parametrize("shared", [True, False])
def test_ends_and_single_units_are_looked_at(root: Path, shared: bool) -> None:
    if not shared:
        (root / "rmqctl" / SHARED_STATE_NAME).unlink()
    with StoreView.open(root) as view:
        assert view.has_shared_state == shared
        assert view.queue_bounds("T", 0) == (0, MESSAGES)
        assert view.store_timestamp("T", 0, MESSAGES - 1) is not None
        assert len(view.units("T", 0, 100, 32)) == 32
        maps = read_ahead()
        assert maps
        assert not any(maps)


def test_what_reads_many_units_has_them_read_ahead(root: Path) -> None:
    with StoreView.open(root) as view:
        assert view.queue_bounds("T", 0) == (0, MESSAGES)
        assert read_ahead() == [False]
        assert len(view.units("T", 0, 0, MESSAGES)) == MESSAGES
        assert read_ahead() == [True]
        assert len(view.units("T", 0, 0, 1)) == 1
        assert read_ahead() == [True]
