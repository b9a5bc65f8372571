"""The row of a stored message, as ``consume`` and the ``message`` commands print it."""

import base64
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, get_type_hints

from .fields import OmitNull, Rank, Wide
from .values import safe_json

if TYPE_CHECKING:
    from storage.format.message import MessageExt


class MessageRow(NamedTuple):
    """One stored message."""

    topic: Annotated[str, "the topic", Rank.MAIN]
    queue_id: Annotated[int, "the queue"]
    queue_offset: Annotated[int, "its queue offset"]
    tags: Annotated[str | None, "the tag", Rank.USUAL]
    keys: Annotated[list[str], "the keys"]
    body: Annotated[str | None, "the body after decompression; null if it is not UTF-8"]
    body_base64: Annotated[str | None, OmitNull("the body, only if it is not UTF-8")]
    msg_id: Annotated[str, "the unique id, else the offset id"]
    store_timestamp: Annotated[int, "when it was stored", Rank.KEY]
    born_timestamp: Annotated[int, "when the producer created it"]
    reconsume_times: Annotated[int, "how often it was sent back"]
    properties: Annotated[dict[str, str], Wide("every property as stored")]
    offset_msg_id: Annotated[str, Wide("store host and log position")]
    commitlog_offset: Annotated[int, Wide("position of its first byte in the commit log")]
    store_size: Annotated[int, Wide("bytes of the record")]
    body_size: Annotated[int, Wide("bytes of the body after decompression")]
    body_crc: Annotated[int, Wide("CRC-32 of the stored body")]
    flag: Annotated[int, Wide("the producer's flag")]
    sys_flag: Annotated[int, Wide("RocketMQ's flags: compression, transaction, IPv6")]
    born_host: Annotated[str, Wide("the producer's address")]
    store_host: Annotated[str, Wide("the broker's address")]
    prepared_transaction_offset: Annotated[int, Wide("queue offset of the half message")]


class Encoding(StrEnum):
    """How ``body`` or ``body_base64`` holds the body, with ``--body json``."""

    JSON = "json"
    """``body`` is the value of the JSON text; spaces and the form of numbers are lost."""
    TEXT = "text"
    """``body`` is a text that is not JSON."""
    BASE64 = "base64"
    """The body is not UTF-8: it is in ``body_base64``."""


ENCODING: Final = "body_encoding"
_Encoding = Annotated[str, Wide("json: body is a value; text: it is a text; base64: body_base64")]


def with_encoding(row_type: Any) -> Any:
    """A type of message rows with ``body_encoding`` after the other fields."""
    fields = get_type_hints(row_type, include_extras=True).items()
    return NamedTuple(f"{row_type.__name__}OfJson", [*fields, (ENCODING, _Encoding)])


JsonMessageRow = with_encoding(MessageRow)
"""The row of a message with ``--body json``."""


def json_message_row(message: "MessageExt") -> Any:
    """The row of a message whose body is a value, if it is JSON."""
    row = message_row(message, "text")
    encoding = Encoding.BASE64 if row.body is None else Encoding.TEXT
    if row.body is not None:
        from rmqctl.parse.json_texts import parse_json, write_json  # lazy: for --body json only

        try:
            value = parse_json(row.body)
            write_json(value)
        except ValueError:
            pass
        else:
            return JsonMessageRow(*row._replace(body=value), Encoding.JSON)
    return JsonMessageRow(*row, encoding)


def message_row(message: "MessageExt", body_form: str = "text") -> MessageRow:
    """The row of a message; ``body_form`` is text, json, hex, base64 or none."""
    body = message.body
    text, encoded = body_texts(body, body_form)
    return MessageRow(
        message.topic,
        message.queue_id,
        message.queue_offset,
        message.tags,
        list(message.keys),
        text,
        encoded,
        message.msg_id,
        message.store_timestamp,
        message.born_timestamp,
        message.reconsume_times,
        message.properties,
        message.offset_msg_id,
        message.commitlog_offset,
        message.store_size,
        len(body),
        message.body_crc,
        message.flag,
        message.sys_flag,
        message.born_host,
        message.store_host,
        message.prepared_transaction_offset,
    )


def readable_rows(
    left_out: Callable[[str], object], messages: "Iterable[MessageExt]"
) -> Iterator[MessageRow]:
    """The rows of messages; messages whose bodies cannot be unpacked are named and left out."""
    from storage.format.errors import BodyError

    for message in messages:
        try:
            yield message_row(message)
        except BodyError as error:
            left_out(f"left out {error}")


def body_texts(body: bytes, form: str) -> tuple[str | None, str | None]:
    """The values of ``body`` and ``body_base64``."""
    match form:
        case "none":
            return None, None
        case "hex":
            return body.hex(), None
        case "base64":
            return base64.b64encode(body).decode(), None
        case "json":
            return json_body(body), None
    try:
        return body.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, base64.b64encode(body).decode()


def json_body(body: bytes) -> str:
    """The body as one line of JSON: itself if it is JSON, else as a JSON string."""
    import json

    try:
        text = json.dumps(json.loads(body), ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(body.decode("utf-8", "replace"), ensure_ascii=False)
    return safe_json(text)
