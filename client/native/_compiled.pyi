"""The functions of the C files in this folder; see client/native/__init__.py."""

from collections.abc import Callable, Iterator
from typing import Any

def bind_pulled(message_class: type, /) -> None:
    """Bind the class of messages; once, before the following three."""

def add_property_bytes(messages: list[Any] | tuple[Any, ...], items: bytes, /) -> None:
    """See client.consumer.pull_result.add_property_bytes."""

def run_of(messages: list[Any] | tuple[Any, ...], last: int, /) -> tuple[int, int] | None:
    """See client.listener.process_queue.run_of."""

def bind_calls(context_class: type, success: Any, ack_all: int, /) -> None:
    """Bind the context classes and the status of success; before ``call_quickly``."""

def call_quickly(
    requests: Iterator[tuple[Any, ...]],
    listen: Callable[[tuple[Any, ...], Any], Any],
    queue: Any,
    item: bytes,
    until: float,
    clock: Callable[[], float] | None,
    process_queue: Any,
    pool: Any,
    finished: list[tuple[Any, ...]],
    /,
) -> tuple[tuple[Any, ...], Any, Any, BaseException | None] | None:
    """See ListenerLoop of client.listener.listener_loop."""
