"""Kinds of damage to the key index. See :mod:`tests.support.damages`."""

from __future__ import annotations

from functools import partial

from storage.format.index_file import INDEX_ENTRY, INDEX_ENTRY_SIZE
from storage.tools.fsck import Code
from tests.support.anatomy import Anatomy, IndexFile
from tests.support.damages import Damaged, Kind, Knife, Lack, NotHere, Said

PAGE = 4096


def _file(anatomy: Anatomy) -> IndexFile:
    """A file in the middle of the index with many keys, all of records that are there."""
    start = anatomy.log[0].first if anatomy.log else 0
    fits = [
        file
        for file in anatomy.index
        if len(file.entries) > 16 and all(entry[1] >= start for entry in file.entries[1:])
    ]
    if not fits:
        raise NotHere(Lack.NO_INDEX)
    return fits[len(fits) // 2] if len(fits) < 3 else fits[1]


def _said(anatomy: Anatomy, code: Code, file: IndexFile, position: int | None) -> Damaged:
    return Damaged("", frozenset((Said(code, anatomy.name(file.path), position),)))


def _entry(anatomy: Anatomy) -> tuple[IndexFile, int]:
    file = _file(anatomy)
    return file, len(file.entries) // 2


def header_bit(byte: int, bit: int, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit of a file's head is another."""
    file = _file(anatomy)
    knife.flip(file.path, byte, bit)
    return _said(anatomy, Code.INDEX_HEADER_WRONG, file, 0)


def entry_bit(byte: int, bit: int, code: Code, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit of an entry is another."""
    file, number = _entry(anatomy)
    position = anatomy.entry_at(number)
    knife.flip(file.path, position + byte, bit)
    return _said(anatomy, code, file, position)


def chain_loop(anatomy: Anatomy, knife: Knife) -> Damaged:
    """An entry is linked to itself."""
    file, number = _entry(anatomy)
    position = anatomy.entry_at(number)
    knife.patch(file.path, position + 16, number.to_bytes(4, "big"))
    return _said(anatomy, Code.INDEX_CHAIN_BROKEN, file, position)


def slot_wrong(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A slot leads nowhere."""
    file, _ = _entry(anatomy)
    newest = len(file.entries) - 1
    slot = file.entries[newest][0] % anatomy.config.max_hash_slot_num
    knife.patch(file.path, 40 + 4 * slot, (newest + 1).to_bytes(4, "big"))
    return _said(anatomy, Code.INDEX_CHAIN_BROKEN, file, 40 + 4 * slot)


def zeroed_page(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A page of entries, but for the last ones, is zeros."""
    file, number = _entry(anatomy)
    count = min(PAGE // INDEX_ENTRY_SIZE, len(file.entries) - 2 - number)
    position = anatomy.entry_at(number)
    knife.patch(file.path, position, bytes(count * INDEX_ENTRY_SIZE))
    return _said(anatomy, Code.INDEX_ENTRY_WRONG, file, position)


def other_log(anatomy: Anatomy, knife: Knife) -> Damaged:
    """All keys are of another log's records: they begin elsewhere, and have other hashes."""
    file = _file(anatomy)
    entries = [
        (key_hash, offset + (1 if 1 < number < len(file.entries) - 1 else 0), seconds, before)
        for number, (key_hash, offset, seconds, before) in enumerate(file.entries)
    ]
    data = b"".join(INDEX_ENTRY.pack(*entry) for entry in entries[1:])
    knife.patch(file.path, anatomy.entry_at(1), data)
    return _said(anatomy, Code.INDEX_ENTRY_WRONG, file, anatomy.entry_at(2))


def length(change: int, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file is longer or shorter than the others; an only one cannot be compared."""
    if len(anatomy.index) < 3:
        raise NotHere(Lack.ONE_INDEX_FILE)
    file = anatomy.index[1]
    knife.resize(file.path, file.path.stat().st_size + change)
    return _said(anatomy, Code.INDEX_FILE_LENGTH, file, None)


def swapped(anatomy: Anatomy, knife: Knife) -> Damaged:
    """Two files, one after the other, have each other's name."""
    if len(anatomy.index) < 2:
        raise NotHere(Lack.ONE_INDEX_FILE)
    one, other = anatomy.index[:2]
    knife.swap(one.path, other.path)
    return _said(anatomy, Code.INDEX_HEADER_WRONG, other, 0)


def missing(which: int, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file is gone; the keys of records that are there are missed from the first of them on."""
    if len(anatomy.index) < (1 if which != 1 else 3):
        raise NotHere(Lack.ONE_INDEX_FILE)
    file = anatomy.index[which]
    elsewhere = {
        entry[1] for other in anatomy.index if other is not file for entry in other.entries[1:]
    }
    size = anatomy.config.mapped_file_size_commit_log
    lacking = {entry[:2] for entry in file.entries[1:]}
    lacking -= {
        entry[:2] for other in anatomy.index if other is not file for entry in other.entries
    }
    there = {record.offset for record in anatomy.records}
    offsets = sorted({offset for _, offset in lacking if offset in there})
    knife_able = bool(offsets) and bool(elsewhere or which != 1)
    if not knife_able:
        raise NotHere(Lack.NO_INDEX)
    knife.remove(file.path)
    first = offsets[0]
    name = f"commitlog/{first - first % size:020}"
    says = Said(Code.INDEX_KEY_MISSING, name, first % size)
    return Damaged("", frozenset((says,)))


def foreign_file(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file that is none of the index lies in its folder."""
    path = anatomy.root / "index" / "notes.txt"
    knife.replace(path, b"mine")
    return Damaged("", frozenset((Said(Code.FOREIGN_FILE, anatomy.name(path), None),)))


_ENTRY, _CHAIN, _TIME = Code.INDEX_ENTRY_WRONG, Code.INDEX_CHAIN_BROKEN, Code.INDEX_TIME_WRONG

KINDS: dict[str, Kind] = {
    "index: a bit of the first time, lowest": partial(header_bit, 7, 0),
    "index: a bit of the first time, highest": partial(header_bit, 0, 7),
    "index: a bit of the last time, lowest": partial(header_bit, 15, 0),
    "index: a bit of the last time, highest": partial(header_bit, 8, 7),
    "index: a bit of the first offset, lowest": partial(header_bit, 23, 0),
    "index: a bit of the first offset, highest": partial(header_bit, 16, 7),
    "index: a bit of the last offset, lowest": partial(header_bit, 31, 0),
    "index: a bit of the last offset, highest": partial(header_bit, 24, 7),
    "index: a bit of the count of slots, lowest": partial(header_bit, 35, 0),
    "index: a bit of the count of slots, highest": partial(header_bit, 32, 7),
    "index: a bit of the count of keys, lowest": partial(header_bit, 39, 0),
    "index: a bit of the count of keys, highest": partial(header_bit, 36, 7),
    "index: a bit of a hash, lowest": partial(entry_bit, 3, 0, _ENTRY),
    "index: a bit of a hash, highest": partial(entry_bit, 0, 7, _ENTRY),
    "index: a bit of an offset, lowest": partial(entry_bit, 11, 0, _ENTRY),
    "index: a bit of an offset, highest": partial(entry_bit, 4, 7, _ENTRY),
    "index: a bit of a time": partial(entry_bit, 12, 6, _TIME),
    "index: a bit of a link": partial(entry_bit, 16, 7, _CHAIN),
    "index: a loop": chain_loop,
    "index: a slot that leads nowhere": slot_wrong,
    "index: a page zeroed": zeroed_page,
    "index: of another log": other_log,
    "index: a file cut": partial(length, -100),
    "index: a file too long": partial(length, 100),
    "index: two files swapped": swapped,
    "index: the first file missing": partial(missing, 0),
    "index: a file in the middle missing": partial(missing, 1),
    "index: the last file missing": partial(missing, -1),
    "index: a foreign file": foreign_file,
}
