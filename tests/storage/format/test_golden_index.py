"""Golden index files, byte for byte, also when their puts are replayed from the log."""

from typing import NamedTuple

import pytest

from storage.format.index_file import (
    INDEX_ENTRY_SIZE,
    IndexEntry,
    IndexHeader,
    entry_position,
    following_header,
    index_file_size,
    put_keys,
    slot_position,
)
from storage.format.index_many import put_many_keys, write_slots
from storage.format.java_hash import key_hash
from storage.format.message import MessageExt
from storage.format.sys_flag import is_indexed
from tests.support import golden
from tests.support.golden_log import records

ALL = pytest.mark.parametrize("name", golden.names())


def index_keys(message: MessageExt) -> list[int]:
    if not is_indexed(message.sys_flag):
        return []
    return [key_hash(message.topic, key) for key in message.index_keys]


def index_sizes(name: str) -> tuple[int, int]:
    settings = golden.manifest(name)["settings"]
    return (
        int(settings.get("maxHashSlotNum", 5_000_000)),
        int(settings.get("maxIndexNum", 20_000_000)),
    )


class IndexImage(NamedTuple):
    """The used part of an index file: header, entries from 0 to the last used, non-empty slots."""

    header: IndexHeader
    entries: bytes
    slots: bytes


def index_images(name: str) -> list[IndexImage]:
    slots, entries = index_sizes(name)
    images = []
    for path in sorted((golden.store(name) / "index").glob("[0-9]*")):
        assert path.stat().st_size == index_file_size(slots, entries)
        with path.open("rb") as file:
            header = IndexHeader.unpack_from(file.read(40))
            table = file.read(4 * slots)
            assert file.tell() == slot_position(slots) == entry_position(slots, 0)
            used = file.read(INDEX_ENTRY_SIZE * header.next_entry)
        images.append(IndexImage(header, used, table))
    return images


@ALL
def test_each_index_file_is_the_same_bytes_after_decoding_and_encoding(name: str) -> None:
    for buffer in index_images(name):
        assert IndexHeader.unpack_from(buffer.header.pack()) == buffer.header
        count = len(buffer.entries) // INDEX_ENTRY_SIZE
        entries = [
            IndexEntry.unpack_from(buffer.entries, INDEX_ENTRY_SIZE * i) for i in range(count)
        ]
        assert b"".join(entry.pack() for entry in entries) == buffer.entries
        assert entries[0] == (0, 0, 0, 0)


@pytest.mark.parametrize("name", sorted(set(golden.names()) - {"torn-no-index-4.9"}))
def test_putting_the_keys_of_the_log_again_gives_the_same_index_files(name: str) -> None:
    slot_count, _ = index_sizes(name)
    keys = [
        (hash_, found.offset, found.message.store_timestamp)
        for found in records(name)
        for hash_ in index_keys(found.message)
    ]
    header = IndexHeader()
    replayed = 0
    for buffer in index_images(name):
        before, header = header, following_header(buffer.header)
        batch = keys_of_file(buffer, keys)
        if not batch:
            continue  # older than the log, retention has deleted its messages
        replayed += 1
        columns = [list(column) for column in zip(*batch, strict=True)]
        one_by_one = put_keys(before, slot_count, lambda _: 0, *columns)
        table = bytearray(4 * slot_count)
        at_once = put_many_keys(before, table, *columns)
        assert at_once.entries == one_by_one.entries
        assert at_once.header == one_by_one.header
        written = buffer.entries[INDEX_ENTRY_SIZE:]
        if len(batch) < buffer.header.next_entry - 1:  # damage zeroed the last records of the log
            assert name.startswith(("torn-half-record", "torn-cq-past-end"))
            written = written[: len(at_once.entries)]
        else:
            write_slots(table, at_once)
            assert bytes(table) == buffer.slots
            assert at_once.header == buffer.header
        assert at_once.entries == written
    assert replayed


def keys_of_file(
    buffer: IndexImage, keys: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """The keys that went into a file: as many as it holds, from the one that its first entry is."""
    first = IndexEntry.unpack_from(buffer.entries, INDEX_ENTRY_SIZE)
    places = [key[:2] for key in keys]
    if (first.key_hash, first.commitlog_offset) not in places:
        return []
    at = places.index((first.key_hash, first.commitlog_offset))
    return keys[at : at + buffer.header.next_entry - 1]
