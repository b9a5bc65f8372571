"""Wall clocks: the instant of a date and a time of day in a zone, and the names of zones.

Where the clock is put back, an hour occurs twice; where it is put forward, an hour does not occur.
Then the instant has a doubt: the first of the two is taken, or the time as far after the change.
"""

import os
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple

LOCAL: Final = "local time"
"""The name of a local zone that has none."""
_LOCALTIME: Final = "/etc/localtime"


class Doubt(NamedTuple):
    """A wall time that has two instants, or none."""

    problem: str
    taken: str
    """Which instant is taken."""
    remedy: str


def instant_of(wall: datetime, zone: tzinfo | None) -> tuple[datetime, Doubt | None]:
    """The instant (in UTC) of a time without a zone in ``zone``; None is the local zone."""
    # In a gap, the two come in one order from zoneinfo and in the other from the local zone.
    first, second = sorted(_in_utc(wall.replace(fold=fold), zone) for fold in (0, 1))
    if first == second:
        return first, None
    shown = wall.isoformat(" ", "auto")
    name = zone_name(zone)
    one, other = (moment.astimezone(zone) for moment in (first, second))
    if one.replace(tzinfo=None, fold=0) == wall:
        problem = f"{shown} occurs twice in {name}: {iso(one)} and {iso(other)}"
        return first, Doubt(problem, "the first is taken", "write the one that is meant")
    problem = f"{shown} does not occur in {name}: the clock is put forward over it"
    remedy = f"write a time that occurs, such as {iso(other)}"
    return second, Doubt(problem, f"{iso(other)} is taken", remedy)


def instant_by_abbreviation(wall: datetime, zone: tzinfo | None, name: str) -> datetime:
    """The instant (in UTC) at which the zone's abbreviation, such as CET, is ``name``.

    ValueError if the zone has another one then: an abbreviation alone does not name a zone.
    """
    there = []
    for fold in (0, 1):
        moment = _in_utc(wall.replace(fold=fold), zone).astimezone(zone)
        if moment.tzname() == name and moment.replace(tzinfo=None, fold=0) == wall:
            return moment.astimezone(UTC)
        there.append(moment)
    raise ValueError(
        f"{name} is not what {zone_name(zone)} has then ({there[0].tzname()}); write the offset, "
        f"such as {iso(there[0])[-6:]}, or a zone such as Europe/Berlin"
    )


def _in_utc(wall: datetime, zone: tzinfo | None) -> datetime:
    return (wall if zone is None else wall.replace(tzinfo=zone)).astimezone(UTC)


def iso(moment: datetime) -> str:
    """ISO 8601 with the offset; milliseconds only where there are some."""
    return moment.isoformat("T", "milliseconds" if moment.microsecond else "seconds")


def zone_name(zone: tzinfo | None) -> str:
    """``Europe/Berlin``, ``UTC``, ``+08:00``; None is the local zone."""
    if zone is None:
        return _local_name(os.environ.get("TZ"))
    key = getattr(zone, "key", None)  # of a ZoneInfo
    if isinstance(key, str):
        return key
    return "UTC" if zone is UTC else str(zone).removeprefix("UTC")


def _local_name(variable: str | None) -> str:
    if variable is not None:
        name = variable.removeprefix(":")
        is_name = "/" in name and not name.startswith("/")
        return name if is_name else "UTC" if name in {"", "UTC", "UTC0"} else LOCAL
    try:
        path = os.path.realpath(_LOCALTIME, strict=True)
    except OSError:
        return "UTC"
    _, folder, name = path.rpartition("zoneinfo/")
    return name.removeprefix("Etc/") if folder else LOCAL
