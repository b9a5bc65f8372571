"""Reading tar archives as a stream, with a bound for everything: an archive may be malicious.

Python's own reader trusts a header on how much to read into memory (long names, pax headers, maps
of holes) and skips unwanted content without a time limit. This one reads only what a snapshot can
contain: files, with holes or without, and folders. Forms of holes: GNU's 1.0 in pax headers, which
write_archive, GNU tar and bsdtar make, and GNU tar's own.
"""

from __future__ import annotations

import tarfile
from array import array
from collections.abc import Iterator
from typing import BinaryIO, Final

BLOCK: Final = 512
_CHUNK: Final = 1 << 20
_MOST_HEADER: Final = 256 << 10
"""Bytes of a pax header or a long name; a path has 4 KiB at most."""
_MOST_HEADERS: Final = 8
"""Headers in a row that belong to one member."""
_MOST_PIECES: Final = 1 << 20
"""Pieces between the holes of one file."""
_MOST_OTHERS: Final = 100_000
"""Folders in one archive."""
_PAX: Final = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_LONG: Final = (tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_GNU: Final = "GNU.sparse."
_KEYS: Final = frozenset({"path", "size"})
_LONGEST_NUMBER: Final = 19
_OLD_MAP: Final = 386
_OLD_EXTENDED: Final = 482
_OLD_SIZE: Final = 483
_OLD_MORE: Final = 504
_OLD_ENTRY: Final = 24
_KINDS: Final = {b"1": "a link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}


class TarError(ValueError):
    """The archive cannot be a snapshot."""


class TarMember:
    """One file of an archive. Read its content before the next member."""

    def __init__(self, reader: TarReader, name: str, size: int, pieces: array[int]) -> None:
        self.name = name
        self.size = size
        """Bytes of the file, holes included."""
        self._reader = reader
        self._pieces = pieces  # beginning and length, alternating

    @property
    def stored(self) -> int:
        """Bytes of its content in the archive."""
        return sum(self._pieces[1::2])

    def parts(self) -> Iterator[bytes | int]:
        """The file from beginning to end: bytes, and the lengths of holes. TarError if the archive
        ends before."""
        at = 0
        for number in range(0, len(self._pieces), 2):
            start, length = self._pieces[number], self._pieces[number + 1]
            if start > at:
                yield start - at
            at = start
            while at < start + length:
                data = self._reader.read(min(_CHUNK, start + length - at))
                self._reader.left -= len(data)
                yield data
                at += len(data)
        if self.size > at:
            yield self.size - at


class TarReader:
    """The files of an archive, one after the other."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._others = 0
        self.left = 0
        """Bytes of the current member that were not read yet."""
        self._padding = 0

    def read(self, size: int) -> bytes:
        """Read exactly so many bytes; TarError if there are fewer."""
        data = self._stream.read(size)
        while len(data) < size:
            more = self._stream.read(size - len(data))
            if not more:
                raise TarError("it ends in the middle")
            data += more
        return data

    def members(self) -> Iterator[TarMember]:
        """All files in their order. Raises TarError."""
        while (member := self._next()) is not None:
            yield member
            if self.left:
                raise TarError(f"{member.name} was not read to its end")
            self.read(self._padding)

    def _next(self) -> TarMember | None:
        name: str | None = None
        fields: dict[str, str] = {}
        headers = 0
        while True:
            head = self._header()
            if head is None:
                return None
            info, raw = head
            kind = info.type
            if kind in _PAX or kind in _LONG or kind == tarfile.XGLTYPE:
                headers += 1
                data = self._extension(info.size, headers)
                if kind in _PAX:
                    fields |= _pax_fields(data)
                elif kind == tarfile.GNUTYPE_LONGNAME:
                    name = data.rstrip(b"\0").decode("utf-8", "surrogateescape")
                continue
            if kind == tarfile.DIRTYPE:
                self._others += 1
                if info.size or self._others > _MOST_OTHERS:
                    raise TarError("it holds folders that are none, or too many")
                name, fields, headers = None, {}, 0
                continue
            return self._file(info, raw, name, fields)

    def _header(self) -> tuple[tarfile.TarInfo, bytes] | None:
        raw = self._stream.read(BLOCK)
        if not raw:
            return None
        if len(raw) < BLOCK:
            raw += self.read(BLOCK - len(raw))
        if raw == bytes(BLOCK):
            return None
        try:
            info = tarfile.TarInfo.frombuf(raw, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise TarError(str(error)) from error
        if info.size < 0:
            raise TarError("it holds a file of negative length")
        return info, raw

    def _extension(self, size: int, headers: int) -> bytes:
        if size > _MOST_HEADER or headers > _MOST_HEADERS:
            raise TarError(f"a name or a header of it has {size} bytes, or there are too many")
        data = self.read(size)
        self.read(-size % BLOCK)
        return data

    def _file(
        self, info: tarfile.TarInfo, raw: bytes, name: str | None, fields: dict[str, str]
    ) -> TarMember:
        shown = fields.get("path") or name or info.name
        stored = _number(fields["size"]) if "size" in fields else info.size
        if info.type == tarfile.GNUTYPE_SPARSE:
            pieces, size = self._old_pieces(raw), _old_number(raw, _OLD_SIZE)
        elif info.type not in _FILES:
            what = _KINDS.get(info.type, "something else than a file")
            raise TarError(f"it holds {what}, {shown!r}, which no snapshot has")
        elif any(key.startswith(_GNU) for key in fields):
            if fields.get(f"{_GNU}major") != "1" or fields.get(f"{_GNU}minor") != "0":
                raise TarError(f"the holes of {shown!r} are stored in a form that is not read")
            shown = fields.get(f"{_GNU}name", shown)
            size = _number(fields.get(f"{_GNU}realsize", ""))
            pieces, length = self._pieces(stored)
            stored -= length
        else:
            pieces, size = array("q", (0, stored)), stored
        _check_pieces(pieces, size, stored, shown)
        self.left = stored
        self._padding = -stored % BLOCK
        return TarMember(self, shown, size, pieces)

    def _pieces(self, stored: int) -> tuple[array[int], int]:
        """Read the map of a file with holes, which begins the content; gives its length, too."""
        numbers = self._lines(stored)
        count = next(numbers)[0]
        if count > _MOST_PIECES:
            raise TarError(f"a file of it has {count} pieces")
        pieces = array("q")
        length = 0
        for _ in range(2 * count):
            number, length = next(numbers)
            pieces.append(number)
        return pieces, max(length, BLOCK)

    def _lines(self, stored: int) -> Iterator[tuple[int, int]]:
        """Numbers of a map, each with the number of bytes read so far."""
        rest, length = b"", 0
        while True:
            if length + BLOCK > stored:
                raise TarError("a map of holes is longer than its file")
            if len(rest) > _LONGEST_NUMBER:  # zeros fill the last block, and are no number
                raise TarError("a map of holes ends before its last number")
            rest += self.read(BLOCK)
            length += BLOCK
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield _number(line.decode("latin-1")), length

    def _old_pieces(self, raw: bytes) -> array[int]:
        pieces = array("q")
        _add_old(pieces, raw, _OLD_MAP, 4)
        more = raw[_OLD_EXTENDED]
        while more:
            block = self.read(BLOCK)
            before = len(pieces)
            _add_old(pieces, block, 0, 21)
            more = block[_OLD_MORE]
            if len(pieces) > 2 * _MOST_PIECES or len(pieces) == before:
                raise TarError("a file of it has too many pieces, or a part of its map has none")
        return pieces


def _add_old(pieces: array[int], block: bytes, at: int, entries: int) -> None:
    for place in range(at, at + entries * _OLD_ENTRY, _OLD_ENTRY):
        if not block[place]:
            return
        pieces.append(_old_number(block, place))
        pieces.append(_old_number(block, place + 12))


def _old_number(block: bytes, at: int) -> int:
    """A number of a header: octal digits, or binary if the first bit is set."""
    field = block[at : at + 12]
    if field[0] & 0x80:
        number = int.from_bytes(field, "big") & ~(0x80 << 88)
    else:
        text = field.rstrip(b" \0").lstrip()
        if text.strip(b"01234567"):
            raise TarError("a number of it is none")
        number = int(text or b"0", 8)
    if number >= 1 << 63:
        raise TarError("a number of it is too large")
    return number


def _number(text: str) -> int:
    if not (0 < len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit()):
        raise TarError("a number of it is none")
    number = int(text)
    if number >= 1 << 63:
        raise TarError("a number of it is too large")
    return number


def _check_pieces(pieces: array[int], size: int, stored: int, name: str) -> None:
    at = total = 0
    for number in range(0, len(pieces), 2):
        start, length = pieces[number], pieces[number + 1]
        if start < at or start + length > size:
            raise TarError(f"the pieces of {name!r} overlap, or lie past its end")
        at = start + length
        total += length
    if total != stored:
        raise TarError(f"{name!r} has other pieces than it says")


def _pax_fields(data: bytes) -> dict[str, str]:
    """The fields that count of a pax header: ``LENGTH KEY=VALUE\\n`` in sequence."""
    fields = {}
    at = 0
    while at < len(data):
        digits, space, _ = data[at : at + 8].partition(b" ")
        if not space or not digits.isdigit():
            raise TarError("a header of it is none")
        end = at + int(digits)
        key, sign, value = data[at + len(digits) + 1 : end - 1].partition(b"=")
        if end <= at or end > len(data) or not sign:
            raise TarError("a header of it is none")
        name = key.decode("utf-8", "replace")
        if name in _KEYS or name.startswith(_GNU):
            fields[name] = value.decode("utf-8", "surrogateescape")
        at = end
    return fields
