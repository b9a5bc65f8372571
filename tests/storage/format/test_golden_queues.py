"""Units of golden consume queues, byte for byte and against their records."""

from collections import defaultdict
from pathlib import Path

import pytest

from storage.format.cq_unit import StoreUnit, iter_units
from storage.format.cqext import decode_ext_unit, ext_offset, is_ext_addr
from storage.format.delay import (
    DEFAULT_DELAY_LEVELS,
    capped_level,
    delay_ms,
    parse_delay_levels,
)
from storage.format.java_hash import tags_code
from storage.format.message import SCHEDULE_TOPIC, MessageExt
from storage.format.sys_flag import gets_unit
from tests.support import golden
from tests.support.golden_log import records

ALL = pytest.mark.parametrize("name", golden.names())


def queue_files(name: str) -> dict[tuple[str, int], list[Path]]:
    files: dict[tuple[str, int], list[Path]] = defaultdict(list)
    for path in sorted((golden.store(name) / "consumequeue").glob("*/*/*")):
        files[path.parent.parent.name, int(path.parent.name)].append(path)
    return files


def used_part(buffer: bytes) -> bytes:
    """Leave out the units that were never written: a queue file is 6 MB of mostly zeros."""
    used = len(buffer.rstrip(b"\0"))
    return buffer[: -(-used // 20) * 20]


@ALL
@pytest.mark.conformance("A13")
@pytest.mark.slow
def test_each_unit_is_the_same_bytes_and_agrees_with_its_record(name: str) -> None:
    settings = golden.manifest(name)["settings"]
    levels = parse_delay_levels(settings.get("messageDelayLevel", DEFAULT_DELAY_LEVELS))
    by_offset = {found.offset: found.message for found in records(name)}
    for (topic, queue_id), paths in queue_files(name).items():
        for path in paths:
            buffer = used_part(path.read_bytes())
            units = list(iter_units(buffer))
            assert b"".join(unit.pack() for unit in units) == buffer
            for number, unit in enumerate(units):
                assert unit == StoreUnit.unpack_from(buffer, 20 * number)
                message = by_offset.get(unit.commitlog_offset)
                if message is None or unit.is_pre_blank or not unit.is_present:
                    continue
                if (message.topic, message.queue_id) == (topic, queue_id):
                    assert gets_unit(message.sys_flag)
                    assert message.queue_offset == int(path.name) // 20 + number
                    assert unit.size == message.store_size
                    assert unit.tags_code == tags_code_of(message, unit, levels)
                else:
                    # Light queues share the records of others; retention left one dangling unit.
                    assert name in ("lmq-4.9", "retention-4.9")


def tags_code_of(message: MessageExt, unit: StoreUnit, levels: tuple[int, ...]) -> int:
    """What the unit of a message has to hold: the hash of its tag, or the time of delivery."""
    if message.topic == SCHEDULE_TOPIC and message.delay_time_level > 0:
        level = capped_level(message.delay_time_level, levels)
        return message.store_timestamp + delay_ms(level, levels)
    if is_ext_addr(unit.tags_code) or b"\0" in message.property_bytes:
        return unit.tags_code  # tested below; or the tag was zeroed by hand, the unit was not
    return tags_code(message.tags)


def test_an_ext_unit_holds_the_tag_hash_that_the_queue_has_no_room_for() -> None:
    by_offset = {found.offset: found.message for found in records("cqext-4.9")}
    folder = golden.store("cqext-4.9") / "consumequeue_ext"
    compared = 0
    for (topic, queue_id), paths in queue_files("cqext-4.9").items():
        ext_files = sorted((folder / topic / str(queue_id)).glob("*"))
        ext = b"".join(path.read_bytes() for path in ext_files)
        for path in paths:
            for unit in iter_units(path.read_bytes()):
                if not unit.is_present:
                    continue
                ext_unit = decode_ext_unit(ext, ext_offset(unit.tags_code))
                message = by_offset[unit.commitlog_offset]
                assert ext_unit is not None
                assert ext_unit.tags_code == tags_code(message.tags)
                assert ext_unit.store_timestamp == message.store_timestamp
                compared += 1
    assert compared == len(golden.manifest("cqext-4.9")["messages"])
