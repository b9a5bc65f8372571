"""Suggestions of a known name for an unknown one, for errors and warnings."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

_NEAR: Final = 0.6
_SHORT: Final = 5
_LONG: Final = 8


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


def mistyped_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that ``name`` is probably a mistyped form of; None if there is none.

    One letter is missing, added, changed or swapped with its neighbour, in names of 8 letters or
    more two. Names that differ in digits only are meant so, such as billing-1 and billing-2, as are
    names of fewer than 5 characters.
    """
    best: tuple[int, str] | None = None
    for other in known:
        shorter = min(len(name), len(other))
        most = 0 if shorter < _SHORT else 1 if shorter < _LONG else 2
        if name == other or abs(len(name) - len(other)) > most:
            continue
        if _without_digits(name) == _without_digits(other):
            continue
        distance = _distance(name, other)
        if distance <= most and (best is None or (distance, other) < best):
            best = distance, other
    return best and best[1]


def _without_digits(name: str) -> str:
    return "".join(letter for letter in name if not letter.isdigit())


def _distance(one: str, other: str) -> int:
    """How many letters to change, add, remove or swap (Damerau and Levenshtein; restricted)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        last, row = row, [i]
        for j, against in enumerate(other, 1):
            cost = min(last[j] + 1, row[-1] + 1, last[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = last
    return row[-1]
