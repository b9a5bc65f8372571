"""One line of rmqctl's own with its checksum: read as it was written, or reported as damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.configs.checksummed_json import (
    MAX_VERSION,
    SealError,
    entry_of,
    examine,
    read_sealed,
    seal,
    unseal,
)
from storage.errors import CorruptFileError, StoreVersionError
from storage.format.partial_json import loads_torn
from storage.format.shapes import members, whole

ENTRY = {"version": 1, "name": "\u20ac", "rows": [1, 2]}
SHAPE = members({"rows": whole(0)})
REMEDY = "make it again"


def sealed(text: bytes) -> bytes:
    """A line with the right check sum around any bytes."""
    from zlib import crc32

    return b'{"crc":"%08x","entry":%s}' % (crc32(text), text)


def test_a_line_is_read_as_it_was_written() -> None:
    assert examine(seal(ENTRY)) == ENTRY
    assert examine(seal(ENTRY) + b"\r\n") == ENTRY
    assert unseal(seal({})) == {}


def test_every_byte_that_changes_is_seen() -> None:
    line = seal(ENTRY)
    for position in range(len(line)):
        changed = bytearray(line)
        changed[position] ^= 1
        assert unseal(bytes(changed)) is None, position


def test_a_line_that_ends_too_early_is_torn() -> None:
    line = seal(ENTRY)
    for length in range(len(line) - 1):
        with pytest.raises(SealError) as raised:
            examine(line[:length])
        assert raised.value.torn, length
    for zeros in (bytes(1), bytes(100)):
        with pytest.raises(SealError) as raised:
            examine(zeros)
        assert raised.value.torn


@pytest.mark.parametrize(
    "line", [b"x", b"hello world", seal(ENTRY)[1:], b'{"crc":"00000000","entry":{}}', b'{"a":1}}']
)
def test_what_was_never_the_begin_of_a_line_is_not_torn(line: bytes) -> None:
    with pytest.raises(SealError) as raised:
        examine(line)
    assert not raised.value.torn


@pytest.mark.parametrize("text", [b"[1]", b"1", b"null", b'"x"', b"{", b"NaN", b"[" * 1000])
def test_a_right_check_sum_makes_no_entry(text: bytes) -> None:
    with pytest.raises(SealError):
        examine(sealed(text))


def test_an_entry_has_its_shape() -> None:
    assert examine(seal({"rows": 1}), SHAPE) == {"rows": 1}
    with pytest.raises(SealError, match="rows is -1"):
        examine(seal({"rows": -1}), SHAPE)
    assert unseal(seal({"rows": -1}), SHAPE) is None


def test_a_file_of_one_entry(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_sealed(path, 1, remedy=REMEDY) is None
    path.write_bytes(seal(ENTRY) + b"\n")
    assert read_sealed(path, 1, remedy=REMEDY) == ENTRY
    assert read_sealed(path / "below", 1, remedy=REMEDY) is None, "a file is no folder"
    with pytest.raises(CorruptFileError, match=REMEDY):
        read_sealed(path, 1, SHAPE, remedy=REMEDY)


def test_a_later_version_is_told_as_one_and_its_shape_is_not_asked_for() -> None:
    path = Path("file")
    assert entry_of(seal({"version": 2, "rows": 1}), path, 2, SHAPE, remedy=REMEDY)
    with pytest.raises(StoreVersionError):
        entry_of(seal({"version": 3}), path, 2, SHAPE, remedy=REMEDY)
    with pytest.raises(StoreVersionError):
        entry_of(seal({"version": MAX_VERSION}), path, 2, SHAPE, remedy=REMEDY)


@pytest.mark.parametrize("version", [1_001, 0, -1, "1", None, 1.0, True])
def test_a_version_that_no_rmqctl_has_is_damage(version: object) -> None:
    with pytest.raises(CorruptFileError, match=REMEDY):
        entry_of(seal({"version": version}), Path("file"), 1, remedy=REMEDY)
    with pytest.raises(CorruptFileError, match="no member version"):
        entry_of(seal({}), Path("file"), 1, remedy=REMEDY)


def test_bytes_that_are_no_utf8_are_read_as_they_were_written() -> None:
    name = b"T\xff\xc3@g\x80".decode("utf-8", "surrogateescape")
    line = seal({name: 1})
    assert line.isascii()
    assert examine(line) == {name: 1}
    assert loads_torn(line.decode()).document["entry"] == {name: 1}


@pytest.mark.parametrize("half", [0xD800, 0xDFFF, 0xDC7F])
def test_any_other_half_of_a_surrogate_pair_is_neither_written_nor_read(half: int) -> None:
    with pytest.raises(UnicodeEncodeError):
        seal({chr(half): 1})
    text = b'{"\\u%04x":1}' % half
    with pytest.raises(SealError, match="half of a surrogate pair"):
        examine(sealed(text))
    assert loads_torn(text.decode()).document == {"\ufffd": 1}
