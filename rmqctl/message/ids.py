"""What message ids tell by themselves: no store is asked."""

from typing import TYPE_CHECKING, Final

from rmqctl.errors import UsageProblem
from storage.format.host import unpack_host
from storage.format.message_id import decode_unique_id, parse_offset_msg_id

from .lookup_rows import IdRow

if TYPE_CHECKING:
    from datetime import tzinfo

KINDS: Final = ("offset", "unique")
_PORTS: Final = 1 << 16


def decoded_id(
    message_id: str, now_ms: int, zone: "tzinfo | None", kind: str | None = None
) -> IdRow:
    """Take an id apart, as ``kind`` or as what it looks like; UsageProblem for what is none.

    Both kinds have the same digits. A broker's has a port in four bytes behind the address, of
    which the first two are zero; there a client's has its process id.
    """
    try:
        host, offset = parse_offset_msg_id(message_id)
    except ValueError:
        raise UsageProblem(
            f"{message_id!r} is no message id: those of RocketMQ are 32 or 56 hex digits"
        ) from None
    port = int.from_bytes(host[-4:], "big")
    if kind is None:
        kind = "offset" if 0 < port < _PORTS and offset >= 0 else "unique"
    if kind == "offset":
        if port >= _PORTS or offset < 0:
            raise UsageProblem(f"{message_id} is no offset id: it names no port and log position")
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
