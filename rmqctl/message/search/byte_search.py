"""Finding a needle in a buffer: the quickest way depends on what else is in there."""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

Find = Callable[[bytearray, int, int], int]
"""Where the first one begins in a part of a buffer, -1 without any."""

_SAMPLE: Final = 1 << 17
_RARE: Final = 1 << 11
"""One in so many bytes is rare enough to look at each place where it stands."""


class SearchBytes(NamedTuple):
    """Texts of which one must lie in a record that is to be found."""

    texts: tuple[bytes, ...]
    in_body: bool
    """They may lie in the body: those that are compressed have to be inflated to see."""

    @property
    def longest(self) -> int:
        """Bytes of the longest one."""
        return max(map(len, self.texts))

    def finder(self, sample: bytes | bytearray) -> Find:
        """The quickest way to find it where bytes are as in ``sample``.

        A single byte is found at the speed of memory, but then Python looks at the place. So that
        is done only for a byte that is rare; else by a regular expression.
        """
        if len(self.texts) == 1:
            text, part = self.texts[0], sample[:_SAMPLE]
            counts = {byte: part.count(byte) for byte in set(text)}
            rare = min(counts, key=counts.__getitem__)
            if counts[rare] * _RARE <= len(part):
                return _by_byte(text, text.index(rare))
        return _by_expression(any_of(self.texts))


def any_of(texts: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern that finds any of some texts."""
    return re.compile(b"|".join(map(re.escape, sorted(texts, key=len, reverse=True))))


def _by_byte(text: bytes, at: int) -> Find:
    byte = text[at : at + 1]

    def find(buffer: bytearray, start: int, end: int) -> int:
        place = buffer.find(byte, start + at, end)
        while place >= 0:
            if buffer.startswith(text, place - at, end):
                return place - at
            place = buffer.find(byte, place + 1, end)
        return -1

    return find


def _by_expression(pattern: re.Pattern[bytes]) -> Find:
    def find(buffer: bytearray, start: int, end: int) -> int:
        found = pattern.search(buffer, start, end)
        return -1 if found is None else found.start()

    return find
