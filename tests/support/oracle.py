"""A checker of stores that shares no code with the store: it reads the bytes by the format.

It is stricter than any reader needs to be: queue and index files must be exactly what RocketMQ
would have written for the records of the log, from the first to the last one, and everything
after an end must be zero.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from storage.config import StoreConfig
from storage.platform import LINUX
from storage.platform.boot import boot_id

MESSAGE_MAGIC = -626843481
BLANK_MAGIC = -875286124
HEAD = struct.Struct(">iiiiiqqiq8sq8siqi")
UNIT = struct.Struct(">qiq")
INDEX_HEADER = struct.Struct(">4q2i")
ENTRY = struct.Struct(">iqii")
FILLER = UNIT.pack(0, 0x7FFFFFFF, 0)
# Words of the shared state that are checked (storage/coordination/shared_state.py).
STATE, STAGE, LOG_END, FAILED, KEYS_FROM = 6, 9, 10, 12, 14
NAMES_BYTES, INDEX_FILE, SLOTS = 18, 20, 16384
OPEN, CLOSED = 1, 2


class Record(NamedTuple):
    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    body: bytes
    properties: dict[str, str]
    store_timestamp: int

    @property
    def id(self) -> str:
        return self.properties.get("UNIQ_KEY", "")


class Found:
    """What lies in a store's files, and everything that is wrong with it."""

    def __init__(self, root: Path, config: StoreConfig, *, torn: bool = False) -> None:
        """``torn``: bodies may be damaged and queue offsets missing, as after a power loss."""
        self.root = root
        self.torn = torn
        self.config = config
        self.problems: list[str] = []
        self.records: list[Record] = []
        self.log_end = 0
        self._read_log()
        self._check_queues()
        if config.message_index_enable:
            self._check_index()
        self._check_twice_stored()

    def by_id(self) -> dict[str, Record]:
        return {record.id: record for record in self.records}

    def bad(self, text: str) -> None:
        self.problems.append(text)

    # -- log ----------------------------------------------------------------------------------

    def _read_log(self) -> None:
        size = self.config.mapped_file_size_commit_log
        folder = self.root / "commitlog"
        names = sorted(path.name for path in folder.iterdir())
        ended = False
        position = int(names[0]) if names else 0
        self.log_end = position
        for name in names:
            if int(name) != position:
                self.bad(f"commitlog/{name}: expected {position:020d}")
            data = (folder / name).read_bytes()
            if len(data) != size:
                self.bad(f"commitlog/{name}: {len(data)} bytes long")
            if ended:
                if any(data):
                    self.bad(f"commitlog/{name}: not zero although the log ended before")
                continue
            used, ended = self._read_log_file(name, data)
            self.log_end = position + used
            position += size

    def _read_log_file(self, name: str, data: bytes) -> tuple[int, bool]:
        at = 0
        while True:
            size, magic = struct.unpack_from(">ii", data.ljust(at + 8, b"\0"), at)
            if magic == BLANK_MAGIC:
                if size != len(data) - at:
                    self.bad(f"commitlog/{name}+{at}: blank of {size} bytes")
                if any(data[at + 8 :]) and not self.torn:
                    self.bad(f"commitlog/{name}+{at}: bytes behind the blank record")
                return len(data), False
            if magic != MESSAGE_MAGIC:
                if any(data[at:]):
                    self.bad(f"commitlog/{name}+{at}: {data[at : at + 16]!r} behind the end")
                return at, True
            self.records.append(self._record(int(name) + at, data[at : at + size]))
            at += size

    def _record(self, offset: int, data: bytes) -> Record:
        (
            size, _, crc, queue_id, _, queue_offset, place, _, _, _, store_timestamp, _, _, _,
            length,
        ) = HEAD.unpack_from(data)  # fmt: skip
        at = HEAD.size + length
        body = data[HEAD.size : at]
        topic = data[at + 1 : at + 1 + data[at]]
        at += 1 + data[at]
        (properties,) = struct.unpack_from(">h", data, at)
        text = data[at + 2 :]
        if place != offset or len(data) != size or len(text) != properties:
            self.bad(f"record at {offset}: place {place}, {len(data)} of {size} bytes")
        if zlib.crc32(body) & 0x7FFFFFFF != crc and not self.torn:
            self.bad(f"record at {offset}: CRC")
        pairs = [item.split("\x01") for item in text.decode().split("\x02") if item]
        if self.records and store_timestamp < self.records[-1].store_timestamp:
            self.bad(f"record at {offset}: store time goes back")
        return Record(
            offset, size, topic.decode(), queue_id, queue_offset, body,
            {pair[0]: pair[-1] for pair in pairs}, store_timestamp,
        )  # fmt: skip

    # -- queues -------------------------------------------------------------------------------

    def _check_queues(self) -> None:
        wanted: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        for record in self.records:
            queue = wanted[record.topic, record.queue_id]
            if self.torn:
                queue += [FILLER] * (record.queue_offset - len(queue))
            if record.queue_offset != len(queue):
                self.bad(
                    f"record at {record.offset}: queue offset {record.queue_offset} of "
                    f"{record.topic}/{record.queue_id}, expected {len(queue)}"
                )
            tags = record.properties.get("TAGS")
            code = 0 if tags is None else java_hash(tags)
            queue.append(UNIT.pack(record.offset, record.size, code))
            self._add_light_units(record, wanted, queue[-1])
        found = {
            (topic.name, int(queue.name)): queue
            for topic in (self.root / "consumequeue").iterdir()
            for queue in topic.iterdir()
            if any(queue.iterdir())
        }
        for key in sorted(set(found) | set(wanted)):
            where = f"consumequeue/{key[0]}/{key[1]}"
            files = sorted(found[key].iterdir()) if key in found else []
            data = b"".join(path.read_bytes() for path in files)
            size = self.config.mapped_file_size_consume_queue
            if [path.name for path in files] != [f"{i * size:020d}" for i in range(len(files))]:
                self.bad(f"{where}: files {[path.name for path in files]}")
            if len(data) != size * len(files):
                self.bad(f"{where}: a file is not {size} bytes long")
            if self.torn:
                self._allow_units_of_lost_records(wanted[key], data)
                self._allow_tags_of_torn_records(wanted[key], data)
            units = b"".join(wanted[key])
            if not data.startswith(units):
                padded = data.ljust(len(units), b"?")
                at = next(i for i, byte in enumerate(units) if byte != padded[i])
                self.bad(f"{where}: unit {at // 20} is not that of its record")
            elif any(data[len(units) :]):
                self.bad(f"{where}: units behind the end")
            if len(data) - len(units) >= size and units:
                self.bad(f"{where}: a file with nothing in it")

        self.next_offsets = {queue: len(units) for queue, units in wanted.items()}

    def _add_light_units(
        self, record: Record, wanted: dict[tuple[str, int], list[bytes]], unit: bytes
    ) -> None:
        names = record.properties.get("INNER_MULTI_DISPATCH", "").split(",")
        offsets = record.properties.get("INNER_MULTI_QUEUE_OFFSET", "").split(",")
        for name, offset in zip(names, offsets, strict=True):
            if name:
                queue = wanted[name, 0 if name.startswith("%LMQ%") else record.queue_id]
                if int(offset) != len(queue):
                    self.bad(f"record at {record.offset}: offset {offset} in {name}")
                queue.append(unit)

    def _allow_tags_of_torn_records(self, wanted: list[bytes], data: bytes) -> None:
        """Of a record that was not acknowledged the device may have the body and not the tags, and
        the unit that was made of them. A broker's recovery leaves that unit, too."""
        torn = {
            record.offset
            for record in self.records
            if any("\0" in text for pair in record.properties.items() for text in pair)
        }
        for i, unit in enumerate(wanted):
            found = data[20 * i : 20 * i + 20]
            if UNIT.unpack(unit)[0] in torn and found[:12] == unit[:12]:
                wanted[i] = found

    def _allow_units_of_lost_records(self, wanted: list[bytes], data: bytes) -> None:
        """They are as good as fillers, and may be the last ones of a queue."""
        places = {record.offset for record in self.records}
        for i, unit in enumerate(data[at : at + 20] for at in range(0, len(data), 20)):
            offset, size, _ = UNIT.unpack(unit)
            lost = offset not in places and size > 0 and offset + size <= self.log_end
            if i < len(wanted) and wanted[i] == FILLER and lost:
                wanted[i] = unit
            elif i == len(wanted) and lost:
                wanted.append(unit)

    # -- index --------------------------------------------------------------------------------

    def _check_index(self) -> None:
        wanted = [
            (key_hash(f"{record.topic}#{key}"), record)
            for record in self.records
            if not (self.torn and "\0" in "".join(record.properties.values()))
            for key in _keys(record)
        ]
        self.index_files = sorted((self.root / "index").iterdir())
        if self.torn:
            self._look_up_keys(wanted)
            return
        self._index_end = 0
        done = 0
        for path in self.index_files:
            room = self.config.max_index_num - 1
            done += self._check_index_file(path, wanted[done : done + room])
            if done < len(wanted) and done % room:
                self.bad(f"{path.name}: {done % room} keys, but it is not the last file")
        if done != len(wanted):
            self.bad(f"index: {done} keys of {len(wanted)}")

    def _look_up_keys(self, wanted: list[tuple[int, Record]]) -> None:
        """Each key leads to its record once; entries of lost records may lie between."""
        slots = self.config.max_hash_slot_num
        files = [path.read_bytes() for path in self.index_files]
        for (hashed, offset), times in Counter((h, record.offset) for h, record in wanted).items():
            found = 0
            for data in files:
                (number,) = struct.unpack_from(">i", data, 40 + 4 * (hashed % slots))
                while number:
                    entry = ENTRY.unpack_from(data, 40 + 4 * slots + 20 * number)
                    found += entry[:2] == (hashed, offset)
                    number = entry[3]
            if found != times:
                self.bad(f"index: a key of the record at {offset} is found {found} times")

    def _check_index_file(self, path: Path, wanted: Sequence[tuple[int, Record]]) -> int:
        slots, entries = self.config.max_hash_slot_num, self.config.max_index_num
        data = path.read_bytes()
        if len(data) != 40 + 4 * slots + 20 * entries:
            self.bad(f"{path.name}: {len(data)} bytes long")
            return 0
        header = INDEX_HEADER.unpack_from(data)
        count: int = max(1, header[5]) - 1
        if count == 0:
            self.bad(f"{path.name}: no keys in it")
        if count > len(wanted):
            self.bad(f"{path.name}: {count} keys, expected {len(wanted)}")
            return count
        wanted = wanted[:count]
        table = [0] * slots
        expected = bytearray(20)
        begin = wanted[0][1].store_timestamp if wanted else 0
        for number, (hashed, record) in enumerate(wanted, 1):
            slot = hashed % slots
            # As RocketMQ does: the first entry counts from the end of the file before.
            since = self._index_end if number == 1 else begin
            seconds = (record.store_timestamp - since) // 1000 if since else 0
            expected += ENTRY.pack(hashed, record.offset, seconds, table[slot])
            table[slot] = number
        start = 40 + 4 * slots
        if data[start : start + len(expected)] != expected:
            self.bad(f"{path.name}: entries are not those of the records")
        if any(data[start + len(expected) :]):
            self.bad(f"{path.name}: entries behind the end")
        if data[40:start] != struct.pack(f">{slots}i", *table):
            self.bad(f"{path.name}: slots do not follow from the entries")
        if wanted:
            self._index_end = wanted[-1][1].store_timestamp
            first, last = wanted[0][1], wanted[-1][1]
            right = (
                first.store_timestamp, last.store_timestamp, first.offset, last.offset,
                sum(1 for value in table if value), count + 1,
            )  # fmt: skip
            if header != right:
                self.bad(f"{path.name}: header {header}, expected {right}")
        return count

    # -- ids, page, clean end -----------------------------------------------------------------

    def _check_twice_stored(self) -> None:
        for name, times in Counter(record.id for record in self.records).items():
            if times > 1:
                self.bad(f"message {name} is stored {times} times")

    def check_page(self) -> None:
        """The shared state of a store that no process has open agrees with the files."""
        data = (self.root / "rmqctl" / "shared").read_bytes()
        words = struct.unpack_from("<64q", data)
        lines = (self.root / "rmqctl" / "queues").read_bytes()[: words[NAMES_BYTES]].decode()
        if words[STAGE]:
            self.bad(f"page: stage {words[STAGE]}")
        if words[LOG_END] != self.log_end:
            self.bad(f"page: log end {words[LOG_END]}, the log ends at {self.log_end}")
        if words[KEYS_FROM] != self.log_end:
            self.bad(f"page: keys from {words[KEYS_FROM]}, the log ends at {self.log_end}")
        named = {}
        for slot, line in enumerate(lines.splitlines()):
            topic, queue_id, _ = line.rsplit("\t", 2)
            if (topic, int(queue_id)) in named:
                self.bad(f"page: two slots for {line!r}")
            named[topic, int(queue_id)] = struct.unpack_from("<q", data, SLOTS + 16 * slot)[0]
        if {queue: value for queue, value in named.items() if value} != self.next_offsets:
            self.bad(f"page: next offsets {named}, expected {self.next_offsets}")
        if self.config.message_index_enable:
            newest = int(self.index_files[-1].name) if self.index_files else 0
            if words[INDEX_FILE] != newest:
                self.bad(f"page: index file {words[INDEX_FILE]}, newest is {newest}")

    def check_clean_end(self) -> None:
        """The last one left cleanly: no abort file, the state is closed, the checkpoint is new."""
        self.check_page()
        if (self.root / "abort").exists():
            self.bad("abort is there after a clean close")
        words = struct.unpack_from("<64q", (self.root / "rmqctl" / "shared").read_bytes())
        if words[STATE] != CLOSED:
            self.bad(f"page: state {words[STATE]} after a clean close")
        physic, logics = struct.unpack_from(">2q", (self.root / "checkpoint").read_bytes())
        newest = self.records[-1].store_timestamp if self.records else 0
        if min(physic, logics) < newest:
            self.bad(f"checkpoint {physic}, {logics} is older than the last record, {newest}")


def page_will_be_trusted(root: Path) -> bool:
    """Whether a first-in has no reason to run recovery, if the store was not tampered with."""
    try:
        words = struct.unpack_from("<64q", (root / "rmqctl" / "shared").read_bytes())
    except (FileNotFoundError, struct.error):
        return False
    return (
        bool(words[0])
        and not words[FAILED]
        and words[1:3] == _boot()
        and (words[STATE] == OPEN) == (root / "abort").exists()
    )


def _boot() -> tuple[int, ...] | None:
    if not LINUX:
        return boot_id()
    text = Path("/proc/sys/kernel/random/boot_id").read_text()
    found: tuple[int, ...] = struct.unpack(">2q", bytes.fromhex(text.replace("-", "")))
    return found


def java_hash(text: str) -> int:
    """String.hashCode."""
    value: int = 0
    for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le")):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def key_hash(text: str) -> int:
    """IndexFile.indexKeyHashMethod."""
    value = abs(java_hash(text))
    return 0 if value >= 1 << 31 else value


def _keys(record: Record) -> list[str]:
    return [key for key in [record.id, *record.properties.get("KEYS", "").split(" ")] if key]
