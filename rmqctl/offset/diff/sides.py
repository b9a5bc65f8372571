"""The two sides of ``offset diff``: a group, a file, another store, or a time."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rmqctl.audit.changes import Changes
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.offset.observations import sightings
from rmqctl.offset.source import by_group
from storage.configs.progress import ProgressFile
from storage.detect import check_is_store

from .files import read_offset_file

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli
    from rmqctl.offset.source import Offsets

Places = dict[tuple[str | None, str, int], int | None]
"""(group, topic, queue id) to the offset; group None where a file names none."""


class Side(NamedTuple):
    """One side of a comparison. ``notes`` say what is known of offsets that are None."""

    offsets: Places
    group: str | None = None
    """The group that it is about, if it is about one."""
    notes: Mapping[tuple[str | None, str, int], str] = MappingProxyType({})


def side_of(cli: "Cli", broker: "EmbeddedBroker", text: str) -> Side:
    """Find out what a side is: told by ``group:``, ``file:``, ``store:`` or ``@`` before it, else
    a group with progress, a path, a time. NotFound for what is nothing of these."""
    kind, colon, rest = text.partition(":")
    if text.startswith("@"):
        return _at(cli, broker, text, cli.time("@", text[1:]))
    if colon and kind == "group":
        return _of_group(broker, rest)
    if colon and kind == "file":
        return _of_file(Path(rest))
    if colon and kind == "store":
        return _of_store(Path(rest))
    if any(text == group for group, _ in broker.consumer_offsets()):
        return _of_group(broker, text)
    path = Path(text).expanduser()
    if path.is_dir():
        return _of_store(path)
    if path.exists():
        return _of_file(path)
    from rmqctl.parse.times import parse_time

    try:
        moment = parse_time(text, cli.now_ms, cli.zone)
    except ValueError:
        raise NotFound(
            f"{text!r} is no group with progress in {broker.view.root}, no file, no store "
            "and no time"
        ) from None
    return _at(cli, broker, text, moment)


def _at(cli: "Cli", broker: "EmbeddedBroker", text: str, moment: int) -> Side:
    if moment > cli.now_ms:
        raise UsageProblem(f"{text!r} has not come yet")
    return offsets_at(broker, moment, cli.now_ms)


def _of_group(broker: "EmbeddedBroker", group: str) -> Side:
    table = broker.consumer_offsets()
    if not any(group == name for name, _ in table):
        raise NotFound(f"group {group} has no progress in {broker.view.root}")
    return Side({place: o for place, o in _places(table).items() if place[0] == group}, group)


def _of_file(path: Path) -> Side:
    lines = read_offset_file(path.expanduser())
    groups = {line.group for line in lines}
    group = next(iter(groups)) if len(groups) == 1 else None
    return Side({line[:3]: line.offset for line in lines}, group)


def _of_store(path: Path) -> Side:
    root = path.expanduser().absolute()
    check_is_store(root)
    return Side(_places(by_group(ProgressFile(root).read().offsets())))


def _places(table: "Offsets") -> Places:
    return {
        (group, topic, queue_id): offset
        for (group, topic), queues in table.items()
        for queue_id, offset in queues.items()
    }


def offsets_at(broker: "EmbeddedBroker", timestamp: int, now_ms: int) -> Side:
    """What the offsets were at a time, as far as changes and samples tell.

    A group's progress only grows between two sightings: so it is known exactly where the first
    one after that time equals the last one before it. Else it lay between them.
    """
    now = _places(broker.consumer_offsets())
    if timestamp >= now_ms:
        return Side(now)
    known = sightings(Changes(broker.view.root))
    offsets: Places = {}
    notes: dict[tuple[str | None, str, int], str] = {}
    for place in {*now, *known}:
        row = known.get((place[0] or "", *place[1:]), ())
        before = [sighting for sighting in row if sighting.at <= timestamp]
        after = [sighting for sighting in row if sighting.at > timestamp]
        least = before[-1].left if before else None
        most = after[0].seen if after else now.get(place)
        is_exact = most is None or least == most
        offsets[place] = most if is_exact else None
        if not is_exact:
            notes[place] = f"at most {most}" if least is None else f"{least} to {most}"
    return Side(offsets, None, notes)
