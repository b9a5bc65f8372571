"""Kinds of damage to consume queues. See :mod:`tests.support.damages`."""

from __future__ import annotations

from functools import partial

from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.tools.fsck import Code
from tests.support.anatomy import Anatomy, Key, QueueFile
from tests.support.damages import Damaged, Kind, Knife, Lack, NotHere, Said
from tests.support.damages_log import sound_end

PAGE = 4096


def _files(anatomy: Anatomy, *, files: int = 1, units: int = 1) -> tuple[Key, list[QueueFile]]:
    """The whole queue with the most files; its first file that still counts has enough units."""
    start = anatomy.log[0].first if anatomy.log else 0
    found = []
    for key, every in anatomy.sound_queues.items():
        kept = [file for file in every if all(unit[0] >= start for unit in file.units)]
        if sum(len(file.units) for file in kept) >= units:
            found.append((len(kept), sum(len(file.units) for file in kept), key, kept))
    if not found:
        raise NotHere(Lack.NO_QUEUE)
    count, _, key, kept = max(found, key=lambda item: item[:2])
    if count < files:
        raise NotHere(Lack.NO_QUEUE_FILES)
    return key, kept


def _says(anatomy: Anatomy, code: Code, file: QueueFile, number: int | None) -> frozenset[Said]:
    position = None if number is None else number * CQ_STORE_UNIT_SIZE
    return frozenset((Said(code, anatomy.name(file.path), position),))


def _full(anatomy: Anatomy, file: QueueFile) -> bool:
    size = anatomy.config.mapped_file_size_consume_queue
    return len(file.units) * CQ_STORE_UNIT_SIZE == size


# -- files ------------------------------------------------------------------------------------


def missing(which: int, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file of a queue is gone: the first (0), one in the middle (1) or the last one (-1)."""
    key, kept = _files(anatomy, files=3 if which == 1 else 1)
    # A file in front of the kept ones has units of deleted messages: then this is no first file.
    first = anatomy.sound_queues[key][0] is kept[0]
    file = kept[which]
    middle = which == 1 or (which == 0 and not first)
    if len(kept) == 1 and not first:
        middle = False
    knife.remove(file.path)
    code = Code.QUEUE_FILE_MISSING if middle else Code.UNIT_MISSING
    return Damaged("", _says(anatomy, code, file, 0))


def swapped(anatomy: Anatomy, knife: Knife) -> Damaged:
    """Two full files of a queue, one after the other, have each other's name."""
    _, kept = _files(anatomy, files=2)
    full = [file for file in kept if _full(anatomy, file)]
    if len(full) < 2:
        raise NotHere(Lack.NO_QUEUE_FILES)
    one, other = full[0], full[1]
    knife.swap(one.path, other.path)
    return Damaged("", _says(anatomy, Code.UNIT_WRONG, one, 0))


def cut(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file of a queue ends inside its units; an only file is not known to be short."""
    _, kept = _files(anatomy, files=3)
    file = kept[1]
    number = len(file.units) // 2
    knife.resize(file.path, number * CQ_STORE_UNIT_SIZE + 7)
    return Damaged("", _says(anatomy, Code.QUEUE_FILE_LENGTH, file, None))


def longer(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file of a queue is longer than the others."""
    _, kept = _files(anatomy, files=3)
    knife.resize(kept[1].path, anatomy.config.mapped_file_size_consume_queue + 40)
    return Damaged("", _says(anatomy, Code.QUEUE_FILE_LENGTH, kept[1], None))


def empty_behind(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file of zeros lies after a full one."""
    size = anatomy.config.mapped_file_size_consume_queue
    for files in anatomy.sound_queues.values():
        if _full(anatomy, files[-1]):
            path = files[-1].path.with_name(f"{int(files[-1].path.name) + size:020}")
            if not path.exists():
                knife.replace(path, bytes(size))
                return Damaged("", _says(anatomy, Code.QUEUE_FILE_EMPTY, QueueFile(path, []), None))
    raise NotHere(Lack.NO_QUEUE_FILES)


def foreign_file(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file that is none of a queue's lies in its folder."""
    _, kept = _files(anatomy)
    path = kept[0].path.with_name("notes.txt")
    knife.replace(path, b"mine")
    return Damaged("", _says(anatomy, Code.FOREIGN_FILE, QueueFile(path, []), None))


# -- units ------------------------------------------------------------------------------------


def zeroed_page(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A page of units, or all of a file below a page, is zeros; the queue goes on after it."""
    _, kept = _files(anatomy, units=3)
    file = kept[0]
    last = len(kept) == 1
    if last:  # keep the last unit: without it the queue only ends earlier
        count = min(PAGE, (len(file.units) - 1) * CQ_STORE_UNIT_SIZE)
    else:
        count = min(PAGE, len(file.units) * CQ_STORE_UNIT_SIZE)
    knife.patch(file.path, 0, bytes(count))
    return Damaged("", _says(anatomy, Code.UNIT_MISSING, file, 0))


def behind_log(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The last two units of a queue are not there."""
    _, kept = _files(anatomy, units=3)
    file = kept[-1]
    count = min(2, len(file.units))
    number = len(file.units) - count
    knife.patch(file.path, number * CQ_STORE_UNIT_SIZE, bytes(count * CQ_STORE_UNIT_SIZE))
    says = _says(anatomy, Code.UNIT_MISSING, file, number)
    if not number and len(kept) > 1:
        says |= _says(anatomy, Code.QUEUE_FILE_EMPTY, file, None)
    return Damaged("", says)


def _open_end(anatomy: Anatomy) -> QueueFile:
    """The last file of a whole queue that has room for a unit."""
    for files in anatomy.sound_queues.values():
        if not _full(anatomy, files[-1]):
            return files[-1]
    raise NotHere(Lack.NO_QUEUE)


def ahead_of_log(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A queue has a unit for a message past the log's end."""
    file = _open_end(anatomy)
    last = sound_end(anatomy)
    unit = CQ_STORE_UNIT.pack(last.first + last.end + 4000, 200, 0)
    knife.patch(file.path, len(file.units) * CQ_STORE_UNIT_SIZE, unit)
    return Damaged("", _says(anatomy, Code.UNIT_BEHIND_END, file, len(file.units)))


def repeated_at_end(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The last unit of a queue stands there a second time."""
    file = _open_end(anatomy)
    unit = CQ_STORE_UNIT.pack(*file.units[-1])
    knife.patch(file.path, len(file.units) * CQ_STORE_UNIT_SIZE, unit)
    return Damaged("", _says(anatomy, Code.UNIT_WRONG, file, len(file.units)))


def repeated_inside(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A unit is at the offset of the next one, too."""
    _, kept = _files(anatomy, units=3)
    file = max(kept, key=lambda file: len(file.units))
    if len(file.units) < 3:
        raise NotHere(Lack.NO_QUEUE)
    number = len(file.units) // 2
    unit = CQ_STORE_UNIT.pack(*file.units[number - 1])
    knife.patch(file.path, number * CQ_STORE_UNIT_SIZE, unit)
    return Damaged("", _says(anatomy, Code.UNIT_WRONG, file, number))


def flipped(byte: int, bit: int, code: Code, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit of a unit is another."""
    _, kept = _files(anatomy, units=3)
    file = max(kept, key=lambda file: len(file.units))
    if len(file.units) < 3:
        raise NotHere(Lack.NO_QUEUE)
    number = len(file.units) // 2
    knife.flip(file.path, number * CQ_STORE_UNIT_SIZE + byte, bit)
    return Damaged("", _says(anatomy, code, file, number))


_WRONG, _NONE, _TAG = Code.UNIT_WRONG, Code.UNIT_MISSING, Code.TAG_HASH_WRONG

KINDS: dict[str, Kind] = {
    "queue: the first file missing": partial(missing, 0),
    "queue: a file in the middle missing": partial(missing, 1),
    "queue: the last file missing": partial(missing, -1),
    "queue: two files swapped": swapped,
    "queue: a file cut": cut,
    "queue: a file too long": longer,
    "queue: an empty file behind": empty_behind,
    "queue: a foreign file": foreign_file,
    "queue: a page zeroed": zeroed_page,
    "queue: behind the log": behind_log,
    "queue: ahead of the log": ahead_of_log,
    "queue: a unit repeated at the end": repeated_at_end,
    "queue: a unit repeated inside": repeated_inside,
    "queue: a wrong tag hash": partial(flipped, 19, 0, _TAG),
    "queue: a wrong tag hash, highest bit": partial(flipped, 12, 6, _TAG),
    "queue: a bit of an offset, lowest": partial(flipped, 7, 0, _WRONG),
    "queue: a bit of an offset, highest": partial(flipped, 0, 7, _NONE),
    "queue: a bit of a size, lowest": partial(flipped, 11, 0, _WRONG),
    "queue: a bit of a size, highest": partial(flipped, 8, 7, _NONE),
}
