"""Why a consumer could not consume a message: user properties of the message it sends back.

RocketMQ keeps no reason: a retry or a dead letter does not show the failure. The names here are
ordinary user properties, so any client can read them. Each time a message is sent back they are
written anew, and they describe the last failure.

All of them together take less than 1 KiB. Where they would make a message's properties too long
for the store, the message goes without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from types import TracebackType
from typing import Final

FAILURE_CLASS: Final = "RMQCTL_FAILURE_CLASS"
"""Type of the exception, or the listener's answer."""
FAILURE_MESSAGE: Final = "RMQCTL_FAILURE_MESSAGE"
"""First line of its text."""
FAILURE_STACK: Final = "RMQCTL_FAILURE_STACK"
"""12 hex digits: equal for failures at the same place in the code."""
FAILURE_TIME: Final = "RMQCTL_FAILURE_TIME"
"""When, ms since the epoch."""
FAILURE_CLIENT: Final = "RMQCTL_FAILURE_CLIENT"
"""The consumer's client id."""

FAILURE_PROPERTIES: Final = (
    FAILURE_CLASS,
    FAILURE_MESSAGE,
    FAILURE_STACK,
    FAILURE_TIME,
    FAILURE_CLIENT,
)

MAX_CLASS_BYTES: Final = 128
MAX_MESSAGE_BYTES: Final = 256
MAX_CLIENT_BYTES: Final = 255
STACK_DIGITS: Final = 12
_LOOKED_AT: Final = 4  # times the kept length


def failure_properties(
    error: BaseException | None, client_id: str, now_ms: int, *, answer: str = ""
) -> dict[str, str]:
    """Describe a failure. ``error`` None: the listener raised nothing and returned ``answer``.

    Values are UTF-8 of at most the sizes above, without control characters; what is empty is
    left out. Never raises, whatever the exception's own methods do.
    """
    properties = {FAILURE_TIME: str(now_ms)}
    if error is None:
        name, message = answer, ""
    else:
        kind = type(error)
        name = kind.__qualname__
        if kind.__module__ != "builtins":
            name = f"{kind.__module__}.{name}"
        message = text_of(error)
        properties[FAILURE_STACK] = stack_hash(error)
    for key, text, most in (
        (FAILURE_CLASS, name, MAX_CLASS_BYTES),
        (FAILURE_MESSAGE, message, MAX_MESSAGE_BYTES),
        (FAILURE_CLIENT, client_id, MAX_CLIENT_BYTES),
    ):
        value = _short(text, most)
        if value:
            properties[key] = value
    return properties


def failure_text(properties: Mapping[str, str]) -> str | None:
    """Give type (without its module) and text of a failure; None if neither is recorded."""
    kind, text = properties.get(FAILURE_CLASS), properties.get(FAILURE_MESSAGE)
    kind = kind and kind.rpartition(".")[2]
    return ": ".join(part for part in (kind, text) if part) or None


def stack_hash(error: BaseException) -> str:
    """Hash where an exception came from: its type, and file and function of each frame.

    Line numbers do not count, so that an edit elsewhere in a file changes nothing; nor do folders.
    """
    from hashlib import sha1  # loads OpenSSL; a reader of reasons does not need it

    kind = type(error).__qualname__.encode("utf-8", "replace")
    digest = sha1(kind, usedforsecurity=False)
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        place = f"{PurePath(code.co_filename).name}:{code.co_qualname}"
        digest.update(place.encode("utf-8", "replace") + b"\n")
        frame = frame.tb_next
    return digest.hexdigest()[:STACK_DIGITS]


def text_of(thing: object) -> str:
    """Give the first line of the text of an exception, or of a listener's answer. Never raises,
    whatever its own methods do."""
    try:
        text = str(thing)
        return str.strip(text).partition("\n")[0]
    except BaseException:  # noqa: BLE001 - one whose __str__ raises must not lose the message
        return ""


def _short(text: str, most: int) -> str:
    """Make a property value of at most ``most`` bytes: no control characters, valid UTF-8.

    A text may have megabytes; no more of it is read than can be kept, plus a few control characters
    before it.
    """
    text = text[: _LOOKED_AT * most]
    clean = "".join(" " if ord(char) < 32 or 127 <= ord(char) < 160 else char for char in text)
    encoded = clean.strip().encode("utf-8", "replace")
    return encoded[:most].decode("utf-8", "ignore").strip()
