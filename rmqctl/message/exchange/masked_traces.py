"""Masking of traces: a trace message contains keys, tags, ids and hosts of other messages.

The fields are those of :mod:`client.trace.trace`. Any other text is left unchanged.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .masking import Rule

TOLD: Final = frozenset({"keys", "tags", "ids", "hosts"})
"""Fields of rules that traces contain."""
TRACE_STARTS: Final = (b"Pub\x01", b"SubBefore\x01", b"SubAfter\x01", b"EndTransaction\x01")
"""The body of a trace message begins with one of these."""
_PLACES: Final[dict[str, dict[str, tuple[int, ...]]]] = {
    "tags": {"Pub": (6,), "EndTransaction": (6,)},
    "keys": {"Pub": (7,), "EndTransaction": (7,), "SubBefore": (7,), "SubAfter": (5,)},
    "ids": {"Pub": (5,), "EndTransaction": (5, 10), "SubBefore": (4, 5), "SubAfter": (1, 2)},
    "hosts": {"Pub": (8, 14), "EndTransaction": (8,)},
}
_OFFSET_ID_AT: Final = 12
"""Index in a Pub of 14 fields or more."""
_NULL: Final = "null"
NO_HOST: Final = "0.0.0.0:0"


def is_trace(body: bytes) -> bool:
    """Whether a body is that of a trace message."""
    return body.startswith(TRACE_STARTS)


def ids_in(body: bytes) -> set[str]:
    """The unique ids of the messages in a trace: a trace message has them as keys."""
    found: set[str] = set()
    for fields in _rows(body):
        places = _PLACES["ids"].get(fields[0], ())
        for place in places:
            if place < len(fields):
                found.update(fields[place].split(","))
    return found


def masked_trace(body: bytes, rules: Iterable["Rule"]) -> bytes:
    """A trace with the rules applied."""
    rows = list(_rows(body))
    for rule in rules:
        for fields in rows if rule.field in TOLD else ():
            for place in _PLACES[rule.field].get(fields[0], ()):
                if place < len(fields) and fields[place] not in ("", _NULL):
                    rule.matched = True
                    fields[place] = _masked(fields[place], rule)
            if rule.field == "hosts" and fields[0] == "Pub" and len(fields) > _OFFSET_ID_AT + 1:
                fields[_OFFSET_ID_AT] = without_host(fields[_OFFSET_ID_AT])
    return "\x02".join("\x01".join(fields) for fields in rows).encode("utf-8", "surrogateescape")


def without_host(offset_id: str) -> str:
    """An offset id with zeros for the broker's address; the position in the log stays."""
    return "0" * (len(offset_id) - 16) + offset_id[-16:]


def _rows(body: bytes) -> Iterator[list[str]]:
    for record in body.decode("utf-8", "surrogateescape").split("\x02"):
        yield record.split("\x01")


def _masked(text: str, rule: "Rule") -> str:
    if rule.field == "hosts":
        return NO_HOST
    if rule.field == "tags":
        return rule.change(text) or ""
    between = " " if rule.field == "keys" else ","  # ids of a batch
    changed = [(rule.change(part) or "").replace(" ", "_") for part in text.split(between)]
    return between.join(part for part in changed if part)
