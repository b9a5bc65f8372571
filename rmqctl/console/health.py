"""The facts of a store, from the rows of commands. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from rmqctl.admin.lag.backlog_rows import RiskRow
from rmqctl.admin.next_deletions import WhyNone
from rmqctl.admin.store.check_rows import StoreInfoRow
from rmqctl.admin.store.cleaning_levers import CleaningLevers
from storage.counted import counted
from storage.parse.durations import format_duration, format_size

from .charts import UNKNOWN, bar
from .drawing import Line, Role, Span, text_line
from .opened import Identity

_BAR: Final = 24


def log_line(info: StoreInfoRow | None, levers: CleaningLevers | None) -> Line:
    """The log, and how full the disk is."""
    line = _label("LOG")
    if info is None:
        line.append(Span(f"{UNKNOWN}  "))
    else:
        log = info.commitlog
        files = f"{log['files']:,} file{'' if log['files'] == 1 else 's'}"
        line.append(Span(f"{files}  {format_size(log['bytes'])}   "))
    if levers is None:
        return [*line, Span(f"disk {UNKNOWN}")]
    used = levers.used_percent
    role = Role.BAD if used > levers.any_hour_percent else Role.TEXT
    line.append(Span(f"disk {bar(used / 100, _BAR, filled_up=True)} {used:.0f} %", role))
    return [*line, Span(f"   cleans at {levers.any_hour_percent} %")]


def deletion_line(info: StoreInfoRow | None, levers: CleaningLevers | None, now: int) -> Line:
    """The oldest message, and what is deleted next."""
    line = _label("OLDEST")
    first = None if info is None else info.first_timestamp
    if info is None:
        line.append(Span(UNKNOWN))
    else:
        unknown = UNKNOWN if info.messages else "-"
        line.append(Span(unknown if first is None else format_duration(max(0, now - first))))
    if levers is None:
        line.append(Span(f"   next deleted: {UNKNOWN}"))
    elif levers.why_none is WhyNone.NEWEST:
        line.append(Span(f"   nothing will be deleted: {levers.why_none}"))
    else:
        expired = levers.expired
        line.append(Span(f"   {_next_deletion(levers, now)}   "))
        freed = f"{counted(expired.files, 'file')}, {format_size(expired.bytes)}"
        line.append(Span(f"expired now: {freed}"))
    return line


def _next_deletion(levers: CleaningLevers, now: int) -> str:
    if levers.next_timestamp is None:
        return str(levers.why_none)
    left = levers.next_timestamp - now
    return f"next files are deleted {'now' if left <= 0 else f'in {format_duration(left)}'}"


def unread_line(risks: Sequence[RiskRow] | None) -> Line:
    """Which groups have not read what is deleted soon."""
    line = _label("UNREAD")
    if risks is None:
        return [*line, Span(UNKNOWN)]
    coming = [row for row in risks if row.at_risk]
    unknown = groups_in_doubt(risks)
    if not coming and not unknown:
        return [*line, Span("nothing that is deleted within a day is unread")]
    coming.sort(key=lambda row: row.risk_in_ms or 0)
    for row in coming[:2]:
        when = format_duration(row.risk_in_ms) if row.risk_in_ms else "0s"
        count = amount_at_risk(row)
        line += text_line(f"{row.group} {count} messages (RISK in {when})  ", Role.BAD)
    if len(coming) > 2:
        line.append(Span(f"and {len(coming) - 2} more groups and topics  ", Role.BAD))
    return [*line, *text_line(unknown, Role.WARN)] if unknown else line


def amount_at_risk(row: RiskRow) -> str:
    """How many messages are deleted unread, as far as it is known; a row that has some."""
    return f"{'at least ' if row.unknown_queues else ''}{row.at_risk:,}"


def groups_in_doubt(risks: Sequence[RiskRow]) -> str:
    """Of which groups it is unknown whether they lose messages; empty without any."""
    groups = sorted({row.group for row in risks if row.at_risk is None})
    if not groups:
        return ""
    more = f" and {len(groups) - 1} more" if len(groups) > 1 else ""
    return f"unknown for {groups[0]}{more}"


def who_line(info: StoreInfoRow | None, services: dict[str, Any] | None) -> Line:
    """Which processes have the store open, and which run its services."""
    line = _label("WHO")
    if info is None:
        return [*line, Span(UNKNOWN)]
    writers = ", ".join(str(pid) for pid in info.writers) or "none"
    line.append(Span(f"rmqctl writers: {writers}   "))
    java = "has it open" if info.java_locked else "no"
    line.append(Span(f"Java broker: {java}   ", Role.WARN if info.java_locked else Role.TEXT))
    for name, found in (services or {}).items():
        if name == "delay_delivery":
            runs = f"by {found['pid']}" if found.get("running") else "by no rmqctl process"
            line.append(Span(f"delivers: {runs}"))
    return line


def state_line(info: StoreInfoRow | None) -> Line:
    """How the store was left."""
    line = _label("STATE")
    if info is None:
        return [*line, Span(UNKNOWN)]
    closed = "closed" if info.clean_shutdown else "open, or not closed"
    text = f"{info.version}   {closed}   {info.messages:,} messages in {info.queues:,} queues"
    return [*line, Span(text)]


class LastCheck(NamedTuple):
    """The last check of the store in this session."""

    as_of: int
    """When it began, in epoch ms."""
    counts: Mapping[str, int]
    """Findings by their severity."""
    whole: bool
    """Whether it read all, and all findings are counted."""
    store: Identity = ()
    """That of the store that was checked."""


KEPT: Final = "last check"
"""The name of the last check in what screens keep for each other."""


def check_line(info: StoreInfoRow | None, last: LastCheck | None, now: int) -> Line:
    """What the last check found, and what another one would read."""
    size = UNKNOWN if info is None else format_size(info.commitlog["bytes"])
    again = Span(f"C checks the store (reads {size} of log, can be stopped)")
    if last is None:
        return [*_label("CHECK"), Span("never in this session   "), again]
    age = format_duration(max(0, now - last.as_of) // 1000 * 1000)
    found = [
        f"{last.counts[name]:,} {name}{'' if last.counts[name] == 1 else 's'}"
        for name in ("error", "warning")
        if last.counts.get(name)
    ]
    text = ", ".join(found) or "no errors, no warnings"
    if not last.whole:
        text = f"at least {text}, not all was checked" if found else "not all was checked"
    bad = bool(last.counts.get("error"))
    role = Role.BAD if bad else Role.WARN if found or not last.whole else Role.GOOD
    return [*_label("CHECK"), Span(f"{age} ago: {text}   ", role), Span(f"C again (reads {size})")]


def _label(text: str) -> Line:
    return [Span(f" {text:<8}", Role.HEAD)]
