"""Warnings about copied messages that consumers may not be able to use."""

from collections.abc import Callable
from typing import Final

from rmqctl.admin.left_out import Named
from storage.format.record import decode_record
from storage.format.sys_flag import MessageSysFlag
from storage.tools.fsck.bodies import unreadable_body

_SYS_FLAG: Final = slice(36, 40)
_BODY_LENGTH_AT: Final = 84
_V6_MORE: Final = 12
_NONE: Final = bytes(4)


class OddBodies:
    """Checks each copied record; names empty bodies and bodies that cannot be unpacked."""

    def __init__(self, tell: Callable[[str], object], *, unpacks: bool) -> None:
        """``unpacks``: bodies are unpacked anyway, so unreadable ones are not copied."""
        self._unpacks = unpacks
        self._empty = Named(tell, "; it was copied, and it blocks groups of Java consumers")
        self._unreadable = Named(tell, "; it was copied as it is")

    def look(self, record: bytes) -> None:
        """Check a copied record."""
        flags = int.from_bytes(record[_SYS_FLAG], "big")
        at = _BODY_LENGTH_AT
        if flags & MessageSysFlag.BORNHOST_V6_FLAG:
            at += _V6_MORE
        if flags & MessageSysFlag.STOREHOSTADDRESS_V6_FLAG:
            at += _V6_MORE
        if record[at : at + 4] == _NONE:
            self._empty.add(f"{decode_record(record).place} has an empty body")
        elif flags & MessageSysFlag.COMPRESSED_FLAG and not self._unpacks:
            why = unreadable_body(memoryview(record), 0, len(record))
            if why is not None:
                self._unreadable.add(why)

    def finish(self) -> None:
        """Print the number of further messages."""
        self._empty.finish()
        self._unreadable.finish()
