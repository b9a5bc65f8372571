"""Records of lag in a file: a line for each moment, appended; and reading files of lag.

Reads a store and writes to a file of the user, so it can be used beside a live Java broker. A line
is ``{"as_of": ms, "groups": [RecordedRow, ...]}``, the form of ``lag report -o json``; it has
``"doubt": "..."``, too, where the progress of groups was not reliable.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl.parse.json_texts import parse_json

from .comparison import UNKNOWN_LAG, Earlier, EarlierLag, earlier_lag
from .comparison_rows import RecordedRow

if TYPE_CHECKING:
    from .rows import LagRow

_BEGIN: Final = b'{"as_of":'
"""How each record begins, unless a crash or a full disk has cut it before."""
_HEAD_BYTES: Final = 4096


def record(path: Path, rows: "Iterable[LagRow]", as_of: int, doubt: str | None = None) -> int:
    """Append the lag of a moment (ms) to a file; returns the number of rows. Raises OSError.

    ``doubt`` is the reason why the progress of groups may not be their last.

    The line is written with one call, so several writers may share a file. After a line that a
    crash or a full disk has cut, a new line begins.
    """
    fields = RecordedRow._fields
    groups = [{name: getattr(row, name) for name in fields} for row in rows]
    head = {"as_of": as_of} if doubt is None else {"as_of": as_of, "doubt": doubt}
    text = json.dumps({**head, "groups": groups}, separators=(",", ":")) + "\n"
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        end = os.lseek(fd, 0, os.SEEK_END)
        is_cut = end > 0 and os.pread(fd, 1, end - 1) != b"\n"
        data = (("\n" if is_cut else "") + text).encode()
        while data:
            data = data[os.write(fd, data) :]
    finally:
        os.close(fd)
    return len(groups)


def check_appendable(path: Path) -> None:
    """Raise ValueError for a file that neither begins as a record, whole or cut, nor is empty or
    missing; a line after its text would damage it. Raises OSError, too."""
    if not path.is_file():  # a pipe would be waited for
        return
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    *lines, last = head.split(b"\n")
    for line in lines:
        if not _begins_record(line):
            break
        if len(line) >= len(_BEGIN):
            return
    else:
        if not last or _begins_record(last):
            return
    raise ValueError(f"{path} is no file of 'lag record', and nothing is appended to it")


def _begins_record(line: bytes) -> bool:
    """Whether a line is a record, or the beginning of one."""
    return line != b"" and _BEGIN.startswith(line[: len(_BEGIN)])


def read_recorded(path: Path, until_ms: int | None = None) -> Earlier | None:
    """The lag in a file: the last record of ``lag record`` at or before a time, or the last of
    all; or the output of ``lag show`` or ``lag report`` as JSON or JSON lines.

    None if no record is that old. Raises OSError, and ValueError for a file of another form.
    """
    found: Earlier | None = None
    rows: dict[tuple[str, str], EarlierLag] = {}
    for document in _documents(path):
        if "groups" in document:
            doubt = document.get("doubt")
            lags = _lags(document["groups"])
            if doubt is not None:
                lags = ((place, UNKNOWN_LAG) for place, _ in lags)
            said = doubt if isinstance(doubt, str) else None
            one = Earlier(_number(document.get("as_of")), dict(lags), said)
            if until_ms is None or (one.as_of is not None and one.as_of <= until_ms):
                later = found is None or (one.as_of or 0) >= (found.as_of or 0)
                found = one if later else found
        else:
            rows.update(_lags([document]))
    if rows and found is None:
        if until_ms is not None:
            raise ValueError(f"{path} has no times; give the file itself to --compare")
        return Earlier(None, rows)
    return found


def _documents(path: Path) -> Iterator[Mapping[str, Any]]:
    """The objects in a file of JSON lines, of one object, or of an array of objects."""
    with path.open("rb") as file:
        found = is_cut = False
        for line in file:
            if not line.strip():
                continue
            try:
                value = parse_json(line)
            except ValueError:
                is_cut = True  # unless it is the first of many lines of one object
                if not found and not _begins_record(line.rstrip()):
                    break
                continue
            if is_cut and not found and not line.startswith(_BEGIN):
                break
            found = True
            yield from _objects(value, path)
        else:
            if found or not is_cut:
                return
    yield from _objects(_whole(path), path)


def _whole(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except ValueError:
        raise ValueError(
            f"{path} is not JSON of 'lag record', 'lag show' or 'lag report'"
        ) from None


def _objects(value: Any, path: Path) -> Iterator[Mapping[str, Any]]:
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict) or not ({"groups", "group"} & one.keys()):
            raise ValueError(f"{path} is not JSON of 'lag record', 'lag show' or 'lag report'")
        yield one


def _lags(rows: Any) -> Iterator[tuple[tuple[str, str], EarlierLag]]:
    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, dict):
            continue
        group, topic = row.get("group"), row.get("topic")
        if isinstance(group, str) and isinstance(topic, str):
            lag, age = _number(row.get("lag")), _number(row.get("oldest_unread_age_ms"))
            yield (group, topic), earlier_lag(lag, age, _number(row.get("unknown_queues")) or 0)


def _number(value: Any) -> int | None:
    return value if type(value) is int else None
