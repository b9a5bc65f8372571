"""The commands: name, where each lives, and its line in the help.

Nothing here imports a command: the root's ``--help`` reads this table alone, and running a command
imports its own module only. To add one: write the function in ``commands/<noun>.py``, add its
line here, run ``make completions``.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Leaf(NamedTuple):
    """A command that does something: a function of a module in :mod:`rmqctl.commands`."""

    module: str
    function: str
    help: str


class Noun(NamedTuple):
    """A thing that can be looked at and worked on; its verbs are the commands."""

    help: str
    verbs: Mapping[str, Leaf]


TREE: Final[Mapping[str, Leaf | Noun]] = {
    "produce": Leaf("produce", "produce", "Send messages: lines, files, JSON"),
    "consume": Leaf("consume", "consume", "Read messages: all, some, or as a group"),
    "completion": Leaf("completion", "completion", "Print the completion script of a shell"),
    "version": Leaf("version", "version", "Show the versions of rmqctl and of what it runs on"),
}

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Every day": ("produce", "consume"),
    "Look and manage": ("topic", "message", "offset", "store"),
    "The program": ("completion", "version"),
}
"""How the root's help groups the commands."""
