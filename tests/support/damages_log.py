"""Kinds of damage to the log. See :mod:`tests.support.damages`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from storage.format.layout import HEAD_SIZES
from storage.format.record import CheckKind, blank_record, check_record, encode_record
from storage.tools.fsck import Code
from tests.support.anatomy import Anatomy, LogFile, Record
from tests.support.damages import Damaged, Kind, Knife, Lack, NotHere, Said

PAGE = 4096
_HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
_UNPROTECTED = "RocketMQ protects this field by no checksum, and nothing repeats it"


def _said(anatomy: Anatomy, code: Code, record: Record) -> frozenset[Said]:
    return frozenset((Said(code, anatomy.name(record.path), record.position),))


def _offsets(records: Iterable[Record]) -> frozenset[int]:
    return frozenset(record.offset for record in records)


def victim(anatomy: Anatomy, *, body: bool = False) -> Record:
    """An ordinary record in the middle of the log; with ``body`` one that has a body."""
    plain = [record for record in anatomy.plain if record.message.stored_body or not body]
    if not plain:
        raise NotHere(Lack.NO_PLAIN_RECORD)
    return plain[len(plain) // 2]


def _inner_files(anatomy: Anatomy, count: int) -> list[LogFile]:
    """Sound files with a file before and one after them; the first counts, too."""
    files = [file for file in anatomy.sound_log if file.blank and len(file.records) > 3]
    if len(files) < count + 1:
        raise NotHere(Lack.ONE_LOG_FILE)
    return files[1 : count + 1]


def sound_end(anatomy: Anatomy) -> LogFile:
    """The newest file with records, if the log ends in it and no queue has more."""
    last = anatomy.log[-1]
    ends = [
        offset + size
        for files in anatomy.queues.values()
        for file in files
        for offset, size, _ in file.units
    ]
    end = max(ends, default=0) > last.first + last.end
    if last not in anatomy.sound_log or len(last.records) < 4 or _has_rest(last) or end:
        raise NotHere(Lack.TAIL_DAMAGED)
    return last


def _has_rest(file: LogFile) -> bool:
    with file.path.open("rb") as opened:
        opened.seek(file.end)
        return not file.blank and any(opened.read(1 << 16))


# -- files ------------------------------------------------------------------------------------


def cut_middle(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file in the middle of the log ends inside a record."""
    (file,) = _inner_files(anatomy, 1)
    number = len(file.records) // 2
    record = file.records[number]
    knife.resize(file.path, record.position + record.size // 2)
    says = _said(anatomy, Code.LOG_FILE_LENGTH, record)
    return Damaged("", says, _offsets(file.records[number:]))


def cut_end(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The last file of the log ends inside its last record but one.

    The length of an only file is taken for that of the store's files; then units that point past
    it show another file, and a writer refuses.
    """
    file = sound_end(anatomy)
    record = file.records[-2]
    knife.resize(file.path, record.position + record.size // 2)
    only = len(anatomy.log) == 1 and not (anatomy.root / "rmqctl" / "store.json").exists()
    code = Code.LOG_TORN_TAIL if only else Code.LOG_FILE_LENGTH
    follows = frozenset((Code.LOG_FILE_MISSING,)) if only else frozenset()
    says, lost = _said(anatomy, code, record), _offsets(file.records[-2:])
    return Damaged("", says, lost, follows=follows)


def zeroed_tail(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The last two records are zeros, as after a loss of power."""
    file = sound_end(anatomy)
    record = file.records[-2]
    knife.patch(file.path, record.position, bytes(file.end - record.position))
    says = _said(anatomy, Code.LOG_TAIL_LOST, record)
    return Damaged("", says, _offsets(file.records[-2:]))


def bytes_behind_end(anatomy: Anatomy, knife: Knife) -> Damaged:
    """Left-over bytes after the last record."""
    file = sound_end(anatomy)
    if file.blank:
        raise NotHere(Lack.TAIL_DAMAGED)
    knife.patch(file.path, file.end, b"left over by somebody")
    says = Said(Code.LOG_TORN_TAIL, anatomy.name(file.path), file.end)
    return Damaged("", frozenset((says,)))


def missing_head(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The oldest file of the log is gone."""
    if len(anatomy.log) < 2:
        raise NotHere(Lack.ONE_LOG_FILE)
    file = anatomy.log[0]
    knife.remove(file.path)
    why = "the store looks as after a deletion of old files"
    return Damaged("", lost=_offsets(file.records), why_unseen=why)


def missing_middle(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file between others is gone."""
    (file,) = _inner_files(anatomy, 1)
    knife.remove(file.path)
    says = Said(Code.LOG_FILE_MISSING, anatomy.name(file.path), 0)
    return Damaged("", frozenset((says,)), _offsets(file.records))


def missing_tail(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The newest file of the log is gone, and the one made ahead of it, if there is one."""
    file = sound_end(anatomy)
    if len(anatomy.log) > 1 and anatomy.log[-2] not in anatomy.sound_log:
        raise NotHere(Lack.TAIL_DAMAGED)
    for path in sorted((anatomy.root / "commitlog").glob("[0-9]*")):
        if path >= file.path:
            knife.remove(path)
    says = Said(Code.LOG_FILE_MISSING, anatomy.name(file.path), 0)
    return Damaged("", frozenset((says,)), _offsets(file.records))


def swapped_files(anatomy: Anatomy, knife: Knife) -> Damaged:
    """Two files in the middle have each other's name."""
    one, other = _inner_files(anatomy, 2)
    knife.swap(one.path, other.path)
    says = {Said(Code.RECORD_MISPLACED, anatomy.name(file.path), 0) for file in (one, other)}
    return Damaged("", frozenset(says), _offsets(one.records + other.records))


def longer_file(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file in the middle is longer than the others."""
    (file,) = _inner_files(anatomy, 1)
    knife.resize(file.path, anatomy.config.mapped_file_size_commit_log + 100)
    says = Said(Code.LOG_FILE_LENGTH, anatomy.name(file.path), None)
    return Damaged("", frozenset((says,)))


def blank_zeroed(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The blank record of a file is zeros."""
    (file,) = _inner_files(anatomy, 1)
    knife.patch(file.path, file.end, bytes(8))
    says = Said(Code.BLANK_MISSING, anatomy.name(file.path), file.end)
    return Damaged("", frozenset((says,)))


def foreign_file(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file that is none of the log's lies in its folder."""
    path = anatomy.root / "commitlog" / "notes.txt"
    knife.replace(path, b"mine")
    return Damaged("", frozenset((Said(Code.FOREIGN_FILE, anatomy.name(path), None),)))


def other_log(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A file in the middle is that of another store's log, whose files begin at the same places."""
    (file,) = _inner_files(anatomy, 1)
    if not anatomy.queues:  # then it is unknown what should be in it
        raise NotHere(Lack.NO_QUEUE)
    size = anatomy.config.mapped_file_size_commit_log
    time = file.records[0].message.store_timestamp
    buffer, number = b"", 0
    while True:
        record = encode_record(
            topic="OfAnotherStore",
            queue_id=number % 2,
            body=b"another store's body",
            properties=b"KEYS\x01another-key",
            queue_offset=5000 + number // 2,
            physical_offset=file.first + len(buffer),
            store_timestamp=time,
            born_timestamp=time,
            born_host=_HOST,
            store_host=_HOST,
        )
        if len(buffer) + len(record) + 8 > size:
            break
        buffer += record
        number += 1
    buffer += blank_record(size - len(buffer))
    knife.patch(file.path, 0, buffer.ljust(size, b"\0"))
    says = Said(Code.LOG_FILE_FOREIGN, anatomy.name(file.path), 0)
    return Damaged("", frozenset((says,)), _offsets(file.records))


# -- bytes ------------------------------------------------------------------------------------


def zeroed_page(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A page of the log is zeros."""
    file, start, hit = _page(anatomy)
    first = hit[0]
    knife.patch(file.path, start, bytes(PAGE))
    says = set()
    behind_lengths = _properties_at(first)
    if start >= first.position + behind_lengths:
        says.add(Said(Code.PROPERTIES_DAMAGED, anatomy.name(file.path), first.position))
        first = hit[1]
    if len(hit) == 1 and start + PAGE <= hit[0].position + _properties_at(hit[0]) - 3:
        says.add(Said(Code.RECORD_DAMAGED, anatomy.name(file.path), first.position))
    else:
        says.add(Said(Code.LOG_BYTES_LOST, anatomy.name(file.path), first.position))
    return Damaged("", frozenset(says), _offsets(hit))


def _page(anatomy: Anatomy) -> tuple[LogFile, int, list[Record]]:
    """A page with ordinary records only, after which its file goes on; the middle one of all."""
    plain = {record.offset for record in anatomy.plain}
    found = []
    for file in anatomy.sound_log:
        for start in range(0, file.end - PAGE, PAGE):
            hit = [
                record
                for record in file.records
                if start - record.size < record.position < start + PAGE
            ]
            if all(record.offset in plain for record in hit):
                found.append((file, start, hit))
    if not found:
        raise NotHere(Lack.NO_PLAIN_RECORD)
    return found[len(found) // 2]


def _properties_at(record: Record) -> int:
    """Where in a record the text of its properties begins."""
    message = record.message
    head = HEAD_SIZES[message.sys_flag >> 4 & 3]
    return head + len(message.stored_body) + 1 + len(message.topic.encode()) + 2


_LOST, _DAMAGED, _PLACE = Code.LOG_BYTES_LOST, Code.RECORD_DAMAGED, Code.RECORD_MISPLACED
HEAD_BITS: dict[str, tuple[int, int, Code | None]] = {
    # field, lowest or highest bit: byte, bit, what is said
    "size, lowest": (3, 0, _LOST),
    "size, highest": (0, 7, _LOST),
    "magic, lowest": (7, 0, _LOST),
    "magic, highest": (4, 7, _LOST),
    "bodyCRC, lowest": (11, 0, _DAMAGED),
    "bodyCRC, highest": (8, 7, _DAMAGED),
    "queueId, lowest": (15, 0, _PLACE),
    "queueId, highest": (12, 7, _PLACE),
    "flag, lowest": (19, 0, None),
    "flag, highest": (16, 7, None),
    "queueOffset, lowest": (27, 0, _PLACE),
    "queueOffset, highest": (20, 7, _PLACE),
    "physicalOffset, lowest": (35, 0, _PLACE),
    "physicalOffset, highest": (28, 7, _PLACE),
    "sysFlag, compressed": (39, 0, Code.BODY_UNREADABLE),
    "sysFlag, tags": (39, 1, None),
    "sysFlag, prepared": (39, 2, Code.UNIT_WRONG),
    "sysFlag, committed": (39, 3, None),
    "sysFlag, born host": (39, 4, _LOST),
    "sysFlag, store host": (39, 5, _LOST),
    "sysFlag, highest": (36, 7, None),
    "bornTimestamp, lowest": (47, 0, None),
    "bornTimestamp, highest": (40, 7, None),
    "bornHost, lowest": (55, 0, None),
    "bornHost, highest": (48, 7, None),
    "storeTimestamp, highest": (56, 7, Code.STORE_TIME_BACK),
    "storeHost, lowest": (71, 0, None),
    "storeHost, highest": (64, 7, None),
    "reconsumeTimes, lowest": (75, 0, None),
    "reconsumeTimes, highest": (72, 7, None),
    "preparedTransactionOffset, lowest": (83, 0, None),
    "preparedTransactionOffset, highest": (76, 7, None),
    "bodyLength, lowest": (87, 0, _LOST),
    "bodyLength, highest": (84, 7, _LOST),
}


def flipped_head(field: str, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit of a record's head, whose hosts are of IPv4, is another."""
    record = victim(anatomy, body=True)
    byte, bit, code = HEAD_BITS[field]
    if record.message.sys_flag & 0x30:
        raise NotHere(Lack.NO_PLAIN_RECORD)
    knife.flip(record.path, record.position + byte, bit)
    if code is None or (code is Code.BODY_UNREADABLE and record.message.sys_flag & 1):
        return Damaged("", why_unseen=_UNPROTECTED)
    if code is Code.UNIT_WRONG:
        found = anatomy.unit_of(record)
        assert found is not None
        says = frozenset((Said(code, anatomy.name(found[0].path), 20 * found[1]),))
        return Damaged("", says)
    if field.startswith("bodyLength"):
        with record.path.open("rb") as file:
            file.seek(record.position)
            buffer = file.read(record.size)
        if check_record(buffer, 0, record.size).kind is CheckKind.MESSAGE:
            code = _PLACE  # its bytes make a record of another topic
    harmless = code in (Code.STORE_TIME_BACK, Code.BODY_UNREADABLE)
    lost = frozenset() if harmless else _offsets((record,))
    return Damaged("", _said(anatomy, code, record), lost)


def flipped_body(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit of a body is another."""
    record = victim(anatomy, body=True)
    head = HEAD_SIZES[record.message.sys_flag >> 4 & 3]
    knife.flip(record.path, record.position + head, 3)
    return Damaged("", _said(anatomy, Code.RECORD_DAMAGED, record), _offsets((record,)))


def flipped_behind_body(code: Code, back: int, bit: int, anatomy: Anatomy, knife: Knife) -> Damaged:
    """A bit so many bytes before the properties (or in them) is another."""
    record = victim(anatomy)
    topic = len(record.message.topic.encode())
    back = topic + 3 if back == _TOPIC_LENGTH else back
    knife.flip(record.path, record.position + _properties_at(record) - back, bit)
    lost = frozenset() if code is Code.PROPERTIES_DAMAGED else _offsets((record,))
    return Damaged("", _said(anatomy, code, record), lost)


_TOPIC_LENGTH = 1000

KINDS: dict[str, Kind] = {
    "log: a file in the middle cut": cut_middle,
    "log: the last file cut": cut_end,
    "log: the last records zeroed": zeroed_tail,
    "log: bytes behind the end": bytes_behind_end,
    "log: the first file missing": missing_head,
    "log: a file in the middle missing": missing_middle,
    "log: the last file missing": missing_tail,
    "log: two files swapped": swapped_files,
    "log: a file too long": longer_file,
    "log: a blank record zeroed": blank_zeroed,
    "log: a foreign file": foreign_file,
    "log: a file of another log": other_log,
    "log: a page zeroed": zeroed_page,
    "log: a bit of a body": flipped_body,
    "log: a bit of a topic": partial(flipped_behind_body, _PLACE, 3, 0),
    "log: a bit of a topic's length": partial(flipped_behind_body, _LOST, _TOPIC_LENGTH, 0),
    "log: a bit of the properties' length": partial(flipped_behind_body, _LOST, 1, 0),
    "log: a bit of the properties": partial(flipped_behind_body, Code.PROPERTIES_DAMAGED, 0, 7),
    **{f"log: a bit of {field}": partial(flipped_head, field) for field in HEAD_BITS},
}
