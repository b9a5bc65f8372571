"""The records of golden commit logs, found by walking the files."""

from pathlib import Path
from typing import NamedTuple

from storage.format.check import CheckKind, check_record
from storage.format.message import MessageExt
from storage.format.names import parse_file_name
from storage.format.record import decode_record
from tests.support import golden


class Found(NamedTuple):
    """A record of a golden commit log: where it lies, its bytes, and what they say."""

    offset: int
    buffer: bytes
    message: MessageExt


def log_files(name: str) -> list[Path]:
    """Commit log files, oldest first; the last may be one made ahead, all zeros."""
    return sorted((golden.store(name) / "commitlog").glob("[0-9]*"))


def head_of(path: Path) -> bytes:
    """The part of a sparse file that may hold data: no golden log is longer than this."""
    with path.open("rb") as file:
        return file.read(4 << 20)


def walk(path: Path) -> tuple[list[Found], int]:
    """All records from the start of a log file, and where the first thing lies that is none."""
    start = parse_file_name(path.name)
    assert start is not None
    buffer = head_of(path)
    found: list[Found] = []
    position = 0
    while True:
        result = check_record(buffer, position, len(buffer), check_crc=False)
        if result.kind is not CheckKind.MESSAGE:
            return found, position
        record = buffer[position : position + result.size]
        found.append(Found(start + position, record, decode_record(record)))
        position += result.size


def records(name: str) -> list[Found]:
    """All whole records of a golden store, CRCs not checked."""
    return [found for path in log_files(name) for found in walk(path)[0]]
