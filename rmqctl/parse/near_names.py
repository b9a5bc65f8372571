"""Suggestions of a known name for an unknown one, for errors and warnings."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

_NEAR: Final = 0.6


def plain_name(name: str) -> str:
    """A name without case and punctuation: queue-id, queueId and queue_id are equal."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def nearest_name(
    name: str,
    known: Iterable[str],
    others: Mapping[str, str] | None = None,
    *,
    cutoff: float = _NEAR,
) -> str | None:
    """The most similar known name; None if no name is similar.

    ``others`` maps names of other tools to the names here.
    """
    others = others or {}
    plain = plain_name(name)
    table = {plain_name(one): one for one in (*others, *known)}
    close = [plain] if plain in table else get_close_matches(plain, table, 1, cutoff)
    if not close:
        return None
    meant = table[close[0]]
    return others.get(meant, meant)


def did_you_mean(name: str, known: Iterable[str], others: Mapping[str, str] | None = None) -> str:
    """The end of a sentence about an unknown name, or an empty text."""
    near = nearest_name(name, known, others)
    return f"; did you mean {near!r}?" if near else ""
