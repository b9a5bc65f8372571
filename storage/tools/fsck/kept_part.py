"""The result of a check up to where it was stopped, as a text from which a later check goes on.

It has all that the walk through the log has collected, not only its findings: most findings about
queues and index are known at the end. So a check that goes on reports what one without a stop does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from storage.configs.deleted_topics import read_deleted_topics
from storage.configs.journal import Journal
from storage.errors import CorruptFileError
from storage.format.errors import FormatError
from storage.format.names import INDEX, is_index_file_name
from storage.format.shapes import (
    Shape,
    check,
    flag,
    items,
    maybe,
    members,
    one_of,
    rows,
    table,
    text,
    whole,
)
from storage.format.strict_json import loads_strict

from .findings import Code, Finding, Severity
from .index_compare import EntryNotes, IndexPart
from .log_part import LogPart
from .log_pass import WalkPart
from .offset_runs import OffsetRuns
from .orphan_records import ClaimsPart
from .queue_compare import QueuePart, QueueRuns
from .reported import Reported

if TYPE_CHECKING:
    from storage.readonly import StoreView

MOST_NUMBERS: Final = 500_000
"""A result with more numbers is not kept: so damaged a store is checked as a whole again."""
_REPLACES: Final = frozenset({"repair", "restore", "queues", "index files"})
"""Changes of the journal after which what was found before may not hold."""

_LONGS: Final = rows(whole())
_RUNS: Final = rows(items(whole(), whole()))
_LOG: Final[dict[str, Shape]] = {
    "start": whole(0),
    "end": whole(0),
    "last_record": maybe(whole(0)),
    "records": whole(0),
    "first_timestamp": whole(),
    "last_timestamp": whole(),
    "newest_timestamp": whole(),
    "back_steps": whole(0),
    "misplaced": items(*[whole()] * 4),
    "has_misplaced": flag,
    "replaced": _LONGS,
    "empty": _LONGS,
    "ranges": _RUNS,
    "odd_times": _LONGS,
    "tail": flag,
    "files": rows(text),
}
_UNITS: Final = {
    "units": whole(0),
    "queues": rows(items(text, whole(0), *[_RUNS] * 4)),
    "claims": rows(items(text, whole(), _LONGS, _LONGS, rows(flag))),
    "well_in": _RUNS,
}
_NOTES: Final = {
    "wrong": rows(items(_LONGS, _LONGS)),
    "late": whole(0),
    "first_late": maybe(whole(0)),
    "begins_late": flag,
    "header_wrong": rows(text),
}
_KEYS: Final = {"notes": rows(members(_NOTES)), "missing": _LONGS, "missing_keys": whole(0)}
_FINDING: Final = items(
    one_of(*map(str, Code)),
    one_of(*map(str, Severity)),
    *[text, maybe(whole(0)), text, text, text],
)
_BASIS: Final = {
    "files": rows(items(whole(0), whole(0), whole())),
    "index": rows(text),
    "deleted": table(whole(0)),
    "has_shared_state": flag,
    "replaced": whole(0),
}
_KEPT: Final = members(
    {
        "basis": members(_BASIS),
        "findings": rows(_FINDING),
        "log": members(_LOG),
        "units": maybe(members(_UNITS)),
        "keys": maybe(members(_KEYS)),
    }
)


class KeptPart(NamedTuple):
    """A result, and what the store was like: it holds while that is so."""

    part: WalkPart
    basis: dict[str, Any]

    @property
    def position(self) -> int:
        """The log offset up to which was checked."""
        return self.part.log.end

    def holds(self, view: StoreView) -> bool:
        """Whether the store still has what was checked: the files of the log, and no file that was
        repaired, rebuilt or restored since. False if that cannot be read."""
        try:
            now = _basis(view, self.part.log.start, self.position)
        except (OSError, CorruptFileError):
            return False
        index = self.basis["index"]
        return {**now, "index": now["index"][: len(index)]} == self.basis


def encode_part(part: WalkPart, view: StoreView) -> bytes | None:
    """The text of a result; None if it is too large, or what it depends on cannot be read."""
    log, units, keys = part.log, part.units, part.keys
    count = 7 * len(part.findings) + len(log.replaced) + len(log.empty)
    count += 2 * log.reported.count()
    if units is not None:
        count += sum(2 * len(run.bounds()) for runs in units.runs.values() for run in runs)
        count += sum(3 * len(odd[1]) for odd in units.claims.records)
    if keys is not None:
        count += sum(map(len, keys.missing))
        count += sum(2 * len(wrong[0]) for notes in keys.notes for wrong in notes.wrong)
    if count > MOST_NUMBERS:
        return None
    try:
        basis = _basis(view, log.start, log.end)
    except (OSError, CorruptFileError):
        return None
    document = {
        "basis": basis,
        "findings": part.findings,
        "log": _log_values(log),
        "units": None if units is None else _unit_values(units),
        "keys": None if keys is None else _key_values(keys),
    }
    return json.dumps(document, separators=(",", ":")).encode() + b"\n"


def decode_part(data: bytes) -> KeptPart | None:
    """The result of a text; None for a text that none has written."""
    try:
        document = loads_strict(data, escaped_bytes=True)
        check(document, _KEPT)
    except FormatError:
        return None
    units, keys = document["units"], document["keys"]
    part = WalkPart(
        [
            Finding(Code(code), Severity(severity), *rest)
            for code, severity, *rest in document["findings"]
        ],
        _log_part(document["log"]),
        None if units is None else _units_of(units),
        None if keys is None else _keys_of(keys),
    )
    return KeptPart(part, document["basis"])


def _basis(view: StoreView, start: int, end: int) -> dict[str, Any]:
    """What the result of a part of the log depends on, besides files that only grow."""
    log = view.files.apart().log
    size = log.file_size
    files = []
    for first in log.relist():
        if start <= first and first + size <= end:
            status = view.root.joinpath(log.path(first)).stat()
            files.append([first, status.st_size, status.st_mtime_ns])
    folder = view.root / INDEX
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return {
        "files": files,
        "index": [name for name in names if is_index_file_name(name)],
        "deleted": dict(read_deleted_topics(view.root)),
        "has_shared_state": view.has_shared_state,
        "replaced": sum(entry.get("what") in _REPLACES for entry in Journal(view.root).entries()),
    }


# -- values of JSON and back ----------------------------------------------------------------------


def _log_values(log: LogPart) -> dict[str, Any]:
    values = {name: getattr(log, name) for name in LogPart._fields if name in _LOG}
    reported = log.reported
    return {
        **values,
        "ranges": reported.ranges(),
        "odd_times": sorted(reported.odd_times),
        "tail": reported.tail,
        "files": sorted(reported.files),
    }


def _log_part(values: dict[str, Any]) -> LogPart:
    reported = Reported()
    for start, end in values["ranges"]:
        reported.add(start, end)
    reported.odd_times |= set(values["odd_times"])
    reported.files |= set(values["files"])
    reported.tail = values["tail"]
    known = {name: values[name] for name in LogPart._fields if name in values}
    known["misplaced"] = tuple(values["misplaced"])
    return LogPart(**known, reported=reported, begins_well=False)


def _unit_values(units: QueuePart) -> dict[str, Any]:
    return {
        "units": units.units,
        "queues": [[*key, *(run.bounds() for run in runs)] for key, runs in units.runs.items()],
        "claims": [
            [*key, *(column.tolist() for column in columns)]
            for key, *columns in units.claims.records
        ],
        "well_in": list(units.claims.well_in.items()),
    }


def _units_of(values: dict[str, Any]) -> QueuePart:
    runs = {
        (topic, queue_id): QueueRuns(*map(_runs, each))
        for topic, queue_id, *each in values["queues"]
    }
    claims = [
        ((topic, queue_id), _longs(queue_offsets), _longs(offsets), np.array(filled, np.bool_))
        for topic, queue_id, queue_offsets, offsets, filled in values["claims"]
    ]
    return QueuePart(runs, ClaimsPart(claims, Counter(dict(values["well_in"]))), values["units"])


def _key_values(keys: IndexPart) -> dict[str, Any]:
    notes = [
        {
            "wrong": [[numbers.tolist(), offsets.tolist()] for numbers, offsets in one.wrong],
            "late": one.late,
            "first_late": one.first_late,
            "begins_late": one.begins_late,
            "header_wrong": one.header_wrong,
        }
        for one in keys.notes
    ]
    missing = [offset for offsets in keys.missing for offset in offsets.tolist()]
    return {"notes": notes, "missing": missing, "missing_keys": keys.missing_keys}


def _keys_of(values: dict[str, Any]) -> IndexPart:
    notes = []
    for each in values["notes"]:
        one = EntryNotes()
        for numbers, offsets in each["wrong"]:
            one.note_wrong(_longs(numbers), _longs(offsets))
        if each["first_late"] is not None:
            one.note_late(each["late"], each["first_late"])
        one.begins_late = each["begins_late"]
        one.header_wrong += each["header_wrong"]
        notes.append(one)
    return IndexPart(notes, [_longs(values["missing"])], values["missing_keys"])


def _runs(pairs: Sequence[Sequence[int]]) -> OffsetRuns:
    found = OffsetRuns()
    for start, end in pairs:
        found.add(start, end)
    return found


def _longs(values: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, np.int64)
