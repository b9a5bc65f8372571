"""A small store and the broker over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE, StoreConfig
from storage.store import MessageStore

OpenBroker = Callable[..., EmbeddedBroker]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    MessageStore.create(path, SMALL_STORE)
    return path


@pytest.fixture
def open_broker(root: Path) -> Iterator[OpenBroker]:
    """Open brokers over one store; all are closed after the test."""
    opened: list[EmbeddedBroker] = []

    def open_one(
        config: BrokerConfig | None = None, *, store_config: StoreConfig | None = None, **how: Any
    ) -> EmbeddedBroker:
        opened.append(EmbeddedBroker.open(root, config, store_config=store_config, **how))
        return opened[-1]

    yield open_one
    for broker in opened:
        broker.close()


@pytest.fixture
def broker(open_broker: OpenBroker) -> EmbeddedBroker:
    return open_broker()
