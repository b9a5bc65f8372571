"""A message that is refused makes no topic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from broker.api.broker import Broker
from broker.api.send import DEFAULT_SEND, RowColumns
from broker.errors import BrokerError
from storage.format.message import Message

Send = Callable[[Broker], object]


def message(body: object = b"x", flag: int = 0, **properties: str) -> Message:
    made = Message("new", body, flag=flag)  # type: ignore[arg-type]
    made.properties.update(properties)
    return made


def one(queue_id: int | None = 0, **parts: object) -> Send:
    return lambda broker: broker.send(message(**parts), queue_id)  # type: ignore[arg-type]


def batch(queue_id: int | None = 0, **parts: object) -> Send:
    return lambda broker: broker.send_batch(
        [message(), message(**parts)],  # type: ignore[arg-type]
        queue_id,
    )


def column(queue_ids: int | list[int] | None = 0, **properties: str) -> Send:
    return lambda broker: broker.send_column("new", [b"x"], queue_ids, properties=properties)


def rows(queue_ids: int | list[int], properties: bytes = b"") -> Send:
    columns = RowColumns(
        ["new", "old"],
        [b"x", b"y"],
        queue_ids,
        [properties, b""],
        [None, None],
        ["", ""],
        [0, 0],
    )
    return lambda broker: broker.send_rows(columns, DEFAULT_SEND)


LONG = "v" * 40_000
SURROGATE = "\ud800"


@pytest.mark.parametrize(
    "send",
    [
        one(a=LONG),
        one(a=SURROGATE),
        one(DELAY="soon"),
        one(TRAN_MSG="true", DELAY="3"),
        one(queue_id=99),
        one(flag=1 << 40),
        one(body="text"),
        batch(a=LONG),
        batch(a=SURROGATE),
        batch(DELAY="3"),
        batch(queue_id=99),
        batch(body="text"),
        column(a=LONG),
        column(a=SURROGATE),
        column(a=LONG, DELAY="3"),
        column(99),
        column([99]),
        rows([0, 99]),
        rows([99, 0]),
        rows(0),
        rows([0, 0], b"a\x01" + b"v" * 40_000),
    ],
)
def test_a_message_that_is_refused_makes_no_topic(broker, send):
    broker.send(Message("old", b"x"), 0)
    with pytest.raises(BrokerError):
        send(broker)
    assert broker.topic("new") is None
    assert "new" not in broker.topics()


@pytest.mark.parametrize(
    "send",
    [one(3), one(None), one(1, DELAY="1"), batch(2), column(None), column([3]), rows([2, 0])],
)
def test_one_that_is_stored_makes_its_topic(broker, send):
    broker.send(Message("old", b"x"), 0)
    send(broker)
    assert broker.topic("new").write_queue_nums == 4
