"""A wish: a change that a person asked for, before its plan is made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from rmqctl.admin.changes import Change, JavaCheck, Warn
from rmqctl.console.looks.look import Progress, typed_command

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.readonly import StoreView

    from .timeline import Timeline


class Stopped(Exception):
    """Raised where a change waits before its next row, and is to end."""


class Making(NamedTuple):
    """What a plan is made from."""

    broker: "EmbeddedBroker"
    now_ms: int
    warn: Warn
    java_check: JavaCheck
    refuse: Warn
    """Takes a sentence that forbids to carry the plan out."""
    advance: Callable[[Progress], object] = lambda progress: None
    """Takes how far it is; raises Stopped once the plan is not wanted any more."""

    @property
    def view(self) -> "StoreView":
        """The files of the store."""
        return self.broker.view


class Wish(NamedTuple):
    """A change that a person asked for."""

    title: str
    """What it does, in a word or two."""
    command: str
    """The command that does the same, as the journal names it: ``offset reset``."""
    words: tuple[str, ...]
    """The words of that command after ``rmqctl``."""
    make: Callable[[Making], Change]
    """Reads the store and makes the plan; may raise what the command raises."""
    name: str
    """What is typed to carry it out: the name of the group, or of the store."""
    name_of: str
    """What that name belongs to, in words: ``the group``."""
    key: tuple[str, ...]
    """The fields that tell a row of the plan from the others."""
    columns: tuple[str, ...] = ()
    """The columns that are shown at first, of the plan and of the result; none: the usual ones."""
    words_of: Callable[[Change], tuple[str, ...]] | None = None
    """The words of the command, where they depend on the plan."""
    fitted: "Callable[[Any], Wish] | None" = None
    """The same wish with the name and the columns that its plan needs."""
    undo: "Callable[[int | None], Wish | None] | None" = None
    """The wish that takes the change with a number back."""
    after: Callable[[Any], Iterable[str]] | None = None
    """Sentences about the change once it has been done."""
    stopped: Callable[[Any], Iterable[str]] | None = None
    """Sentences about a change that was stopped, or has failed, before its last row."""
    hurry: Callable[[], object] = lambda: None
    """Ends the waits between its rows; they raise Stopped then."""
    picture: "Callable[[Making, Change], Timeline | None] | None" = None
    """When the messages were stored that the plan is about."""
    others: "Mapping[str, Callable[[], Wish]]" = MappingProxyType({})
    """Wishes that keys of the plan change it to, by their actions."""
    about: Callable[[Making, Change], Iterable[str]] | None = None
    """Sentences about what the plan is made from, above its summary."""
    replaces_files: bool = False
    """Whether files of the store are replaced, so that it must be opened anew."""
    java: bool = True
    """Whether it is refused beside a Java broker, as the command is."""

    def command_line(self, words: Sequence[str], reason: str = "") -> str:
        """The command that does the same, as it is typed."""
        return typed_command(words, [self.name], ("--reason", reason) if reason else ())


def words_of(wish: Wish, change: Any) -> tuple[str, ...]:
    """The words of the command of a plan; None: of a plan that is still to be made."""
    if wish.words_of is None or change is None:
        return wish.words
    return wish.words_of(change)
