"""Archives byte by byte: what the reader gives of them, and what it refuses."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable

import pytest

from storage.tools.snapshot import tar_reader
from storage.tools.snapshot.tar_reader import BLOCK, TarError, TarReader

Found = list[tuple[str, int, bytes]]


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % BLOCK)


def file(name: str, data: bytes) -> bytes:
    return header(name, len(data)) + padded(data)


def field(key: str, value: str) -> bytes:
    length = len(key) + len(value) + 3
    while len(str(length)) + len(key) + len(value) + 3 != length:
        length = len(str(length)) + len(key) + len(value) + 3
    return f"{length} {key}={value}\n".encode()


def pax(*fields: bytes) -> bytes:
    data = b"".join(fields)
    return header("pax", len(data), tarfile.XHDTYPE) + padded(data)


def long_name(name: str) -> bytes:
    return header("long", len(name) + 1, tarfile.GNUTYPE_LONGNAME) + padded(name.encode() + b"\0")


def sparse(
    pieces: list[tuple[int, bytes]], size: int, *, minor: str = "0", count: int | None = None
) -> bytes:
    numbers = [len(pieces) if count is None else count]
    for start, data in pieces:
        numbers += [start, len(data)]
    content = padded("".join(f"{number}\n" for number in numbers).encode())
    content += b"".join(data for _, data in pieces)
    fields = [("major", "1"), ("minor", minor), ("name", "whole"), ("realsize", str(size))]
    return pax(*(field(f"GNU.sparse.{key}", value) for key, value in fields)) + file("s", content)


def old_sparse(entries: list[tuple[int, int]], size: int, data: bytes, more: bytes = b"") -> bytes:
    raw = bytearray(header("old", len(data), tarfile.GNUTYPE_SPARSE))
    for at, numbers in enumerate(entries[:4]):
        for side, number in enumerate(numbers):
            place = 386 + 24 * at + 12 * side
            raw[place : place + 12] = b"%011o\0" % number
    raw[482] = bool(more)
    raw[483:495] = b"%011o\0" % size
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + more + padded(data)


def extension(entries: list[tuple[int, int]], *, more: bool) -> bytes:
    raw = bytearray(BLOCK)
    for at, numbers in enumerate(entries):
        for side, number in enumerate(numbers):
            place = 24 * at + 12 * side
            raw[place : place + 12] = b"%011o\0" % number
    raw[504] = more
    return bytes(raw)


def read(archive: bytes) -> Found:
    """All files, with their holes as zeros."""
    found = []
    for member in TarReader(io.BytesIO(archive)).members():
        content = b"".join(
            bytes(part) if isinstance(part, int) else part for part in member.parts()
        )
        found.append((member.name, member.size, content))
    return found


def test_files_come_one_behind_the_other() -> None:
    archive = file("a", b"x" * 700) + header("d", 0, tarfile.DIRTYPE) + file("b", b"") + bytes(1024)
    assert read(archive) == [("a", 700, b"x" * 700), ("b", 0, b"")]
    assert read(file("a", b"x" * 512) + file("b", b"y")) == [
        ("a", 512, b"x" * 512),
        ("b", 1, b"y"),
    ]
    assert read(b"") == []


def test_a_name_in_a_header_of_its_own_is_of_the_next_member_only() -> None:
    name = "n" * 300
    assert [found[0] for found in read(long_name(name) + file("a", b"1") + file("b", b"2"))] == [
        name,
        "b",
    ]
    assert [
        found[0] for found in read(pax(field("path", name)) + file("a", b"") + file("b", b""))
    ] == [name, "b"]
    folder = long_name(name) + header("d", 0, tarfile.DIRTYPE)
    assert [found[0] for found in read(folder + file("b", b"2"))] == ["b"]
    sized = pax(field("size", "3"), field("mtime", "1.5")) + header("a", 0) + padded(b"abc")
    assert read(sized) == [("a", 3, b"abc")]


def test_a_file_with_holes_is_as_long_as_it_says() -> None:
    pieces = [(0, b"a" * 10), (600, b"b" * 20)]
    whole = (b"a" * 10).ljust(600, b"\0") + b"b" * 20
    assert read(sparse(pieces, 1000) + file("n", b"1")) == [
        ("whole", 1000, whole.ljust(1000, b"\0")),
        ("n", 1, b"1"),
    ]
    assert read(sparse([(5, b"x")], 6)) == [("whole", 6, bytes(5) + b"x")]
    assert read(sparse([], 50)) == [("whole", 50, bytes(50))]
    many = [(3 * at, b"z") for at in range(200)]
    assert read(sparse(many, 600)) == [("whole", 600, b"z\0\0" * 200)]


def test_the_old_form_of_holes_may_go_on_in_further_blocks() -> None:
    assert read(old_sparse([(2, 3)], 8, b"abc")) == [("old", 8, b"\0\0abc\0\0\0")]
    entries = [(2 * at, 1) for at in range(30)]
    more = extension(entries[4:25], more=True) + extension(entries[25:], more=False)
    archive = old_sparse(entries, 60, b"x" * 30, more) + file("n", b"1")
    assert read(archive) == [("old", 60, b"x\0" * 30), ("n", 1, b"1")]


def test_a_member_says_how_much_of_it_is_in_the_archive() -> None:
    (member,) = [
        m for m in TarReader(io.BytesIO(sparse([(9, b"xy")], 50))).members() if [*m.parts()]
    ]
    assert (member.stored, member.size) == (2, 50)


MAP = [("major", "1"), ("minor", "0"), ("name", "whole"), ("realsize", "9")]
HARM: dict[str, Callable[[], bytes]] = {
    "cut in a head": lambda: file("a", b"x")[:100],
    "cut in a file": lambda: file("a", b"x" * 600)[: BLOCK + 100],
    "cut in the padding": lambda: file("a", b"x")[: BLOCK + 100],
    "no head": lambda: b"x" * BLOCK,
    "a link": lambda: header("a", 0, tarfile.SYMTYPE),
    "a hard link": lambda: header("a", 0, tarfile.LNKTYPE),
    "a device": lambda: header("a", 0, tarfile.CHRTYPE),
    "a pipe": lambda: header("a", 0, tarfile.FIFOTYPE),
    "a folder with content": lambda: header("d", 5, tarfile.DIRTYPE) + padded(b"12345"),
    "a file in the place of a folder's content": lambda: (
        header("d", BLOCK, tarfile.DIRTYPE) + file("x", b"")
    ),
    "a number of a map that goes on in the next block": lambda: (
        pax(*(field(f"GNU.sparse.{key}", value) for key, value in MAP))
        + file("s", (b"1\n" + b"1" * 510 + b"5\n3\n").ljust(2 * BLOCK, b"\0") + b"abc")
    ),
    "a header too long": lambda: pax(field("path", "x" * (257 << 10))) + file("a", b""),
    "too many headers": lambda: pax(field("path", "x")) * 9 + file("a", b""),
    "no length of a field": lambda: pax(b"x path=a\n") + file("a", b""),
    "a field without end": lambda: pax(b"99 path=a\n") + file("a", b""),
    "a field of no length": lambda: pax(b"0 path=a\n") + file("a", b""),
    "a field without sign": lambda: pax(b"8 patha\n") + file("a", b""),
    "a field without blank": lambda: pax(b"12345678") + file("a", b""),
    "a size that is none": lambda: pax(field("size", "1x")) + file("a", b"x"),
    "a size below zero": lambda: pax(field("size", "-1")) + file("a", b"x"),
    "a size of too many digits": lambda: pax(field("size", "1" * 30)) + file("a", b"x"),
    "a size beyond a long": lambda: pax(field("size", str(1 << 63))) + file("a", b"x"),
    "holes of another form": lambda: sparse([(0, b"x")], 9, minor="1"),
    "holes without a size": lambda: (
        pax(field("GNU.sparse.major", "1"), field("GNU.sparse.minor", "0"))
        + file("a", padded(b"0\n"))
    ),
    "more pieces than any": lambda: sparse([], 9, count=(1 << 20) + 1),
    "a map that does not end": lambda: sparse([], 9, count=5),
    "a piece behind the end": lambda: sparse([(8, b"xy")], 9),
    "pieces that overlap": lambda: sparse([(0, b"xxxx"), (3, b"yy")], 9),
    "pieces out of order": lambda: sparse([(5, b"x"), (0, b"y")], 9),
    "old pieces of another sum": lambda: old_sparse([(0, 2)], 9, b"abc"),
    "old pieces behind the end": lambda: old_sparse([(8, 3)], 9, b"abc"),
}


@pytest.mark.parametrize("name", HARM)
def test_what_is_no_archive_of_files_is_refused(name: str) -> None:
    with pytest.raises(TarError):
        read(HARM[name]())


@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.XHDTYPE, tarfile.DIRTYPE])
def test_a_length_below_zero_is_refused_before_anything_is_read(kind: bytes) -> None:
    raw = bytearray(header("a", 0, kind))
    raw[124:136] = (-5).to_bytes(12, "big", signed=True)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    stream = io.BytesIO(bytes(raw) + bytes(10 * BLOCK))
    with pytest.raises(TarError, match="negative length"):
        next(TarReader(stream).members())
    assert stream.tell() == BLOCK


def test_a_map_is_not_looked_for_behind_its_file() -> None:
    archive = sparse([], 9, count=5)
    stream = io.BytesIO(archive + bytes(1 << 20))
    with pytest.raises(TarError, match="a map of holes is longer than its file"):
        next(TarReader(stream).members())
    assert stream.tell() <= len(archive)


def test_a_map_without_numbers_is_not_read_to_its_claimed_end() -> None:
    for content in (b"5\n" + bytes(1 << 20), b"5\n" + b"1" * (1 << 20)):
        fields = [("major", "1"), ("minor", "0"), ("name", "whole"), ("realsize", "9")]
        head = pax(*(field(f"GNU.sparse.{key}", value) for key, value in fields))
        stream = io.BytesIO(head + file("s", content))
        with pytest.raises(TarError, match="a map of holes ends before its last number"):
            next(TarReader(stream).members())
        assert stream.tell() <= len(head) + 4 * BLOCK


def test_further_blocks_of_an_old_map_have_pieces() -> None:
    stream = io.BytesIO(old_sparse([(0, 0)], 9, b"", extension([], more=True) * 100))
    with pytest.raises(TarError, match="a part of its map has none"):
        next(TarReader(stream).members())
    assert stream.tell() <= 3 * BLOCK


def test_pieces_that_are_not_what_is_stored_are_told_before_they_are_read() -> None:
    for archive in (
        old_sparse([(0, 2)], 9, b"abc"),
        old_sparse([(0, 4)], 9, b"abc"),
        sparse([(0, b"x")], 9)[: -2 * BLOCK]
        + sparse([(0, b"x")], 9)[-2 * BLOCK :].replace(b"\n1\n", b"\n2\n"),
    ):
        with pytest.raises(TarError, match="has other pieces than it says"):
            next(TarReader(io.BytesIO(archive)).members())


def test_a_number_of_a_further_block_is_octal() -> None:
    more = bytearray(extension([(4, 1)], more=False))
    archive = [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert read(old_sparse(archive, 9, b"abcde", bytes(more))) == [
        ("old", 9, b"abcde".ljust(9, b"\0"))
    ]
    more[:12] = b"00000000009\0"
    with pytest.raises(TarError, match="a number of it is none"):
        read(old_sparse(archive, 9, b"abcde", bytes(more)))


def test_the_limits_are_the_last_that_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read(pax(field("path", "x")) * 8 + file("a", b""))) == 1
    monkeypatch.setattr(tar_reader, "_MOST_OTHERS", 3)
    folders = header("d", 0, tarfile.DIRTYPE)
    assert len(read(folders * 3 + file("a", b""))) == 1
    with pytest.raises(TarError, match="too many"):
        read(folders * 4 + file("a", b""))
    monkeypatch.setattr(tar_reader, "_MOST_PIECES", 4)
    assert read(sparse([(at, b"z") for at in range(4)], 4)) == [("whole", 4, b"zzzz")]
    with pytest.raises(TarError, match="5 pieces"):
        read(sparse([(at, b"z") for at in range(5)], 5))
    with pytest.raises(TarError, match="too many pieces"):
        read(old_sparse([(0, 0)] * 4, 9, b"", extension([(0, 0)] * 21, more=True) * 2))


def test_a_member_is_read_before_the_next_one_is_asked_for() -> None:
    members = TarReader(io.BytesIO(file("a", b"x") + file("b", b"y"))).members()
    next(members)
    with pytest.raises(TarError, match="a was not read to its end"):
        next(members)


@pytest.mark.parametrize("digits", [b"0000000000x\0", b"-0000000001\0", b"\xff" * 12])
def test_a_number_of_the_old_form_is_octal_or_binary(digits: bytes) -> None:
    raw = bytearray(old_sparse([(0, 1)], 9, b"x"))
    raw[483:495] = digits
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:BLOCK])
    with pytest.raises(TarError):
        read(bytes(raw))
    raw[483:495] = b"\x80" + (9).to_bytes(11, "big")
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:BLOCK])
    assert read(bytes(raw)) == [("old", 9, b"x".ljust(9, b"\0"))]
