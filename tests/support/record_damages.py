"""Damages of records, consume queue units and index files, each determined by its chance."""

import random
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE
from storage.format.crc import CRC_MASK
from storage.format.index_file import HASH_SLOT_SIZE, INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE
from storage.format.names import file_name, parse_file_name
from storage.format.record import CheckKind, check_record, read_head


def packed(body: bytes) -> bytes:
    """A body as clients compress it."""
    return zlib.compress(body, 5)


@cache
def bombs() -> tuple[bytes, ...]:
    """Bodies that are large once a flag says that they are compressed."""
    blocks_of_one_byte = bytes.fromhex("28b52ffd8458") + bytes.fromhex("02001000") * 3000  # zstd
    return zlib.compress(bytes(60 << 20), 9), zlib.compress(bytes(100 << 20), 9), blocks_of_one_byte


Damage = Callable[[Path, random.Random], str]


def damage(root: Path, chance: random.Random) -> tuple[str, str]:
    """Damage one file of a store; gives its name, and a word for how."""
    folder, hows = chance.choices(
        (("commitlog", _LOG), ("consumequeue", _QUEUE), ("index", _INDEX)), (6, 3, 1)
    )[0]
    files = sorted(path for path in (root / folder).rglob("*") if path.is_file())
    if folder == "consumequeue" and chance.random() < 0.6:
        files = [path for path in files if path.parts[-3] == "orders"]
    if folder == "commitlog":
        files = [path for path in files if record_places(path)]
    path = chance.choice(files)
    how = chance.choices([how for how, _ in hows], [weight for _, weight in hows])[0]
    return str(path.relative_to(root)), how(path, chance)


def _extreme(chance: random.Random, size: int, now: int, near: int) -> int:
    """A value of ``size`` bytes that a program stumbles over, as an unsigned number."""
    top = 1 << 8 * size
    values: tuple[int, ...] = (
        0,
        1,
        2,
        -1,
        -2,
        top >> 1,
        (top >> 1) - 1,
        (top >> 1) + 1,
        now + 1,
        now - 1,
        -now,
    )
    values += (now ^ 1 << chance.randrange(8 * size), near, near - 1, near + 1, 1 << 31, 1 << 32)
    values += (0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, 253402300800000, chance.getrandbits(8 * size))
    values += (now << 1, now + chance.randrange(300), now - chance.randrange(300))
    return chance.choice(values) % top


# -- records --------------------------------------------------------------------------------------

_FIELDS: Final = {
    "total size": (0, 4),
    "magic": (4, 4),
    "body CRC": (8, 4),
    "queue": (12, 4),
    "flag": (16, 4),
    "queue offset": (20, 8),
    "physical offset": (28, 8),
    "sysFlag": (36, 4),
    "born": (40, 8),
    "born host": (48, 8),
    "stored": (56, 8),
    "store host": (64, 8),
    "reconsumed": (72, 4),
    "prepared": (76, 8),
    "body length": (84, 4),
}
_MAGICS: Final = (0xAABBCCDA - 0xB4, 0xDAA320A7, 0xDAA320AB, 0xCBD43194, 0, 0xFFFFFFFF)
_SIZES_OF: Final = {"H": 2, "B": 1}


def record_places(path: Path) -> list[tuple[int, int]]:
    """Places and sizes of a log file's records."""
    data = path.read_bytes()
    found, at = [], 0
    while (one := check_record(data, at, len(data), check_crc=False)).kind is CheckKind.MESSAGE:
        found.append((at, one.size))
        at += one.size
    return found


class _Record:
    """One record in a log file, to be damaged and written."""

    def __init__(self, path: Path, chance: random.Random) -> None:
        self.path = path
        # Late in the log are compressed bodies and bombs; in front, what groups are about.
        places = record_places(path)
        if chance.random() < 0.3:
            places = places[-8:]
        self.at, self.size = chance.choice(places)
        with path.open("rb") as file:
            file.seek(self.at)
            self.data = bytearray(file.read(self.size))
        head = read_head(self.data)
        self.body_at, self.body_size = head.head_size, head.body_length
        self.body_end = self.body_at + self.body_size
        self.topic_at = self.body_end + 1
        self.topic_end = self.topic_at + self.data[self.body_end]
        self.properties_at = self.topic_end + 2

    def set(self, at: int, size: int, value: int) -> None:
        self.data[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "big")

    def get(self, at: int, size: int) -> int:
        return int.from_bytes(self.data[at : at + size], "big")

    def body_is_right(self) -> None:
        """Make the check sum that of the body."""
        length = min(self.get(self.body_at - 4, 4), self.size)
        body = self.data[self.body_at : self.body_at + length]
        self.set(8, 4, zlib.crc32(body) & CRC_MASK)

    def write(self) -> None:
        with self.path.open("r+b") as file:
            file.seek(self.at)
            file.write(self.data)


def _field(path: Path, chance: random.Random) -> str:
    record = _Record(path, chance)
    name = chance.choice([*_FIELDS])
    at, size = _FIELDS[name]
    if name == "body length":
        at = record.body_at - 4
    value = _extreme(chance, size, record.get(at, size), record.size)
    if name == "magic":
        value = chance.choice(_MAGICS)
    record.set(at, size, value)
    if chance.random() < 0.5:
        record.body_is_right()
    record.write()
    return f"{name} of the record at {record.at} = {value:#x}"


def _flags(path: Path, chance: random.Random) -> str:
    record = _Record(path, chance)
    value = record.get(36, 4)
    for _ in range(chance.randrange(1, 4)):
        value ^= 1 << chance.choice((*range(12), *range(11), 30, 31))
    if chance.random() < 0.5:
        value = value & ~0x700 | 1 | chance.choice((0, 1, 2, 3, 7)) << 8
    record.set(36, 4, value)
    record.write()
    return f"sysFlag of the record at {record.at} = {value:#x}"


def _lengths(path: Path, chance: random.Random) -> str:
    """Lengths that are wrong, and may agree with each other."""
    record = _Record(path, chance)
    how = chance.choice(("body and properties", "topic", "properties", "topic and properties"))
    by = chance.choice((1, -1, 2, -2, 7, -7, 40, -40, 127, 128, 200, 1 << 15, 1 << 16))
    if how.startswith("body"):
        record.set(record.body_at - 4, 4, record.body_size + by)
    if how.startswith("topic"):
        record.set(record.body_end, 1, record.data[record.body_end] + by)
    if how.endswith("properties"):
        back = by if how == "properties" else -by
        record.set(record.topic_end, 2, record.get(record.topic_end, 2) + back)
        if how == "topic and properties":
            # The length of the properties stands where the topic ends now.
            at = record.topic_end + by
            if record.body_end < at < record.size - 2:
                record.set(at, 2, record.size - at - 2)
    if chance.random() < 0.7:
        record.body_is_right()
    record.write()
    return f"length of {how} of the record at {record.at} by {by}"


def _body(path: Path, chance: random.Random) -> str:
    """A body that says it is compressed and is not, or not wholly, with the right check sum."""
    record = _Record(path, chance)
    how = chance.choice(("noise", "head only", "stored block", "gzip", "deflate", "cut", "same"))
    room = record.body_size
    text = chance.randbytes(room)
    made = {
        "noise": text,
        "head only": b"\x78\x5e" + text,
        "stored block": zlib.compress(text[: max(0, room - 11)], 0),
        "gzip": b"\x1f\x8b\x08" + bytes(7) + packed(text)[2:],
        "deflate": packed(text)[2:],
        "cut": packed(text * 2),
        "same": bytes(record.data[record.body_at : record.body_end]),
    }[how]
    body = made[:room].ljust(room, b"\0")
    record.data[record.body_at : record.body_end] = body
    kind = chance.choice((0, 0, 3, 3, 1, 2, 4, 7))
    record.set(36, 4, record.get(36, 4) & ~0x700 | 1 | kind << 8)
    if chance.random() < 0.8:
        record.body_is_right()
    record.write()
    return f"compressed body ({how}, type {kind}) of the record at {record.at}"


_TEXTS: Final = (b"99999999999999999999", b"-9223372036854775808", b"\xff\xfe", b"\0", b"\1\2\1\2")
_TEXTS_TOO: Final = (b"\x1b[31m", b"1e400", b"nan", b"\xed\xa0\x80", b"\2\2\2", b"\1", b"{[[[[")


def _properties(path: Path, chance: random.Random) -> str:
    record = _Record(path, chance)
    start = record.properties_at
    text = record.data[start:]
    if not text:
        return _field(path, chance)
    how = chance.choice(("value", "noise", "separators", "bytes", "digits", "zeros"))
    if how == "value":
        at = text.find(b"\1", chance.randrange(len(text))) + 1
        value = chance.choice(_TEXTS + _TEXTS_TOO)
        end = text.find(b"\2", at)
        room = (end if end >= 0 else len(text)) - at
        text[at : at + room] = (value * (room // len(value) + 1))[:room]
    elif how == "noise":
        text[:] = chance.randbytes(len(text))
    elif how == "separators":
        for _ in range(3):
            text[chance.randrange(len(text))] = chance.choice((1, 2))
    elif how == "digits":
        digit = chance.choice(b"9-0.e")
        text[:] = bytes(digit if 48 <= byte <= 57 else byte for byte in text)
    elif how == "zeros":
        at = chance.randrange(len(text))
        text[at:] = bytes(len(text) - at)
    else:
        for _ in range(5):
            text[chance.randrange(len(text))] = chance.randrange(256)
    record.data[start:] = text
    record.write()
    return f"properties ({how}) of the record at {record.at}"


def _topic(path: Path, chance: random.Random) -> str:
    record = _Record(path, chance)
    at = chance.randrange(record.topic_at, max(record.topic_end, record.topic_at + 1))
    record.data[at] = chance.choice((0, 10, 27, 47, 46, 255, 128, *b"aZ%"))
    record.write()
    return f"topic of the record at {record.at}: byte {at} = {record.data[at]}"


def _record_bytes(path: Path, chance: random.Random) -> str:
    record = _Record(path, chance)
    how = chance.choice(("flip", "set", "zeros", "noise", "sector"))
    at = chance.randrange(record.size)
    if how == "flip":
        record.data[at] ^= 1 << chance.randrange(8)
    elif how == "set":
        record.data[at] = chance.randrange(256)
    else:
        length = chance.choice((1, 4, 8, 100))
        if how == "sector":
            at, length = 0, record.size
        length = min(length, record.size - at)
        record.data[at : at + length] = (
            chance.randbytes(length) if how == "noise" else bytes(length)
        )
    if chance.random() < 0.3:
        record.body_is_right()
    record.write()
    return f"{how} at byte {at} of the record at {record.at}"


def _another_record(path: Path, chance: random.Random) -> str:
    """A record instead of another one: its own offset is wrong, or corrected."""
    record, other = _Record(path, chance), _Record(path, chance)
    data = other.data[: record.size].ljust(record.size, b"\0")
    if chance.random() < 0.5:
        data[28:36] = record.data[28:36]
    if chance.random() < 0.5:
        data[20:28] = record.data[20:28]
    record.data[:] = data
    record.write()
    return f"the record at {other.at} in the place of that at {record.at}"


def _file(path: Path, chance: random.Random) -> str:
    """A file of another length or name, or none."""
    size = path.stat().st_size
    how = chance.choice(("cut", "cut to", "longer", "huge", "missing", "empty", "moved", "page"))
    if how in ("cut", "cut to", "longer", "huge", "empty"):
        length = {
            "cut": chance.randrange(size),
            "cut to": chance.choice((1, 7, 20, 40, 4096, size - 1)),
            "longer": size + chance.choice((1, 20, 4096)),
            "huge": 8 << 30,
            "empty": 0,
        }[how]
        with path.open("r+b") as file:
            file.truncate(length)
        return f"{how} ({length} bytes)"
    if how == "missing":
        path.unlink()
    elif how == "moved":
        first = parse_file_name(path.name) or 0
        by = chance.choice((size, size * 3, 20, 1, (1 << 62) // size * size))
        path.rename(path.with_name(file_name(first + by)))
        return f"moved by {by}"
    else:
        with path.open("r+b") as file:
            at = chance.randrange(max(1, min(size, 1 << 17) // 4096)) * 4096
            file.seek(at)
            file.write(bytes(min(4096, size - at)))
        return f"zeros in the page at {at}"
    return how


_LOG: Final[list[tuple[Damage, int]]] = [
    *((_field, 8), (_flags, 5), (_lengths, 4), (_body, 4), (_properties, 4), (_topic, 1)),
    *((_record_bytes, 3), (_another_record, 2), (_file, 2)),
]


# -- units ----------------------------------------------------------------------------------------

_UNIT: Final = Struct(">qiq")


def _unit_count(path: Path) -> int:
    data = path.read_bytes()
    sizes = [_UNIT.unpack_from(data, at)[1] for at in range(0, len(data) - 19, CQ_STORE_UNIT_SIZE)]
    return max((number + 1 for number, size in enumerate(sizes) if size), default=1)


def _unit(path: Path, chance: random.Random) -> str:
    count = _unit_count(path)
    number = chance.choice((chance.randrange(count), count - 1, count, count + 3))
    name, at, size = chance.choice((("offset", 0, 8), ("size", 8, 4), ("tags code", 12, 8)))
    with path.open("r+b") as file:
        file.seek(number * CQ_STORE_UNIT_SIZE + at)
        now = int.from_bytes(file.read(size), "big")
        value = _extreme(chance, size, now, 225)
        file.seek(number * CQ_STORE_UNIT_SIZE + at)
        file.write(value.to_bytes(size, "big"))
    return f"{name} of unit {number} = {value:#x}"


def _units(path: Path, chance: random.Random) -> str:
    """Units that are zeros, noise, others', or in another order."""
    data = bytearray(path.read_bytes())
    count = _unit_count(path)
    first = chance.randrange(count)
    end = chance.choice((first + 1, min(first + 3, count), count))
    start, stop = first * CQ_STORE_UNIT_SIZE, end * CQ_STORE_UNIT_SIZE
    how = chance.choice(("zeros", "noise", "another queue's", "turned round", "repeated", "more"))
    if how == "zeros":
        data[start:stop] = bytes(stop - start)
    elif how == "noise":
        data[start:stop] = chance.randbytes(stop - start)
    elif how == "another queue's":
        files = sorted(path.parents[2].glob("*/*/0*"))
        other = chance.choice(files).read_bytes()
        data[start:stop] = other[start:stop]
    elif how == "turned round":
        units = [data[at : at + 20] for at in range(start, stop, 20)]
        data[start:stop] = b"".join(reversed(units))
    elif how == "repeated":
        data[start:stop] = data[:20] * (end - first)
    else:
        at = count * CQ_STORE_UNIT_SIZE
        data[at : at + 60] = (data[start : start + 20] * 3)[: len(data[at : at + 60])]
    path.write_bytes(data)
    return f"units {first} to {end}: {how}"


_QUEUE: Final[list[tuple[Damage, int]]] = [(_unit, 6), (_units, 4), (_file, 2)]


# -- the index ------------------------------------------------------------------------------------

_HEADER: Final = (("begin time", 0, 8), ("end time", 8, 8), ("begin offset", 16, 8))
_HEADER_TOO: Final = (("end offset", 24, 8), ("slot count", 32, 4), ("entry count", 36, 4))
_ENTRY: Final = (("hash", 0, 4), ("log offset", 4, 8), ("seconds", 12, 4), ("previous", 16, 4))


def _index(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes())
    slots = 100  # of rich_store.SIZES
    entries_at = INDEX_HEADER_SIZE + slots * HASH_SLOT_SIZE
    count = max(2, int.from_bytes(data[36:40], "big"))
    part = chance.choice(("header", "slot", "entry", "entry", "noise"))
    if part == "header":
        name, at, size = chance.choice(_HEADER + _HEADER_TOO)
    elif part == "slot":
        taken = [n for n in range(slots) if any(data[40 + 4 * n : 44 + 4 * n])] or [0]
        number = chance.choice(taken)
        name, at, size = f"slot {number}", INDEX_HEADER_SIZE + number * HASH_SLOT_SIZE, 4
    elif part == "entry":
        number = chance.randrange(count)
        name, at, size = chance.choice(_ENTRY)
        name, at = f"{name} of entry {number}", entries_at + number * INDEX_ENTRY_SIZE + at
    else:
        at = chance.choice((0, INDEX_HEADER_SIZE, entries_at))
        data[at : at + 200] = chance.randbytes(200)
        path.write_bytes(data)
        return f"noise at {at}"
    value = _extreme(chance, size, int.from_bytes(data[at : at + size], "big"), count)
    data[at : at + size] = value.to_bytes(size, "big")
    path.write_bytes(data)
    return f"{name} = {value:#x}"


_INDEX: Final[list[tuple[Damage, int]]] = [(_index, 5), (_file, 1)]
