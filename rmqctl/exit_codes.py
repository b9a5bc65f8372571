"""Exit codes of the command line; a contract with scripts.

Only ``lag check`` uses the codes of monitoring plug-ins: 0 ok, 1 warning, 2 critical, 3 unknown.
"""

from typing import Final

DONE: Final = 0
"""Everything was done."""
FAILURE: Final = 1
"""A failure without a code of its own, or an unsupported store format."""
USAGE: Final = 2
"""The command line is invalid, a value is malformed or exceeds a limit, or no row of the input
can be sent."""
NOT_FOUND: Final = 3
"""The topic, group, message or store does not exist."""
DAMAGED: Final = 4
"""The store is damaged, or ``store fsck`` found an error."""
NOT_WRITABLE: Final = 5
"""A Java broker holds the store, or the store cannot be read or written."""
CHANGED: Final = 6
"""The store changed since the preview; nothing was written."""
REFUSED: Final = 7
"""A safety rule refused: active members, no confirmation, a move that skips messages."""
PARTLY: Final = 8
"""Part of the work was done; the report says which part."""
FOREIGN_PACKAGES: Final = 78
"""Another package shadows one of rmqctl's."""
TIMED_OUT: Final = 124
"""``--timeout`` expired."""
INTERRUPTED: Final = 130
"""Ctrl-C."""
BROKEN_PIPE: Final = 141
"""The reader of the output closed it; no message is printed."""
TERMINATED: Final = 143
"""SIGTERM; the store was closed cleanly."""
