"""JSON of rmqctl's own with a check sum: one line, so that a torn or changed one is seen.

    {"crc":"9ae0daaf","entry":{...}}

The CRC-32 (zlib, 8 hex digits) covers the bytes of the entry. Plain JSON for every other tool.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from storage.errors import CorruptFileError, StoreVersionError

_HEAD: Final = b'{"crc":"'
_MIDDLE: Final = b'","entry":'
_ENTRY_START: Final = len(_HEAD) + 8 + len(_MIDDLE)


def seal(entry: dict[str, Any]) -> bytes:
    """Write ``entry`` as one line, without the newline."""
    body = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
    return b"%s%08x%s%s}" % (_HEAD, crc32(body), _MIDDLE, body)


def unseal(line: bytes) -> dict[str, Any] | None:
    """Read one line; None if it is not whole or its check sum is wrong."""
    line = line.strip()
    body = line[_ENTRY_START:-1]
    if not body or line != b"%s%08x%s%s}" % (_HEAD, crc32(body), _MIDDLE, body):
        return None
    try:
        entry = json.loads(body)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def read_sealed(path: Path, version: int, *, remedy: str) -> dict[str, Any] | None:
    """Read a file of one sealed entry; None if it is not there.

    Raises CorruptFileError, which tells the ``remedy``, and StoreVersionError for an entry of a
    later version than ``version``, the last one that the caller knows. OSError as it comes.
    """
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    entry = unseal(data)
    if entry is None:
        raise CorruptFileError(path, 0, f"the check sum is wrong ({remedy})")
    if entry["version"] > version:
        raise StoreVersionError(path, entry["version"], version)
    return entry
