"""Errors of the format: bytes that cannot be decoded.

StoreError
  FormatError                     (also a ValueError)
    RecordError                   bytes that are no record of the commit log
    BodyError                     a stored body that cannot be turned back into the sent one
      BodyTooLargeError           it inflates beyond the limit
      CompressionTypeError        packed by an unknown method, or the library for it is missing
    JsonError                     text that even fastjson does not take for JSON
"""

from __future__ import annotations

from copy import copy
from typing import Self

from storage.errors import StoreError


class FormatError(StoreError, ValueError):
    """Bytes that the format does not allow. It says nothing about the file they came from."""


class RecordError(FormatError):
    """The bytes at a position are no record of the commit log.

    ``position`` counts in the given buffer, not in the commit log.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"no record at byte {position}: {reason}")
        self.reason = reason
        self.position = position


class BodyError(FormatError):
    """A compressed body is damaged; headers and properties of the message are still good."""

    def of(self, message: str) -> Self:
        """Give the same error with the name of its message."""
        named = copy(self)
        named.args = (f"{message}: {self}",)
        return named


class BodyTooLargeError(BodyError):
    """A compressed body inflates beyond ``limit`` bytes; it was given up there."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the compressed body inflates to more than {limit} bytes")
        self.limit = limit

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are copied by a call with their args: the text, where this takes a limit.
        return type(self), (self.limit,), {"args": self.args}


class CompressionTypeError(BodyError):
    """A body is packed by a method that is unknown, or whose library is not installed."""


class JsonError(FormatError):
    """Text that fastjson would refuse. ``position`` counts characters from its start."""

    def __init__(self, reason: str, text: str, position: int) -> None:
        line = text.count("\n", 0, position) + 1
        column = position - (text.rfind("\n", 0, position) + 1) + 1
        super().__init__(f"not JSON at line {line}, column {column}: {reason}")
        self.reason = reason
        self.position = position
