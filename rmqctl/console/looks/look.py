"""A look: rows of one type, how to read them, and the command that prints the same."""

import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple

LAG_HISTORY: Final = "lag history"
"""The name in a Source's memory of what is kept when the same store is opened anew."""

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.settings import Settings
    from storage.readonly import StoreView


class Place(NamedTuple):
    """Where the console is: a screen, and the names of what it shows."""

    screen: str
    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The first name: that of a group or a topic."""
        return self.names[0]


class Progress(NamedTuple):
    """How far a look is."""

    done: int
    total: int
    unit: str
    """Of both, such as messages or bytes."""
    left_out: int = 0
    """Those of ``total`` that will not be looked at."""


class Source(NamedTuple):
    """What answers the questions of a look, at one time."""

    broker: "EmbeddedBroker"
    now_ms: int
    notice: Callable[[str], object]
    """Takes a sentence about values that are unknown or doubtful."""
    memory: dict[str, Any]
    """What a look keeps for the next one of the same store."""
    advance: Callable[[Progress], object] = lambda progress: None
    """Takes how far the look is; ends the look by an exception if it is no longer wanted."""
    zone: tzinfo | None = None
    """The zone of times without one; None: the local one."""
    settings: "Settings | None" = None
    """The settings of the call."""
    go_on: Callable[[], object] = lambda: None
    """Takes that the rows are a part, and that the next look, wanted at once, has more."""

    @property
    def view(self) -> "StoreView":
        """The files of the store."""
        return self.broker.view


class Look(NamedTuple):
    """The rows of a pane."""

    name: str
    row_type: type
    read: Callable[[Source, Place], Iterable[Any]]
    """Reads the rows, all or as they come; may raise what the command raises."""
    words: Callable[[Place], tuple[str, ...]]
    """The command that prints the same rows: its words after ``rmqctl``."""
    key: tuple[str, ...]
    """The fields that tell a row from the others, so that the cursor stays on it."""
    sort: tuple[str, ...] = ()
    """The order at first, as ``--sort`` takes it."""
    users_only: bool = False
    """Whether rows of the system are left out unless all are wanted, as the command does."""
    opens: Callable[[Any], Place | None] | None = None
    """Where Enter on a row leads; None, also for a row: nowhere."""
    opens_at: Callable[[Any, Place], Place | None] | None = None
    """The same, where the place of the rows is needed, too."""
    walk: bool = False
    """Whether it may take long: it is read once, by a thread of its own, and can be stopped.

    ``read`` of a walk may yield None while it has no row, so that what came is shown.
    """
    named: tuple[str, ...] = ()
    """The fields that name a row, the first of them that it has; none: the first of ``key``."""
    endless: bool = False
    """Whether a walk goes on until it is stopped."""
    of_store: bool = True
    """Whether it needs the store."""

    def command(self, place: Place, *options: str) -> str:
        """The command as it is typed, with options such as ``--where``."""
        return typed_command(self.words(place), place.names, options)


def typed_command(words: Sequence[str], names: Collection[str], options: Sequence[str] = ()) -> str:
    """The command as it is typed. Where one of ``names`` begins with '-', it would be taken for an
    option: the arguments beside it stand after ``--`` then, and after all options."""
    at = next((n for n, word in enumerate(words) if word.startswith("-") and word in names), None)
    if at is None:
        return shlex.join(("rmqctl", *words, *options))
    left = list(names)  # of equal words, so many are arguments
    left.remove(words[at])
    begin, end = at, at + 1
    while words[begin - 1] in left and not words[begin - 2].startswith("-"):
        begin -= 1
        left.remove(words[begin])
    while end < len(words) and (words[end] in left or not words[end].startswith("-")):
        if words[end] in left:
            left.remove(words[end])
        end += 1
    return shlex.join(("rmqctl", *words[:begin], *words[end:], *options, "--", *words[begin:end]))
