"""Delayed messages that were sent before their time: ``<store>/rmqctl/delays-ended.json``.

The delay queue is append-only, so a message that was sent early still lies in it. rmqctl's delivery
skips the entries of this file; a Java broker ignores the file and delivers the message again. That
is why an entry is written only when the message is on the device elsewhere.

    {"version":1,"queues":{"2":[[17,40960],[19,41472]]}}

By queue of SCHEDULE_TOPIC_XXXX: queue offset and commit log offset. One line with a checksum
(checksummed_json), replaced as a whole under ``rmqctl/delays-ended.lock``; entries before the
level's saved offset are dropped with the next change.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from storage.coordination.locks import ProcessLock
from storage.errors import CorruptFileError, StoreNotWritableError, StoreVersionError
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import items, members, rows, table, whole
from storage.format.versions import FORMATS

from .checksummed_json import read_sealed, seal
from .config_file import FileIdent, ident_of, replace_file
from .delay_offsets import delay_offset_file, load_delay_offsets

ENDED_FILE: Final = "delays-ended.json"
ENDED_LOCK: Final = "delays-ended.lock"
VERSION: Final = FORMATS[ENDED_FILE]
_REMEDY: Final = (
    "'rmqctl store repair' takes it away; what was sent before its time comes once more then"
)

_SHAPE: Final = members({"queues": table(rows(items(whole(0), whole(0))), ids=True)})

Place = tuple[int, int]
"""Queue offset and commit log offset of a record in the delay topic."""


class EarlyDeliveries:
    """The file of one store. Safe for threads and processes; holds no descriptor open."""

    def __init__(self, root: Path, fs: FileSystem | None = None) -> None:
        self.path = root / OURS / ENDED_FILE
        self._root = root
        self._fs = fs or FileSystem()
        self._changing = ProcessLock(root / OURS / ENDED_LOCK)
        self._lock = threading.Lock()  # guards the two fields below
        self._known: dict[int, set[Place]] = {}
        self._read_at: FileIdent | None = None

    def has(self, queue_id: int, offset: int, commitlog_offset: int) -> bool:
        """Tell whether a delayed message was sent already; see ``of``."""
        return (offset, commitlog_offset) in self.of(queue_id)

    def of(self, queue_id: int) -> Collection[Place]:
        """Give those of a queue. One ``stat`` while nothing changes.

        A file that cannot be read counts as empty: a duplicate is better than a lost message.
        """
        with self._lock:
            ident = ident_of(self.path)
            if ident != self._read_at:
                try:
                    self._known = self._load()
                except (CorruptFileError, StoreVersionError) as error:
                    import logging  # a reader of the store does not load it

                    logging.getLogger("rmqctl.storage").warning(
                        "messages that were sent before their time may come: %s", error
                    )
                    self._known = {}
                self._read_at = ident
            return self._known.get(queue_id, ())

    def all(self) -> dict[int, set[Place]]:
        """Give all of them by queue. Raises CorruptFileError and StoreVersionError."""
        return self._load()

    def check(self) -> None:
        """Raise CorruptFileError and StoreVersionError as ``add`` would now; changes nothing."""
        self._load()
        load_delay_offsets(self._root)

    def add(self, places: Mapping[int, Iterable[Place]]) -> None:
        """Note messages by queue; on the device when this returns.

        Raises CorruptFileError, StoreVersionError and StoreNotWritableError.
        """
        try:
            self._fs.make_dirs(self.path.parent)
            with self._changing.held():
                known = self._load()
                for queue_id, more in places.items():
                    known.setdefault(queue_id, set()).update(more)
                delivered = load_delay_offsets(self._root)
                queues = {
                    queue_id: sorted(
                        place for place in found if place[0] >= delivered.get(queue_id + 1, 0)
                    )
                    for queue_id, found in known.items()
                }
                if any(len(queues[queue_id]) < len(known[queue_id]) for queue_id in known):
                    self._sync_delivered()
                line = seal({"version": VERSION, "queues": queues})
                replace_file(self._fs, self.path, line)
                self._fs.sync_dir(self.path.parent)
        except OSError as error:
            raise StoreNotWritableError(self.path, error.strerror or str(error)) from error

    def _sync_delivered(self) -> None:
        """Sync delayOffset.json: what its offsets pass over is about to be forgotten."""
        try:
            fd = self._fs.open(delay_offset_file(self._root).path, writable=False)
        except FileNotFoundError:
            return  # the offsets are those of its ``.bak``, which is on the device
        try:
            self._fs.sync(fd)
        finally:
            self._fs.close(fd)

    def _load(self) -> dict[int, set[Place]]:
        entry = read_sealed(self.path, VERSION, _SHAPE, remedy=_REMEDY)
        if entry is None:
            return {}
        return {
            int(queue_id): {(offset, place) for offset, place in places}
            for queue_id, places in entry["queues"].items()
        }
