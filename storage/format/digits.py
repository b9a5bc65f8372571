"""Numbers in texts that a user or a store chose."""

from __future__ import annotations

from typing import Final

_MOST_DIGITS: Final = 19
"""Digits of the largest number of 8 bytes; int() raises for thousands of them."""


def parse_digits(text: str) -> int | None:
    """Give the number of a text of ASCII digits; None for any other text, and beyond 19 digits."""
    if len(text) > _MOST_DIGITS or not (text.isascii() and text.isdigit()):
        return None
    return int(text)
