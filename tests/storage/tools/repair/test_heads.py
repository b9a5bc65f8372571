"""A record whose body is whole gets its head back from its unit; nothing is guessed."""

import pytest

from storage.format.record import encode_record
from storage.tools.repair.record_header import mended_head, sanitized_properties
from storage.tools.repair.unit_lookup import UnitAt

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
RECORD = encode_record(
    topic="Topic",
    queue_id=3,
    body=b"the body of Topic",
    properties=b"TAGS\1a",
    queue_offset=70,
    physical_offset=4096,
    store_timestamp=1_700_000_000_000,
    born_timestamp=1_700_000_000_000,
    born_host=HOST,
    store_host=HOST,
)
UNIT = UnitAt(4096, len(RECORD), "Topic", 3, 70, False)
BODY = range(88, 88 + 17)
TOLD_TWICE = [*range(36), 39, *range(84, 88), *range(105, 113)]
"""Size, magic, CRC, queue, offsets, IPv6 bits, body length, topic, length of the properties."""
OPAQUE = range(16, 20)


def flipped(place, bits):
    record = bytearray(RECORD)
    record[place] ^= bits
    return bytes(record)


@pytest.mark.parametrize("place", [at for at in TOLD_TWICE if at not in OPAQUE and at != 39])
def test_every_bit_that_is_told_twice_is_mended(place):
    for bit in range(8):
        assert mended_head(flipped(place, 1 << bit), UNIT) == RECORD


@pytest.mark.parametrize("bits", [0x10, 0x20, 0x30, 0x4])
def test_hosts_and_kind_follow_from_the_lengths_and_the_unit(bits):
    assert mended_head(flipped(39, bits), UNIT) == RECORD


@pytest.mark.parametrize("place", BODY)
def test_a_damaged_body_is_never_taken_for_whole(place):
    for bit in range(8):
        assert mended_head(flipped(place, 1 << bit), UNIT) is None


def test_another_record_is_not_bent_to_the_unit():
    stranger = RECORD.replace(b"Topic", b"Other").replace(b"the body", b"a bodied")
    assert mended_head(stranger, UNIT._replace(offset=1 << 50, queue_offset=1 << 40)) is None


def test_a_record_that_was_cut_off_is_not_whole():
    assert mended_head(RECORD[:-4] + bytes(4), UNIT) is None


def test_properties_lose_what_no_text_has():
    broken = RECORD[:-1] + b"\0"
    assert sanitized_properties(broken) == RECORD[:-1] + b"?"
    assert sanitized_properties(RECORD[:-1] + b"\xff") == RECORD[:-1] + b"?"
    assert sanitized_properties(RECORD) is None


def test_a_record_that_contradicts_its_unit_in_two_ways_is_another_one():
    assert mended_head(RECORD, UNIT._replace(queue_offset=71)) is not None
    assert mended_head(RECORD, UNIT._replace(queue_offset=71, offset=8192)) is None
    assert mended_head(RECORD, UNIT._replace(queue_id=1, offset=8192)) is None
