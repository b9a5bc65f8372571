"""JSON of rmqctl's own with a checksum: one line, so that a torn or changed one is noticed.

    {"crc":"9ae0daaf","entry":{...}}

The CRC-32 (zlib, 8 hex digits) covers the bytes of the entry. Plain JSON for every other tool.

A checksum proves that a line is as it was written, not that its writer was right: the line is also
checked against a shape (storage.format.shapes), so that no reader meets a value of another type or
out of its range. All of rmqctl's own files are read by the functions here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from storage.errors import CorruptFileError, StoreVersionError
from storage.files.bounded import read_bounded
from storage.format.errors import FormatError, JsonError
from storage.format.shapes import Shape, check, members, whole
from storage.format.strict_json import loads_strict

MAX_VERSION: Final = 1_000
"""A larger version is damage, and not the version of a later rmqctl."""
_HEAD: Final = b'{"crc":"'
_MIDDLE: Final = b'","entry":'
ENTRY_START: Final = len(_HEAD) + 8 + len(_MIDDLE)
"""Where the entry begins in its line."""
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_VERSIONED: Final = members({"version": whole(1, MAX_VERSION)})


class SealError(FormatError):
    """A line that ``seal`` did not write, or that holds what its writer never writes.

    ``position`` counts bytes from the start of the line. ``torn`` if the line ends too early, as a
    death or a full disk leaves it.
    """

    def __init__(self, reason: str, position: int = 0, *, torn: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position
        self.torn = torn


def seal(entry: dict[str, Any]) -> bytes:
    """Write ``entry`` as one line, without the newline.

    Names in files of a broker may have bytes that are no UTF-8: FF is written as ``\\udcff``, and
    read as the same text again. UnicodeEncodeError for any other half of a surrogate pair.
    """
    return seal_json(_ENCODER.encode(entry))


def seal_json(text: str) -> bytes:
    """Write the JSON of an entry as ``seal`` does."""
    return seal_body(json_bytes(text))


def json_bytes(text: str) -> bytes:
    """JSON as UTF-8, with bytes that are none as escapes: see ``seal``."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        text.encode("utf-8", "surrogateescape")  # raises for what no reader takes
        return text.encode("utf-8", "backslashreplace")


def seal_body(body: bytes) -> bytes:
    """Write the JSON of an entry as one line, without the newline."""
    return b"%s%08x%s%s}" % (_HEAD, crc32(body), _MIDDLE, body)


def unseal(line: bytes, shape: Shape | None = None) -> dict[str, Any] | None:
    """Read one line; None if ``examine`` would raise."""
    try:
        return examine(line, shape)
    except SealError:
        return None


def examine(line: bytes, shape: Shape | None = None) -> dict[str, Any]:
    """Read one line; SealError says what is wrong with it and where."""
    body = body_of(line)
    if body is None:
        raise SealError("the check sum is wrong", torn=_is_torn(line.strip()))
    try:
        entry = loads_strict(body, escaped_bytes=True)
    except JsonError as error:
        raise SealError(f"not JSON: {error.reason}", ENTRY_START + error.position) from None
    if not isinstance(entry, dict):
        raise SealError("its entry is no object", ENTRY_START)
    if shape is not None:
        try:
            check(entry, shape)
        except FormatError as error:
            raise SealError(str(error), ENTRY_START) from None
    return entry


def body_of(line: bytes) -> bytes | None:
    """The bytes of a line's entry, which may still be no JSON; None if the checksum is wrong."""
    line = line.strip()
    body = line[ENTRY_START:-1]
    if not body or line != b"%s%08x%s%s}" % (_HEAD, crc32(body), _MIDDLE, body):
        return None
    return body


def read_sealed(
    path: Path, version: int, shape: Shape | None = None, *, remedy: str
) -> dict[str, Any] | None:
    """Read a file of one sealed entry of a shape; None if it is not there.

    Raises CorruptFileError, which names the ``remedy``, and StoreVersionError for an entry of a
    later version than ``version``, the last one that the caller supports. OSError as it comes.
    """
    try:
        data = read_bounded(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return entry_of(data, path, version, shape, remedy=remedy)


def entry_of(
    data: bytes, path: Path, version: int, shape: Shape | None = None, *, remedy: str
) -> dict[str, Any]:
    """Read the content of such a file; ``path`` is for the sentence.

    Raises CorruptFileError and StoreVersionError as ``read_sealed`` does.
    """
    try:
        entry = examine(data, _VERSIONED)
        if entry["version"] > version:  # its shape differs
            raise StoreVersionError(path, entry["version"], version)
        if shape is not None:
            check(entry, shape)
    except SealError as error:
        raise CorruptFileError(path, error.position, f"{error.reason} ({remedy})") from None
    except FormatError as error:
        raise CorruptFileError(path, ENTRY_START, f"{error} ({remedy})") from None
    return entry


def _is_torn(line: bytes) -> bool:
    """Whether a line may be the first part of one."""
    head, middle = line[: len(_HEAD)], line[len(_HEAD) + 8 : ENTRY_START]
    return (
        _HEAD.startswith(head) and _MIDDLE.startswith(middle) and not line.endswith(b"}}")
    ) or not line.strip(b"\0")
