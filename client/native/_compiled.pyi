"""What the C files beside this one offer; see client/native/__init__.py."""

from collections.abc import Callable, Iterator
from typing import Any

def bind_pulled(message_class: type, /) -> None:
    """Say what messages are; once, before the following three."""

def add_property_bytes(messages: list[Any] | tuple[Any, ...], items: bytes, /) -> None:
    """See client.consumer.pull_result.add_property_bytes."""

def run_of(messages: list[Any] | tuple[Any, ...], last: int, /) -> tuple[int, int] | None:
    """See client.listener.process_queue.run_of."""

def bind_calls(context_class: type, success: Any, ack_all: int, /) -> None:
    """Say what listeners are given, and what means that all is done; before ``call_quickly``."""

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
