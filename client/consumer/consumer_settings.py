"""Settings of a consumer by RocketMQ's names, as text: ``consumeTimeout=5``."""

from __future__ import annotations

import dataclasses
import difflib
import time
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.api.members import MessageModel
from broker.api.offsets import ConsumeFromWhere
from client.errors import ClientConfigError
from client.runtime.client_config import ClientConfig

from .consumer_config import ConsumerConfig, rocketmq_name

if TYPE_CHECKING:
    from collections.abc import Mapping

CONSUME_TIMESTAMP_FORMAT: Final = "%Y%m%d%H%M%S"


class Setting(NamedTuple):
    """A setting that can be given as text. ``owner`` is the config class that has the field."""

    name: str
    owner: type
    field: str
    default: object
    parse: Callable[[str], object]


def parse_consume_timestamp(text: str) -> int:
    """Read ``yyyyMMddHHmmss`` in local time as ms since the epoch. Raises ClientConfigError."""
    try:
        if len(text) != len("yyyyMMddHHmmss"):
            raise ValueError(text)
        return int(time.mktime(time.strptime(text, CONSUME_TIMESTAMP_FORMAT))) * 1000
    except (ValueError, OverflowError) as error:
        raise ClientConfigError(
            f"consumeTimestamp is invalid, the valid format is yyyyMMddHHmmss, but received {text}"
        ) from error


@cache
def consumer_settings() -> Mapping[str, Setting]:
    """Give all settings of a consumer and of its client instance, by RocketMQ's name."""
    found = {}
    for owner in (ConsumerConfig, ClientConfig):
        for field in dataclasses.fields(owner):
            has_default = field.default is not dataclasses.MISSING
            parse = _PARSERS.get(field.name) or _TYPES[type(field.default)]
            name = rocketmq_name(field.name)
            default = field.default if has_default else None
            found[name] = Setting(name, owner, field.name, default, parse)
    return found


def set_by_name(
    assignments: Iterable[str],
    config: ConsumerConfig | None = None,
    client_config: ClientConfig | None = None,
) -> tuple[ConsumerConfig, ClientConfig]:
    """Change settings by ``NAME=VALUE``; the last one of a name counts.

    Raises ClientConfigError for an unknown name, with the nearest known one, and for a value of
    another type or out of its range.
    """
    known = consumer_settings()
    changes: dict[type, dict[str, Any]] = {ConsumerConfig: {}, ClientConfig: {}}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        name = name.strip()
        if not equals:
            raise ClientConfigError(f"{assignment!r} is no NAME=VALUE")
        setting = known.get(name)
        if setting is None:
            raise ClientConfigError(f"no consumer setting is called {name!r}{_nearest(name)}")
        try:
            changes[setting.owner][setting.field] = setting.parse(value.strip())
        except ClientConfigError:
            raise
        except ValueError as error:
            raise ClientConfigError(f"{name} cannot be {value.strip()!r}: {error}") from error
    return (
        dataclasses.replace(config or ConsumerConfig(), **changes[ConsumerConfig]),
        dataclasses.replace(client_config or ClientConfig(), **changes[ClientConfig]),
    )


def _nearest(name: str) -> str:
    by_lower = {known.lower(): known for known in consumer_settings()}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return f"; do you mean {by_lower[near[0]]}?" if near else ""


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("it is a whole number") from None


def _bool(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("it is true or false")
    return text.lower() == "true"


def _one_of(kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    def parse(text: str) -> StrEnum:
        try:
            return kind(text.upper())
        except ValueError:
            raise ValueError(f"it is one of {', '.join(kind)}") from None

    return parse


_TYPES: Final[Mapping[type, Callable[[str], object]]] = {
    int: _int,
    bool: _bool,
    str: str,
    MessageModel: _one_of(MessageModel),
    ConsumeFromWhere: _one_of(ConsumeFromWhere),
}
_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "consume_timestamp": parse_consume_timestamp,
}
