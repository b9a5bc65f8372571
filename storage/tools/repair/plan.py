"""From the findings of a check to a plan: the steps that repair the store.

A finding names a problem; the steps follow from the files themselves. The log first, then what is
derived from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from storage.configs.config_file import BAK_SUFFIX, encoded
from storage.configs.consumer_offsets import CONSUMER_OFFSET_FILE
from storage.files.bounded import read_bounded
from storage.files.checksum import crc_of
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.dispatch import is_possible_topic
from storage.format.names import (
    ABORT,
    CHECKPOINT,
    COMMITLOG,
    CONSUMEQUEUE,
    INDEX,
    OURS,
    is_index_file_name,
    parse_file_name,
)
from storage.format.record import decode_record
from storage.tools.config_recovery.configs import SalvagedFile, salvage_groups, salvage_topics
from storage.tools.config_recovery.delays import salvage_delays
from storage.tools.config_recovery.own_files import BrokerCheck, damaged_own_files
from storage.tools.fsck import Code, Finding, Part, Severity
from storage.tools.fsck.path_conflicts import BY_HAND

from .contradictions import Contradictions, contradictions
from .log_plan import LogPlanner
from .record_header import PROPERTIES_CLEANED, PROPERTIES_LOST, sanitized_properties
from .steps import Action, Plan, Step

if TYPE_CHECKING:
    from storage.readonly import StoreView
    from storage.tools.fsck import Report

_MAX_QUEUE_ID: Final = (1 << 31) - 1
_OF_INDEX: Final = "INDEX_"
_LOST_CONFIG: Final = frozenset({"CONFIG_UNREADABLE", "CONFIG_EMPTY", "CONFIG_MISSING"})
_COUNT: Final = ("{} settings are", "{} setting is")
_SALVAGED: Final = _LOST_CONFIG | {"OFFSET_BEHIND_END"}
"""Codes of files whose settings may be rebuilt."""
_TAKES_RECORDS: Final = frozenset(
    (Action.MAKE_FILE, Action.FILL, Action.BLANK, Action.QUARANTINE, Action.CLEAR)
)
_LOST_END: Final = frozenset({Code.LOG_TAIL_LOST, Code.LOG_FILE_MISSING})
"""Texts at the log's end where queues, index or checkpoint refer to more."""
_WITHOUT_RECORDS: Final = frozenset({"LOG_FILE_AHEAD", "FOREIGN_FILE"})
_ONLY_KEYS: Final = "messages past the log's end, of which only keys are left, are lost"
_UNTOUCHED: Final = frozenset(
    {"PROPERTIES_DAMAGED", "STORE_TIME_BACK", "BODY_UNREADABLE", "BODY_EMPTY"}
)
"""Codes of log findings without a position of records."""


def make_plan(
    view: StoreView,
    report: Report,
    now_ms: int,
    only: Iterable[Part] | None = None,
    check_broker: BrokerCheck | None = None,
) -> Plan:
    """Plan the repair of the findings of ``report``, a check of the whole store.

    ``only`` limits it to some parts; ``check_broker`` is that of the check. Reads only. Raises
    OSError.
    """
    parts = frozenset(Part) if only is None else frozenset(only)
    return _Planning(view, report, now_ms, parts, check_broker).plan()


class _Planning:
    def __init__(
        self,
        view: StoreView,
        report: Report,
        now_ms: int,
        parts: frozenset[Part],
        check_broker: BrokerCheck | None,
    ) -> None:
        self._check_broker = check_broker
        self._view = view
        self._root = view.root
        self._report = report
        self._now_ms = now_ms
        self._parts = parts
        self._files = view.files.apart()
        self._findings = [
            finding
            for finding in report.findings
            if finding.severity is not Severity.INFO and finding.code is not Code.FILE_NOT_WRITABLE
        ]
        self._queues: dict[tuple[str, int], str] = {}

    def plan(self) -> Plan:
        steps: list[Step] = list(self._stranger_steps())
        if Part.LOG in self._parts:
            steps += self._log_steps()
        if Part.QUEUE in self._parts:
            steps += self._queue_steps()
        if Part.INDEX in self._parts:
            steps += self._index_steps(steps)
        if Part.CONFIG in self._parts:
            steps += self._config_steps()
            steps += self._own_steps()
        if Part.LOG in self._parts:
            steps += self._checkpoint_steps()
        return Plan(steps, self._report.log_end)

    def _stranger_steps(self) -> Iterator[Step]:
        """Objects in the place of a file or folder of the store go first."""
        for finding in self._findings:
            if finding.code is not Code.FOREIGN_FILE or _part_of(finding) not in self._parts:
                continue
            if finding.fix == BY_HAND:
                what = f"{finding.what}; repair needs this place itself: move it away"
                yield Step(Action.NONE, finding.file, None, None, str(finding.code), what)
                continue
            path = self._root / finding.file
            yield Step(
                Action.QUARANTINE,
                finding.file,
                None,
                path.stat().st_size if path.is_file() else 0,
                str(finding.code),
                finding.what,
                old_crc=crc_of(path),
            )

    # -- log ----------------------------------------------------------------------------------

    def _log_steps(self) -> Iterator[Step]:
        found: dict[int, list[str]] = {}
        properties = []
        for finding in self._findings:
            place = self._log_place(finding)
            if place is None or finding.code is Code.FOREIGN_FILE:
                continue
            if finding.code in _UNTOUCHED:
                properties.append(finding)
            else:
                found.setdefault(place, []).append(str(finding.code))
        against = self._contradictions()
        for place in against.places | against.prepared:
            found.setdefault(place, []).append(str(Code.RECORD_MISPLACED))
        planner = LogPlanner(
            self._root,
            self._files,
            found,
            self._report.log_end,
            self._report.finished_to,
            against.prepared,
            closed=not (self._root / ABORT).exists(),
        )
        steps = list(planner.steps()) if found or self._is_short() else []
        yield from steps
        self._queues |= dict.fromkeys(planner.queues, "UNIT_WITHOUT_RECORD")
        replaced = {step.file for step in steps if step.position is None}
        for finding in properties:
            # A file that is replaced is checked after the right one is there; a record that
            # another step writes has the properties of that step.
            if finding.file not in replaced and not _is_written(finding, steps):
                yield from self._properties(finding)

    def _contradictions(self) -> Contradictions:
        """Records in the log that contradict the units of queues with such a finding."""
        codes = (Code.UNIT_WRONG, Code.UNIT_WITHOUT_RECORD)
        queues = {self._queue_of(f) for f in self._findings if f.code in codes} - {None}
        found = contradictions(self._files, sorted(filter(None, queues)))
        begin, end = self._view.log_min_offset(), self._report.log_end
        return Contradictions(*({at for at in places if begin <= at < end} for places in found))

    def _is_short(self) -> bool:
        """Whether there are units of records past the log's end."""
        return any(f.code == Code.UNIT_BEHIND_END for f in self._findings)

    def _log_place(self, finding: Finding) -> int | None:
        if finding.code.startswith(_OF_INDEX):
            return None
        return _place_in_log(finding.file, finding.position)

    def _properties(self, finding: Finding) -> Iterator[Step]:
        place = self._log_place(finding)
        assert place is not None
        record = self._record(place)
        clean = sanitized_properties(record) if record else None
        if record and clean:
            message = decode_record(record)
            if is_possible_topic(message.topic):
                self._queues.setdefault((message.topic, message.queue_id), str(finding.code))
            yield Step(
                Action.MEND,
                finding.file,
                finding.position,
                len(record),
                str(finding.code),
                f"{PROPERTIES_CLEANED}; its body stays",
                PROPERTIES_LOST,
                old_crc=crc32(record),
                data=clean,
            )

    def _record(self, place: int, size: int | None = None) -> bytes | None:
        """The bytes of a record, None if its file ends before."""
        position = place % self._files.log.file_size
        file = self._files.log.at(place - position)
        if file is None or position + 8 > file.length:
            return None
        if size is None:
            size = int.from_bytes(file.view[position : position + 4], "big", signed=True)
        record = bytes(file.view[position : position + max(0, size)])
        return record if len(record) == size else None

    # -- queues and index ---------------------------------------------------------------------

    def _queue_of(self, finding: Finding) -> tuple[str, int] | None:
        parts = finding.file.split("/")
        if parts[0] != CONSUMEQUEUE or len(parts) < 3 or not parts[2].isdigit():
            return None
        return parts[1], int(parts[2])

    def _queue_steps(self) -> Iterator[Step]:
        for finding in self._findings:
            queue = self._queue_of(finding)
            if queue is not None and queue[1] <= _MAX_QUEUE_ID:
                self._queues.setdefault(queue, str(finding.code))
        for (topic, queue_id), why in sorted(self._queues.items()):
            folder = self._root / CONSUMEQUEUE / topic / str(queue_id)
            yield Step(
                Action.REBUILD_QUEUE,
                f"{CONSUMEQUEUE}/{topic}/{queue_id}",
                None,
                _bytes_in(folder),
                why,
                f"{topic} queue {queue_id} is made anew from the log",
            )

    def _index_steps(self, before: list[Step]) -> Iterator[Step]:
        """Also where earlier steps remove records that have keys, or change keys, and where keys
        may be of records past the log's end."""
        wrong = [str(f.code) for f in self._findings if f.code.startswith(_OF_INDEX)]
        lost = [
            str(f.code)
            for f in self._findings
            if f.code in _LOST_END and self._log_place(f) == self._report.log_end
        ]
        if self._has_index():
            wrong += [step.why for step in before if _changes_keys(step)] + lost
        if wrong:
            untold = lost and not any(self._is_past_end(step) for step in before)
            yield Step(
                Action.REBUILD_INDEX,
                INDEX,
                None,
                _bytes_in(self._root / INDEX),
                wrong[0],
                "the index is made anew from the log",
                _ONLY_KEYS if untold else "",
                None if untold else 0,
            )

    def _is_past_end(self, step: Step) -> bool:
        """Whether a step is about records past the log's end."""
        place = _place_in_log(step.file, step.position)
        return place is not None and place >= self._report.log_end

    def _has_index(self) -> bool:
        folder = self._root / INDEX
        return folder.is_dir() and any(is_index_file_name(path.name) for path in folder.iterdir())

    # -- the rest -----------------------------------------------------------------------------

    def _config_steps(self) -> Iterator[Step]:
        salvaged = self._salvaged()
        for finding in {(f.file, f.code): f for f in self._findings}.values():
            if finding.code == Code.CONFIG_FROM_BAK:
                path = self._root / finding.file
                bak = read_bounded(path.with_name(path.name + BAK_SUFFIX))
                yield Step(
                    Action.RESTORE,
                    finding.file,
                    None,
                    len(bak),
                    str(finding.code),
                    "it gets the content of its .bak",
                    "the last change of it is lost",
                    old_crc=crc_of(path),
                    data=bak,
                )
            elif finding.code in _SALVAGED and finding.file in salvaged:
                file = salvaged[finding.file]
                yield Step(
                    Action.RESTORE,
                    finding.file,
                    None,
                    None,
                    str(finding.code),
                    _COUNT[len(file.rows) == 1].format(len(file.rows))
                    + " rebuilt from other sources; "
                    "'rmqctl store recover-config' lists them",
                    "settings without a source are as for a new one"
                    if finding.code in _LOST_CONFIG
                    else "",
                    old_crc=file.crc,
                    data=encoded(file.document),
                )
            elif finding.code in _LOST_CONFIG:
                yield Step(
                    Action.NONE,
                    finding.file,
                    None,
                    None,
                    str(finding.code),
                    _what_else_mends(finding),
                )

    def _own_steps(self) -> Iterator[Step]:
        """Files of rmqctl's own are rebuilt from other sources."""
        if not any(finding.code is Code.OWN_FILE_DAMAGED for finding in self._findings):
            return
        for damage in damaged_own_files(self._view, self._check_broker):
            if damage.torn:
                continue
            path = self._root / damage.file
            content = damage.content()
            yield Step(
                Action.QUARANTINE if content is None else Action.RESTORE,
                damage.file,
                None,
                len(content or b""),
                str(Code.OWN_FILE_DAMAGED),
                f"it is rebuilt from {damage.made_of}",
                damage.cost,
                old_crc=crc_of(path),
                data=content or b"",
            )

    def _salvaged(self) -> dict[str, SalvagedFile]:
        """Settings files that can be rebuilt, by path in the store."""
        if not any(finding.code in _SALVAGED for finding in self._findings):
            return {}
        view, now = self._view, self._now_ms
        found = (salvage_topics(view, now), salvage_groups(view, now), salvage_delays(view))
        return {str(f.path.relative_to(self._root)): f for f in found if f is not None}

    def _checkpoint_steps(self) -> Iterator[Step]:
        """A checkpoint confirms what is on the device: nothing after a crash."""
        code = next((str(f.code) for f in self._findings if f.file == CHECKPOINT), None)
        if code is None:
            return
        path = self._root / CHECKPOINT
        closed = not (self._root / ABORT).exists()
        newest = self._newest_time() if closed else 0
        yield Step(
            Action.CHECKPOINT,
            CHECKPOINT,
            None,
            CHECKPOINT_SIZE,
            code,
            f"it vouches for the log up to store time {newest}" if newest else "it is made empty",
            old_crc=crc_of(path),
            data=CheckpointData(newest, newest, newest).pack(),
        )

    def _newest_time(self) -> int:
        """Store time of the newest message of a queue (ms), 0 without any."""
        view = self._view
        times = [0]
        for topic, queue_id in view.queues():
            end = view.max_offset_in_queue(topic, queue_id)
            times.append(view.store_timestamp(topic, queue_id, end - 1) or 0 if end else 0)
        return max(times)


def _part_of(finding: Finding) -> Part:
    """The part that a folder or file of the store belongs to."""
    folder = finding.file.partition("/")[0]
    return {CONSUMEQUEUE: Part.QUEUE, INDEX: Part.INDEX}.get(folder, Part.LOG)


def _what_else_mends(finding: Finding) -> str:
    """The remedy for a file of settings or progress that no step can rebuild."""
    if finding.file.startswith(f"{OURS}/"):
        return f"repair leaves it as it is; the remedy: {finding.fix}"
    if finding.file.endswith(CONSUMER_OFFSET_FILE):
        return (
            "neither it nor its .bak has usable content; 'rmqctl store recover-offsets' looks for "
            "progress in messages"
        )
    return "neither it nor its .bak nor any queue has usable content"


def _place_in_log(file: str, position: int | None) -> int | None:
    """The log offset of a position in a file of the store, None if it is none of the log's."""
    folder, _, name = file.partition("/")
    first = parse_file_name(name)
    return None if folder != COMMITLOG or first is None else first + (position or 0)


def _is_written(finding: Finding, steps: Iterable[Step]) -> bool:
    """Whether one of the steps writes the record of a finding."""
    return any(
        step.file == finding.file
        and step.action is not Action.NONE
        and step.position is not None
        and step.length is not None
        and finding.position is not None
        and step.position <= finding.position < step.position + step.length
        for step in steps
    )


def _changes_keys(step: Step) -> bool:
    if step.action is Action.MEND:
        return bool(step.cost)
    if step.action is Action.QUARANTINE:
        return bool(step.length) and step.why not in _WITHOUT_RECORDS
    return step.action in _TAKES_RECORDS and bool(step.cost)


def _bytes_in(folder: Path) -> int:
    try:
        return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    except (FileNotFoundError, NotADirectoryError):
        return 0
