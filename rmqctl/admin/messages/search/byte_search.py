"""Finding a text in a buffer; the fastest way depends on the content of the buffer."""

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

Find = Callable[[bytearray, int, int], int]
"""Start of the first match in a part of a buffer, -1 for none."""

_SAMPLE: Final = 1 << 17
_RARE: Final = 1 << 11
"""A byte with at most this share of the buffer is rare enough to check each occurrence."""


class SearchBytes(NamedTuple):
    """Texts; a record that matches must contain one of them."""

    texts: tuple[bytes, ...]
    in_body: bool
    """Whether they may be in the body: compressed bodies have to be unpacked to check."""

    @property
    def longest(self) -> int:
        """Length of the longest text."""
        return max(map(len, self.texts))

    def finder(self, sample: bytes | bytearray) -> Find:
        """The fastest search in buffers like ``sample``.

        A single byte is found at the speed of memory, but Python then checks each occurrence. So
        this is done for a rare byte only; otherwise a regular expression is used.
        """
        if len(self.texts) == 1:
            text, part = self.texts[0], sample[:_SAMPLE]
            counts = {byte: part.count(byte) for byte in set(text)}
            rare = min(counts, key=counts.__getitem__)
            if counts[rare] * _RARE <= len(part):
                return _by_byte(text, text.index(rare))
        return _by_expression(any_of(self.texts))


def any_of(texts: Iterable[bytes]) -> re.Pattern[bytes]:
    """A pattern that matches any of the texts."""
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
