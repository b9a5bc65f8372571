"""Checks of what programs pass to producers and consumers.

Each error names what was given, what is allowed and what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field
from os import PathLike
from typing import TYPE_CHECKING, Any

from broker.validation import typed
from storage.format.message import MessageExt, MessageQueue
from storage.frozen_settings import checked_setting

from .errors import ClientArgumentError, ClientConfigError

if TYPE_CHECKING:
    from broker.api.broker import Broker


def checked_brokers(brokers: Iterable[Broker], owner: type, group: str) -> list[Broker]:
    """Give the brokers of a producer or consumer as a list.

    Raises ClientArgumentError for what is no list of brokers: the usual mistake is the path of a
    store.
    """
    given: object = brokers
    if is_path(given) or is_broker(given) or not isinstance(given, Iterable):
        raise ClientArgumentError(f"brokers is {typed(given)}; {_remedy(given, owner, group)}")
    found = list(brokers)
    for it in found:
        if not is_broker(it):
            raise ClientArgumentError(
                f"brokers holds {typed(it)}, which is no broker; {_remedy(it, owner, group)}"
            )
    return found


def is_path(value: object) -> bool:
    """Return whether a value can only be meant as the path of a store."""
    return isinstance(value, str | bytes | PathLike)


def is_broker(value: object) -> bool:
    """Return whether a value has the methods of a broker that clients call first."""
    return hasattr(value, "heartbeat") and hasattr(value, "connect") and hasattr(value, "pull")


def _remedy(given: object, owner: type, group: str) -> str:
    if is_broker(given):
        return "it is a list of brokers: brokers=[broker]"
    if is_path(given):
        return (
            f"use {owner.__name__}.open({given!r}, {group!r}), or pass "
            f"brokers=[EmbeddedBroker.open({given!r})]"
        )
    return "pass brokers=[EmbeddedBroker.open(FOLDER)]"


def check_folder(store: object) -> None:
    """Refuse what is no path of a store. Raises ClientArgumentError."""
    if is_broker(store):
        raise ClientArgumentError(
            "the store is a broker; open() takes the path of a folder: pass the broker as "
            "brokers=[broker]"
        )
    if not isinstance(store, str | PathLike):
        raise ClientArgumentError(f"the store is {typed(store)}; it is the path of a folder")


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse settings of another class; None is the defaults. Raises ClientArgumentError."""
    if value is not None and not isinstance(value, kind):
        raise ClientArgumentError(
            f"{name} is {typed(value)}; it is a {kind.__name__}: "
            f"{name}={kind.__name__}(...), or leave it out for the defaults"
        )


def check_methods(name: str, value: object, methods: Sequence[str], kind: str) -> None:
    """Refuse an object without some methods, and a class. Raises ClientArgumentError."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing or isinstance(value, type):
        raise ClientArgumentError(
            f"{name} is {typed(value)}; it is {kind}, an object with {' and '.join(methods)}"
        )


def check_callable(name: str, value: object) -> None:
    """Refuse what cannot be called; None is fine. Raises ClientArgumentError."""
    if value is not None and not callable(value):
        raise ClientArgumentError(f"{name} is {typed(value)}; it is a function")


def check_listener(listener: object) -> None:
    """Refuse what is no listener, and a class in place of its object.

    Raises ClientArgumentError.
    """
    function = getattr(listener, "consume_message", listener)
    if listener is None or not callable(function) or isinstance(listener, type):
        made = f"; make one: {listener.__name__}()" if isinstance(listener, type) else ""
        raise ClientArgumentError(
            f"the listener is {typed(listener)}; it is a function of (messages, context), or an "
            f"object with such a method consume_message{made}"
        )


def check_queue(queue: object, from_where: str = "fetch_subscribe_message_queues(topic)") -> None:
    """Refuse what is no queue. Raises ClientArgumentError."""
    if not isinstance(queue, MessageQueue):
        raise ClientArgumentError(
            f"{typed(queue)} is no MessageQueue; take one of {from_where}, or make one: "
            "MessageQueue(topic, broker_name, queue_id)"
        )


def checked_queues(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    """Give queues as a list. Raises ClientArgumentError for what is no list of queues."""
    given: object = queues
    if isinstance(given, MessageQueue | str | bytes) or not isinstance(given, Iterable):
        what = "a list of one: [queue]" if isinstance(given, MessageQueue) else "a list of them"
        raise ClientArgumentError(f"the queues are {typed(given)}; pass {what}")
    found = list(queues)
    for queue in found:
        check_queue(queue)
    return found


def check_stored(message: object) -> None:
    """Refuse what is no message that was pulled. Raises ClientArgumentError."""
    if not isinstance(message, MessageExt):
        raise ClientArgumentError(
            f"{typed(message)} is no message that was pulled; pass a MessageExt as the consumer "
            "got it"
        )


def check_whole(
    name: str, value: object, least: int | None = None, most: int | None = None
) -> None:
    """Refuse what is no whole number, and one below ``least`` or above ``most``.

    Raises ClientArgumentError, and ClientConfigError for a number that is too small or too large.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise ClientArgumentError(f"{name} is {typed(value)}; it is a whole number")
    if least is not None and value < least:
        raise ClientConfigError(f"{name} is {value}; it must be {least} or more")
    if most is not None and value > most:
        raise ClientConfigError(f"{name} is {value}; it must be {most} or less")


def check_time(name: str, value: int) -> None:
    """Refuse a time (ms) other than 0 before 1990 or after 2200. Raises ClientConfigError."""
    from storage.parse.times import check_timestamp

    try:
        check_timestamp(name, value)
    except ValueError as error:
        raise ClientConfigError(str(error)) from None


def check_text(name: str, value: object, *, none: bool = True) -> None:
    """Refuse what is no text; ``none``: None is fine. Raises ClientArgumentError."""
    if not isinstance(value, str) and not (none and value is None):
        raise ClientArgumentError(f"{name} is {typed(value)}; it is a str")


def check_settings(
    config: object,
    settings: Iterable[Field[Any]],
    ranges: Mapping[str, tuple[int, int]],
    name_of: Callable[[str], str] = str,
) -> None:
    """Check the values of a frozen dataclass of settings, and put them as the class has them.

    See ``checked_setting``; a setting whose default is computed is a number, a text whose default
    is empty may be empty. ``name_of`` spells a name for errors. Raises ClientConfigError,
    ClientArgumentError for a wrong type.
    """
    for setting in settings:
        name, default = setting.name, 0 if setting.default is MISSING else setting.default
        given = getattr(config, name)
        try:
            value = checked_setting(
                name_of(name), given, default, ranges.get(name), may_be_empty=default == ""
            )
        except TypeError as error:
            raise ClientArgumentError(str(error)) from None
        except ValueError as error:
            raise ClientConfigError(str(error)) from None
        if value is not given:
            object.__setattr__(config, name, value)
