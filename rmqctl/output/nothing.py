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
    "offset list": "committed offsets",
    "offset inspect": "committed offsets",
    "offset history": "changes of offsets",
    "offset diff": "differences",
    "lag show": "groups with progress or consumers",
    "lag histogram": "unread messages",
    "message query": "messages",
    "message search": "messages",
    "message stats": "messages",
    "consume": "messages to read",
    "dlq list": "dead letters",
    "dlq browse": "unhandled dead letters",
    "dlq groups": "dead letters",
    "retry browse": "waiting retries",
    "retry agenda": "waiting messages",
    "audit list": "changes",
    "store du": "messages",
    "store diff": "differences",
    "store tail": "records",
    "context list": "contexts",
    "cheat": "examples",
    "mqadmin": "commands",
}
"""What a row is, by command. Plans of changes are not here: they say what there is to change."""

_SEARCHES: Final = frozenset({"message query", "message search"})
"""Commands that search: an empty result does not mean an empty store."""


def nothing_sentence(command: str, store: str, *, filtered: bool) -> str:
    """``no topics in /data/store``, or ``no messages match``; empty where no sentence is needed.

    ``command`` without the program's name; ``filtered``: ``--where`` or a message filter is given.
    """
    rows = _ROWS.get(command)
    if rows is None:
        return ""
    if filtered or command in _SEARCHES:
        return f"no {rows.removesuffix(' to read')} match"
    if command.split()[0] in ("consume", "context", "cheat", "mqadmin"):
        return f"no {rows}"
    return f"no {rows} in {store}"
