"""Warnings about copied messages that consumers may not be able to use."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from rmqctl.admin.left_out import Named
from storage.format.prepared_many import at_any_byte
from storage.format.record import decode_record
from storage.format.sys_flag import MessageSysFlag
from storage.tools.fsck.bodies import unreadable_body

if TYPE_CHECKING:
    from storage.record_batch.record_batch import RecordBatch

_SYS_FLAG: Final = slice(36, 40)
_BODY_LENGTH_AT: Final = 84
_V6_MORE: Final = 12
_NONE: Final = bytes(4)
_SPECIAL: Final = (
    MessageSysFlag.COMPRESSED_FLAG
    | MessageSysFlag.BORNHOST_V6_FLAG
    | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG
)


def odd_rows(records: bytearray, block: "RecordBatch") -> list[int]:
    """The records of a block, whose bytes these are, that OddBodies.look may have to name."""
    odd = (block.sys_flag & _SPECIAL) != 0
    places = block.place[~odd] + _BODY_LENGTH_AT
    odd[~odd] = at_any_byte(records, np.dtype(">i4"))[places] == 0
    rows: list[int] = np.flatnonzero(odd).tolist()
    return rows


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
