"""A broker in a child that is forked while a thread of its parent loads parts of another."""

from __future__ import annotations

from pathlib import Path
from types import CodeType

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support.examples import one_in
from tests.support.forking import Held, status_of_child
from tests.support.slim import Slim

PARTS = {
    "_sender": "broker/send/send.py",
    "_puller": "broker/pull/pull.py",
    "_arrivals": "broker/pull/message_arrival.py",
    "_transactions": "broker/transaction/transaction.py",
    "delayed": "broker/schedule/schedule.py",
    "members": "broker/members/manager.py",
    "redriving": "broker/retry/redrive.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("part", one_in(3, PARTS))
def test_a_child_forked_while_its_parent_loads_a_part_of_a_broker_has_its_own(
    tmp_path: Path, part: str
) -> None:
    """The thread holds the lock of an import too."""
    MessageStore.create(tmp_path / "store", SMALL_STORE)
    call = f"{__name__}:fork_beside_a_thread_that_loads_a_part"
    found = Slim(call, store=str(tmp_path / "store"), part=part).result()
    assert found == {"child": 0, "thread ends": True}


def fork_beside_a_thread_that_loads_a_part(store: str, part: str) -> dict[str, object]:
    def is_loaded(code: CodeType) -> bool:
        return code.co_name == "<module>" and code.co_filename.endswith(PARTS[part])

    def makes() -> bool:
        with EmbeddedBroker(MessageStore.open(store)) as mine:
            return getattr(mine, part) is not None

    with EmbeddedBroker(MessageStore.open(store)) as broker:
        thread = Held(lambda: getattr(broker, part), at=is_loaded)
        thread.goes_on_with_a_fork()
        return {"child": status_of_child(makes), "thread ends": thread.ends()}
