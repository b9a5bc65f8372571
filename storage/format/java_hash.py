"""Java's String.hashCode, and the two codes that the store derives from it.

    hash = c[0] * 31^(n-1) + c[1] * 31^(n-2) + ... + c[n-1]   mod 2^32, as a signed int

over UTF-16 code units. A Python loop costs 25 ns a character. Latin-1 text is hashed differently:
each code unit c is 31 * (c // 31) + c % 31. Both parts are digits of base 31, so the sum is two
numbers that int() reads from text at C speed.
"""

from __future__ import annotations

from typing import Final

_INT_MASK: Final = 0xFFFFFFFF
_SIGN_BIT: Final = 0x80000000
_DIGITS: Final = b"0123456789abcdefghijklmnopqrstu"
_QUOTIENTS: Final = bytes(_DIGITS[c // 31] for c in range(256))
_REMAINDERS: Final = bytes(_DIGITS[c % 31] for c in range(256))

# int() is quadratic in the length and refuses text beyond some thousand digits; long text is
# hashed a block at a time.
_BLOCK: Final = 128


def _unsigned_hash_of_wide(text: str) -> int:
    units = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (result * 31 + (high << 8 | low)) & _INT_MASK
    return result


def unsigned_java_hash(text: str) -> int:
    """Hash ``text`` as String.hashCode does, as an unsigned number 0 .. 2^32 - 1."""
    try:
        units = text.encode("latin-1")
    except UnicodeEncodeError:
        return _unsigned_hash_of_wide(text)
    result = 0
    for start in range(0, len(units), _BLOCK):
        block = units[start : start + _BLOCK]
        if start:
            result *= pow(31, len(block), 1 << 32)
        result += int(block.translate(_QUOTIENTS), 31) * 31 + int(block.translate(_REMAINDERS), 31)
        result &= _INT_MASK
    return result


def java_hash(text: str) -> int:
    """Give ``text.hashCode()`` as Java's int: -2^31 .. 2^31 - 1."""
    return (unsigned_java_hash(text) ^ _SIGN_BIT) - _SIGN_BIT


def tags_code(tags: str | None) -> int:
    """Hash a TAGS value for a consume queue unit; no tags or an empty value give 0.

    The whole string is hashed, also that of a multi-tag message
    (MessageExtBrokerInner.tagsString2tagsCode).
    """
    return java_hash(tags) if tags else 0


def key_hash(topic: str, key: str) -> int:
    """Hash a key of a topic for the index: 0 .. 2^31 - 1 over ``topic#key`` (IndexFile).

    Java's Math.abs of the hash, but 0 for -2^31.
    """
    unsigned = unsigned_java_hash(topic + "#" + key)
    return unsigned if unsigned < _SIGN_BIT else -unsigned & (_SIGN_BIT - 1)
