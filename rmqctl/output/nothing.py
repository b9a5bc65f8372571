"""The sentence of an empty result on a terminal: what there is none of."""

from typing import Final

_ROWS: Final = {
    "topic list": "topics",
    "topic describe": "topics",
    "topic queues": "queues",
    "topic stats": "topics",
    "topic usage": "topics",
    "group list": "groups",
    "group describe": "groups",
    "group clients": "running consumers",
    "offset list": "progress of groups",
    "offset inspect": "progress of groups",
    "offset history": "changes of offsets",
    "offset diff": "differences",
    "offset export": "progress of groups",
    "lag show": "groups with progress or consumers",
    "lag histogram": "unread messages",
    "lag risk": "unread messages at risk",
    "message get": "messages",
    "message query": "messages",
    "message search": "messages",
    "message trace": "records of the message's trace",
    "message stats": "messages",
    "consume": "messages",
    "dlq list": "dead letters",
    "dlq browse": "dead letters",
    "dlq groups": "dead letters",
    "dlq show": "events",
    "retry browse": "messages that wait for a retry",
    "retry show": "events",
    "retry agenda": "messages that wait for delivery",
    "audit list": "changes",
    "store du": "messages",
    "store diff": "differences",
    "store dump": "entries",
    "store tail": "records",
    "context list": "contexts",
    "cheat": "examples",
    "mqadmin": "commands",
}
"""What a row is, by command. Plans of changes are not here: they say what there is to change."""

_FILTERED: Final = frozenset(
    {"message query", "message search", "consume", "dlq browse", "dlq groups", "retry browse"}
)
"""Commands with message filters: an empty result rarely means an empty store."""


def nothing_sentence(command: str, store: str, *, filtered: bool) -> str:
    """``no topics in /data/store``, or ``no messages match``; empty where no sentence is needed.

    ``command`` without the program's name; ``filtered``: rows were excluded by ``--where``.
    """
    rows = _ROWS.get(command)
    if rows is None:
        return ""
    if filtered or command in _FILTERED:
        return f"no {rows} match"
    if command.split()[0] in ("context", "cheat", "mqadmin"):
        return f"no {rows}"
    return f"no {rows} in {store}"
