"""Decoding of message ids, without a store."""

from typing import TYPE_CHECKING, Final

from rmqctl.errors import UsageProblem
from storage.format.host import unpack_host
from storage.format.message_id import decode_unique_id, parse_offset_msg_id

from .rows import IdRow

if TYPE_CHECKING:
    from datetime import tzinfo

KINDS: Final = ("offset", "unique")
_PORTS: Final = 1 << 16


def decode_id(
    message_id: str, now_ms: int, zone: "tzinfo | None" = None, kind: str | None = None
) -> IdRow:
    """Decode an id as ``kind`` (offset or unique), else by its digits; no store is needed.

    UsageProblem for another text. A unique id has no month: it is taken as that of
    ``now_ms``, or the one before.

    Both kinds have the same number of digits. A broker's id has a port in the four bytes after the
    address, of which the first two are zero; a client's id has its process id there.
    """
    try:
        host, offset = parse_offset_msg_id(message_id)
    except ValueError:
        raise UsageProblem(
            f"{message_id!r} is not a message id: RocketMQ's ids are 32 or 56 hex digits"
        ) from None
    port = int.from_bytes(host[-4:], "big")
    if kind is None:
        kind = "offset" if 0 < port < _PORTS and offset >= 0 else "unique"
    if kind == "offset":
        if port >= _PORTS or offset < 0:
            raise UsageProblem(
                f"{message_id} is not an offset id: it has no valid port and log position"
            )
        return IdRow(message_id.upper(), kind, unpack_host(host), offset, None, None, None, None)
    parts = decode_unique_id(message_id, now_ms, zone)
    address = unpack_host(parts.ip + bytes(4)).rpartition(":")[0].strip("[]")
    return IdRow(
        message_id.upper(),
        kind,
        address,
        None,
        parts.born_timestamp,
        parts.pid,
        f"{parts.loader_hash:08x}",
        parts.counter,
    )
