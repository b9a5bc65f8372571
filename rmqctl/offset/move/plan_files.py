"""Plans on disk: what ``offset reset --export`` writes, and ``--expect`` compares with.

CSV or JSON by the file's ending, with the fields of a plan's row. What a plan's file means as
targets (``--from-file``) is read by rmqctl.offset.diff.files, as any file of offsets.
"""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from broker.errors import OffsetChangedError
from rmqctl.admin.offsets.plan import Step
from rmqctl.admin.offsets.queues import QueueId, TopicChoice
from rmqctl.admin.offsets.rows import DoneMove, PlannedMove
from rmqctl.cli.given_file import read_given
from rmqctl.errors import CliError, NotFound, UsageProblem
from rmqctl.exit_codes import NOT_WRITABLE
from rmqctl.offset.diff.files import FileOffset, read_offset_file, shown_offset
from rmqctl.output.saved_file import saved_file
from rmqctl.output.values import exact, plain
from rmqctl.parse.json_texts import parse_given
from rmqctl.parse.near_names import did_you_mean
from storage.format.strict_json import name_given_twice

_NEEDED = ("group", "topic", "queue_id", "old_offset")
_KNOWN = frozenset({*PlannedMove._fields, *DoneMove._fields})


def check_ending(path: Path) -> None:
    """UsageProblem for a name that says neither CSV nor JSON."""
    if path.suffix.lower() not in {".csv", ".json"}:
        raise UsageProblem(f"--export: {path} ends neither in .csv nor in .json")


def write_plan(path: Path, rows: Sequence[PlannedMove]) -> None:
    """Write a plan, in one step and onto the device. CliError (5) if that fails."""
    if path.suffix.lower() == ".json":
        text = json.dumps([plain(row) for row in rows], ensure_ascii=False, indent=1) + "\n"
    else:
        out = io.StringIO()
        writer = csv.writer(out)
        writer.writerow(PlannedMove._fields)
        writer.writerows([exact(value) for value in row] for row in rows)
        text = out.getvalue()
    try:
        with saved_file(path) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise CliError(f"{path} can not be written: {error.strerror}", NOT_WRITABLE) from error


class Wishes(NamedTuple):
    """What a file asks for."""

    offsets: dict[QueueId, int | None]
    groups: set[str]
    """The groups that the file names itself."""


def read_wishes(
    path: Path, groups: Sequence[str] | None, topics: Iterable[TopicChoice] | None
) -> "Wishes":
    """Where a file wants queues to go, narrowed to some groups and topics; None: all of the file.

    Lines that name no group count for each of ``groups``. UsageProblem if there are none then, and
    if such a line contradicts one that names the group. NotFound if the file has nothing of a group
    or a topic, or nothing at all.
    """
    wishes: dict[QueueId, int | None] = {}
    choices = None if topics is None else list(topics)
    lines = read_offset_file(path)
    _check_has(path, lines, groups or (), choices or ())
    for line in lines:
        if line.group is None and not groups:
            raise UsageProblem(f"{path} names no groups; say whose progress it is with --group")
        if choices is not None and not any(
            line.topic == choice.topic and (choice.queues is None or line.queue_id in choice.queues)
            for choice in choices
        ):
            continue
        for group in [line.group] if line.group is not None else groups or ():
            if not groups or group in groups:
                _wish(path, wishes, QueueId(group, line.topic, line.queue_id), line.offset)
    if not wishes:
        of = ", ".join(groups or ())
        where = ", ".join(choice.topic for choice in choices or ())
        raise NotFound(f"{path} has no offsets of group {of} in topic {where}")
    return Wishes(wishes, {line.group for line in lines if line.group is not None})


def _wish(
    path: Path, wishes: dict[QueueId, int | None], place: QueueId, offset: int | None
) -> None:
    known = wishes.setdefault(place, offset)
    if known != offset:
        both = f"{shown_offset(known)} and {shown_offset(offset)}"
        raise UsageProblem(
            f"{path} has two offsets for queue {place.queue_id} of {place.topic} in group "
            f"{place.group} ({both})"
        )


def _check_has(
    path: Path,
    lines: Sequence[FileOffset],
    groups: Sequence[str],
    choices: Sequence[TopicChoice],
) -> None:
    if not lines:
        raise NotFound(f"{path} has no offsets: it is empty")
    named = {line.group for line in lines}
    for group in groups:
        if group not in named and None not in named:
            has = ", ".join(sorted(name for name in named if name is not None))
            raise NotFound(f"{path} has no offsets of group {group}; it has those of {has}")
    for topic, queues in choices:
        there = sorted({line.queue_id for line in lines if line.topic == topic})
        if not there:
            topics = ", ".join(sorted({line.topic for line in lines}))
            raise NotFound(f"{path} has no offsets of topic {topic}; it has those of {topics}")
        for queue_id in queues or ():
            if queue_id not in there:
                has = ", ".join(map(str, there))
                raise NotFound(f"{path} has no offset of queue {queue_id} of {topic}; it has {has}")


def expectation(text: str, steps: Sequence[Step]) -> Mapping[QueueId, int | None]:
    """What ``--expect`` says: the offset of the one queue of the plan, or a plan's file.

    UsageProblem for a number with several queues. OffsetChangedError (6) if the plan has a queue
    that the file does not name.
    """
    places = [step.position.queue for step in steps if not step.reset_target.stays]
    if text.isascii() and text.isdigit():
        if len(places) != 1:
            raise UsageProblem(
                f"--expect: {text} is the offset of one queue, and this moves {len(places)}; "
                "name one (--topic TOPIC:0), or give a plan that --export wrote"
            )
        return {places[0]: int(text)}
    expected = _read_expected(Path(text))
    for place in places:
        if place not in expected:
            raise OffsetChangedError(f"{place} is not part of the plan {text}; nothing was changed")
    return expected


def _read_expected(path: Path) -> dict[QueueId, int | None]:
    try:
        text = read_given(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        raise NotFound(f"there is no plan {path}") from None
    except OSError as error:
        raise CliError(f"{path} can not be read: {error.strerror}", NOT_WRITABLE) from error
    try:
        rows: Any
        if text.lstrip().startswith("["):
            rows = parse_given(text)
        else:
            reader = csv.DictReader(io.StringIO(text, newline=""))
            names = reader.fieldnames or ()
            twice = name_given_twice(names)
            if twice is not None:
                raise UsageProblem(f"--expect: the header of {path} names {twice!r} twice")
            rows = list(reader)
        unknown = next((name for row in rows for name in row if name not in _KNOWN), None)
        if unknown is not None:
            hint = did_you_mean(str(unknown), _KNOWN)
            raise UsageProblem(f"--expect: {path} has {unknown!r}, which no plan has{hint}")
        return {
            QueueId(row["group"], row["topic"], int(row["queue_id"])): _offset(row["old_offset"])
            for row in rows
        }
    except (ValueError, TypeError, KeyError, csv.Error):
        raise UsageProblem(
            f"--expect: {path} is no plan that --export wrote (fields {', '.join(_NEEDED)})"
        ) from None


def _offset(value: Any) -> int | None:
    return None if value in (None, "") else int(value)
