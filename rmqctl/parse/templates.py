r"""The template language of ``-f``, for the output of ``consume`` and the input of ``produce``.

======== ====================== ======== ===========================================
``%t``   topic                  ``%T``   store time, ms      ``%B`` born time, ms
``%q``   queue (also ``%p``)    ``%d``   store time, ISO 8601; ``%d{FORMAT}`` as strftime
``%o``   queue offset           ``%h``   user properties, ``a=1,b=2``
``%P``   commit log position    ``%m``   message id          ``%M`` offset message id
``%k``   keys                   ``%r``   attempts so far (reconsumeTimes)
``%g``   tags                   ``%b``   born host           ``%i`` counter from 1
``%s``   body (also ``%v``)     ``%S``   its length in bytes
``%%``   a percent sign         ``\n \t \r \0 \\ \xNN``
======== ====================== ======== ===========================================

A field may be followed by ``{hex}``, ``{base64}`` or ``{json}``: ``%s{base64}``. No line end is
added: write ``%s\n`` for lines.
"""

import base64
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Final, NamedTuple

from storage.format.errors import BodyError
from storage.parse.times import format_time, to_datetime

from .lists import unescape

if TYPE_CHECKING:
    from storage.format.message import MessageExt

FIELDS: Final = "tqpoPkgsvSTBdhmMrbi"
MODIFIERS: Final = ("hex", "base64", "json")
_ALIASES: Final = {"p": "q", "v": "s"}
_PIECE: Final = re.compile(
    r"%(?P<field>.)(?:\{(?P<modifier>[^}]*)\})?|\\(?:x[0-9A-Fa-f]{2}|.)|[^%\\]+|[%\\]$", re.DOTALL
)


class Field(NamedTuple):
    """One ``%x`` of a template; ``modifier`` is one of :data:`MODIFIERS` or a strftime format."""

    code: str
    modifier: str


def parse_template(text: str) -> list[Field | bytes]:
    """The fields of a template and the bytes between them, in order."""
    pieces: list[Field | bytes] = []

    def literal(data: bytes) -> None:
        if pieces and isinstance(pieces[-1], bytes):
            pieces[-1] += data
        else:
            pieces.append(data)

    for found in _PIECE.finditer(text):
        whole, code, modifier = found.group(), found["field"], found["modifier"]
        if code is None:
            if whole == "%":
                raise ValueError(
                    f"template {text!r} ends with a single % (write %% for a percent sign)"
                )
            literal(unescape(whole))
        elif code == "%":
            literal(b"%" + (b"" if modifier is None else ("{" + modifier + "}").encode()))
        elif code not in FIELDS:
            raise ValueError(f"unknown field %{code} in template {text!r} (known: %{FIELDS})")
        elif modifier is not None and code != "d" and modifier not in MODIFIERS:
            raise ValueError(
                f"unknown modifier {{{modifier}}} in template {text!r} "
                f"(known: {', '.join(MODIFIERS)})"
            )
        else:
            if code == "d" and modifier:
                _check_form(modifier)
            pieces.append(Field(_ALIASES.get(code, code), modifier or ""))
    return pieces


class OutputTemplate:
    """A template compiled for printing."""

    def __init__(
        self,
        text: str,
        zone: tzinfo | None = None,
        shield: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Compile ``text``; ``shield`` is applied to values of messages."""
        self._pieces: list[bytes | Callable[[MessageExt], bytes]] = []
        self._shield = shield
        self._count = 0
        for piece in parse_template(text):
            if isinstance(piece, bytes):
                self._pieces.append(piece)
            else:
                self._pieces.append(self._shielded(_writer(piece, zone, self)))

    def format(self, message: "MessageExt") -> bytes:
        """The message by the template, as UTF-8; the body keeps its bytes."""
        text = b"".join([p if isinstance(p, bytes) else p(message) for p in self._pieces])
        self._count += 1
        return text

    def join(self, items: "Iterable[bytes | MessageExt]") -> bytes:
        """Messages by the template, and texts as they are. A BodyError counts none of them."""
        before, form = self._count, self.format
        try:
            return b"".join([item if isinstance(item, bytes) else form(item) for item in items])
        except BodyError:
            self._count = before
            raise

    def _shielded(self, write: "Callable[[MessageExt], bytes]") -> "Callable[[MessageExt], bytes]":
        shield = self._shield
        return write if shield is None else lambda message: shield(write(message))

    @property
    def count(self) -> int:
        """Number of formatted messages; ``%i`` prints that of a message."""
        return self._count


def _writer(
    field: Field, zone: tzinfo | None, template: OutputTemplate
) -> "Callable[[MessageExt], bytes]":
    code, modifier = field
    if code == "d":
        return _date_writer(modifier, zone)
    read = _reader(code, template)
    if code == "h":
        return lambda message: _properties(message, modifier)
    match modifier:
        case "hex":
            return lambda message: _as_bytes(read(message)).hex().encode()
        case "base64":
            return lambda message: base64.b64encode(_as_bytes(read(message)))
        case "json":
            return lambda message: _as_json(read(message))
        case _:
            return lambda message: _as_bytes(read(message))


def _reader(
    code: str, template: OutputTemplate
) -> "Callable[[MessageExt], str | bytes | int | None]":
    readers: dict[str, Callable[[MessageExt], str | bytes | int | None]] = {
        "t": lambda m: m.topic,
        "q": lambda m: m.queue_id,
        "o": lambda m: m.queue_offset,
        "P": lambda m: m.commitlog_offset,
        "k": lambda m: " ".join(m.keys),
        "g": lambda m: m.tags,
        "s": lambda m: m.body,
        "S": lambda m: len(m.body),
        "T": lambda m: m.store_timestamp,
        "B": lambda m: m.born_timestamp,
        "h": lambda m: None,
        "m": lambda m: m.msg_id,
        "M": lambda m: m.offset_msg_id,
        "r": lambda m: m.reconsume_times,
        "b": lambda m: m.born_host,
        "i": lambda m: template.count + 1,
    }
    return readers[code]


def _as_bytes(value: str | bytes | int | None) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"" if value is None else str(value).encode("utf-8", "surrogateescape")


def _as_json(value: str | bytes | int | None) -> bytes:
    import json

    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            value = None
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _date_writer(form: str, zone: tzinfo | None) -> "Callable[[MessageExt], bytes]":
    if not form:
        return lambda message: format_time(message.store_timestamp, zone, iso=True).encode()
    return lambda message: date_by(form, message.store_timestamp, zone)


def date_by(form: str, timestamp: int, zone: tzinfo | None) -> bytes:
    """A date by a strftime format; a timestamp outside of Python's calendar is its number."""
    try:
        return to_datetime(timestamp, zone).strftime(form).encode()
    except (OverflowError, ValueError):
        return str(timestamp).encode()


def _check_form(form: str) -> None:
    try:
        datetime(2026, 1, 31, tzinfo=UTC).strftime(form).encode()
    except ValueError:  # its bytes are no UTF-8, say
        raise ValueError(f"{form!r} is no format of a date") from None


def _properties(message: "MessageExt", modifier: str) -> bytes:
    from storage.format.message import RESERVED_PROPERTIES

    users = {n: v for n, v in message.properties.items() if n not in RESERVED_PROPERTIES}
    if modifier == "json":
        import json

        return json.dumps(users, ensure_ascii=False).encode("utf-8", "backslashreplace")
    text = ",".join(f"{name}={value}" for name, value in users.items())
    data = text.encode("utf-8", "surrogateescape")
    if modifier == "hex":
        return data.hex().encode()
    return base64.b64encode(data) if modifier == "base64" else data
