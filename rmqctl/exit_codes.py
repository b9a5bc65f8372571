"""Exit codes of the command line; a contract with scripts.

``lag check`` alone speaks the language of monitoring plug-ins instead: 0 ok, 1 warning,
2 critical, 3 unknown.
"""

from typing import Final

DONE: Final = 0
"""Everything that was asked for was done."""
FAILURE: Final = 1
"""Something failed that has no code of its own; an unsupported store format too."""
USAGE: Final = 2
"""The command line is wrong, or a value on it is malformed or over a limit."""
NOT_FOUND: Final = 3
"""No such topic, group, message or store."""
DAMAGED: Final = 4
"""The store is damaged, or ``store fsck`` found an error."""
NOT_WRITABLE: Final = 5
"""A Java broker holds the store, or it can not be read or written."""
CHANGED: Final = 6
"""Something changed since the preview; nothing was written."""
REFUSED: Final = 7
"""A safety rule refused: active members, no confirmation, would go forward."""
PARTLY: Final = 8
"""Some was done, some not; the report says which."""
FOREIGN_PACKAGES: Final = 78
"""Another package shadows one of ours."""
TIMED_OUT: Final = 124
"""``--timeout`` ran out."""
INTERRUPTED: Final = 130
"""Ctrl-C."""
BROKEN_PIPE: Final = 141
"""The reader of our output went away; silent."""
TERMINATED: Final = 143
"""SIGTERM; everything was closed cleanly."""
