"""Messages that cannot be read: what the option ``onDamage`` makes of them.

    fail   the query fails and names the first one (default)
    skip   they are left out
    null   a row has their place in the queue, and ``_damage`` says where the record is and what is
           wrong with it; all other columns are null

A place from which ``store repair`` took the message is none of them: it has no row in any form.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from analytics.datasource.query.errors import DamagedError
from analytics.datasource.query.tables import FAIL, NULL
from storage.format.check import CheckKind, check_record
from storage.format.cq_unit import PRE_BLANK_SIZE
from storage.format.names import file_name
from storage.format.record import RecordError, decode_record
from storage.read.replaced import is_tombstone

if TYPE_CHECKING:
    from analytics.datasource.plan.ranges import Range
    from storage.readonly import StoreView

logger = logging.getLogger("rmqctl.datasource")


class Damages:
    """The messages of a task that cannot be read."""

    def __init__(self, on_damage: str = FAIL) -> None:
        self._on_damage = on_damage
        self.count = 0
        self._first = ""

    @property
    def have_rows(self) -> bool:
        """Whether there is a row for each."""
        return self._on_damage == NULL

    def found(self, sentence: str) -> None:
        """Count one. Raises DamagedError, unless the option says otherwise."""
        if self._on_damage == FAIL:
            raise DamagedError(
                f"{sentence}; 'rmqctl store fsck' tells more, onDamage=skip leaves such messages "
                "out"
            )
        self.count += 1
        self._first = self._first or sentence

    def tell(self) -> None:
        """Warn once of all of them, in the log of the worker."""
        if self.count:
            count = "1 message" if self.count == 1 else f"{self.count} messages"
            what = "a row with its place alone" if self.have_rows else "no row"
            logger.warning(
                "%s cannot be read: %s for each, the first: %s", count, what, self._first
            )


def sentence_of(part: Range, at: int, reason: str) -> str:
    """Which message cannot be read, and why."""
    return (
        f"{part.path}: message {at} of {part.topic}, queue {part.queue_id}, cannot be read: "
        f"{reason}"
    )


def damage_of(view: StoreView, part: Range, at: int) -> str | None:
    """Why a message that was not read cannot be; None where there is none on purpose."""
    unit = view.unit(part.topic, part.queue_id, at)
    if unit is None:
        return "its unit is missing"
    place, size, _ = unit
    if (place, size) == (0, PRE_BLANK_SIZE):
        return None
    if size <= 0 or place < 0:
        return f"its unit names no record ({size} bytes at commit log offset {place})"
    if is_tombstone(view, place):
        return None
    where = f"commit log offset {place}"
    log_size = view.config.mapped_file_size_commit_log
    first = place - place % log_size
    file = view.files.log.at(first)
    if file is None:
        return f"{where}: the log has no file {file_name(first)}"
    found = check_record(file.view, place - first, file.length)
    if found.kind is CheckKind.BLANK:
        return f"{where}: no record begins there"
    if found.kind is CheckKind.INVALID:
        return f"{where}: {found.reason}"
    if found.size != size:
        return f"{where}: the record has {found.size} bytes, its unit says {size}"
    try:
        record = decode_record(file.view, place - first, size)
    except RecordError as error:
        return f"{where}: {error}"
    if record.commitlog_offset != place:
        return f"{where}: the record there says that its offset is {record.commitlog_offset}"
    own = f"{record.topic}, queue {record.queue_id}, offset {record.queue_offset}"
    return f"{where}: the record there is of {own}"
