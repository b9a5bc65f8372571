"""Putting the page together. Pure."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any, Final

from analytics.report.report import AGES_MS, has_unknown_lag

ROWS_AT_MOST: Final = 20_000
"""Of minutes, and of hours: some 2 MB, which a browser opens at once."""

_SCRIPTS: Final = ("words.js", "tables.js", "scales.js", "charts.js", "days.js", "main.js")
_MARK: Final = re.compile("@@([A-Z-]+)@@")
_EXACT: Final = 2**53
"""Whole numbers up to this one are the same in JavaScript."""


def page(
    document: Mapping[str, Any],
    *,
    zone: str | None = None,
    compared_as_of: int | None = None,
    since: int | None = None,
    top: int | None = None,
    days: Mapping[str, Any] | None = None,
) -> str:
    """Make the page of a report, given as the JSON of ``lag report``.

    ``zone`` is a time zone that the reader's browser may know; otherwise the browser's own is used.
    ``compared_as_of`` (epoch ms) is the moment of the report that this was compared with. The page
    mentions it if the document has only minutes and hours that end after ``since`` (epoch ms), or
    no groups but the ``top`` ones. ``days`` are the fields of ``analytics.history.daily.Days``: the
    page then has a chart of them.

    Where there are more than :data:`ROWS_AT_MOST` minutes the page has hours only, and where there
    are more hours than that, these are summed over all groups; the page has a note then.
    """
    minutes, hours = document["minutes"], document["hours"]
    left_out = {"minutes": 0, "hours": 0}
    if len(minutes) > ROWS_AT_MOST:
        left_out["minutes"], minutes = len(minutes), []
        if len(hours) > ROWS_AT_MOST:
            left_out["hours"], hours = len(hours), _over_groups(hours)
    if days is not None:
        too_many = len(days["groups"]) > ROWS_AT_MOST
        days = {**days, "left_out": len(days["groups"]) if too_many else 0}
        if too_many:
            days["groups"] = []
    data = {
        **document,
        "minutes": minutes,
        "hours": hours,
        "page": {
            "zone": zone,
            "compared_as_of": compared_as_of,
            "since": since,
            "top": top,
            "left_out": left_out,
            "age_classes_ms": AGES_MS,
            "days": days,
        },
    }
    script = "(() => {\n" + "\n".join(_part(name) for name in _SCRIPTS) + "})();\n"
    style = _part("look.css")
    parts = {
        "TITLE": escape(f"Lag report, {_moment(document['as_of'])}"),
        "HEADLINE": escape(_headline(document, is_whole=top is None)),
        "SUMMARY": escape(_summary(document, is_whole=top is None)),
        "STYLE": style,
        "STYLE-HASH": _hash(style),
        "SCRIPT": script,
        "SCRIPT-HASH": _hash(script),
        "DATA": as_data(data),
    }
    # In one pass: inserted text is not searched for placeholders.
    return _MARK.sub(lambda found: parts[found[1]], _part("frame.html"))


def as_data(value: Any) -> str:
    """JSON that can stand in a script element: ASCII, and nothing in it ends the element."""
    text = json.dumps(_exact(value), allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _exact(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _exact(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_exact(member) for member in value]
    large = isinstance(value, int) and not -_EXACT <= value <= _EXACT
    return str(value) if large else value


def _part(name: str) -> str:
    return files("analytics.html_report").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """The content security policy's name of a script or style: no other one runs in the page."""
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _over_groups(hours: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    total: dict[int | None, list[int]] = {}
    for row in hours:
        sums = total.setdefault(row["hour_timestamp"], [0, 0])
        sums[0] += row["messages"]
        sums[1] += row["bytes"]
    return [
        {"group": None, "topic": None, "hour_timestamp": hour, "messages": number, "bytes": size}
        for hour, (number, size) in total.items()
    ]


def _moment(as_of: int) -> str:
    try:
        moment = datetime.fromtimestamp(as_of / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{as_of} ms since 1970"
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _headline(document: Mapping[str, Any], *, is_whole: bool) -> str:
    """How long the oldest unread message has waited; that is what a reader wants to know first."""
    totals = document["totals"]
    age = totals["oldest_unread_age_ms"]
    some_unknown = any(map(_has_unknown_age, document["queues"]))
    some_unknown = some_unknown or (not is_whole and totals["unknown_queues"] > 0)
    if age is not None:
        least = "at least " if some_unknown else ""
        return f"The oldest unread message has waited {least}{_duration(age)}."
    if totals["lag"] == 0 and not some_unknown:
        return "Nothing is unread."
    return "How long the oldest unread message has waited is unknown."


def _has_unknown_age(queue: Mapping[str, Any]) -> bool:
    """Whether a queue may have unread messages that are older than what is known."""
    if queue["lag"] is None:
        return has_unknown_lag(queue)
    return bool(queue["lag"]) and queue["oldest_unread_timestamp"] is None


def _duration(ms: int) -> str:
    """The two largest parts, as ``1d 7h``; as the script of the page has it."""
    left = ms // 1000
    if not left:
        return f"{ms}ms"
    parts = []
    for name, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        if left >= seconds:
            parts.append(f"{left // seconds}{name}")
        left %= seconds
    return " ".join(parts[:2])


def _summary(document: Mapping[str, Any], *, is_whole: bool) -> str:
    totals = document["totals"]
    some_unknown = totals["unknown_queues"] > 0 and (
        not is_whole or any(map(has_unknown_lag, document["queues"]))
    )
    least = "at least " if some_unknown else ""
    lag = "an unknown number of" if totals["lag"] is None else f"{least}{totals['lag']:,}"
    groups, topics, stores = (
        f"{totals[name]:,} {name if totals[name] != 1 else name[:-1]}"
        for name in ("groups", "topics", "stores")
    )
    return f"{lag} unread messages in {groups} and {topics} of {stores}: {totals['status']}"
