"""The table of screens. To add one: its line here, its ScreenSpec in a module beside this one."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from rmqctl.console.looks.look import Place

if TYPE_CHECKING:
    from rmqctl.console.specs import ScreenSpec


class ScreenRef(NamedTuple):
    """A screen that has not been imported."""

    module: str
    help: str
    names: tuple[str, ...] = ()
    """What has to be named, such as GROUP."""
    parent: str | None = None
    """Where Escape leads."""
    optional: tuple[str, ...] = ()
    """What may be named after these."""

    def takes(self, count: int) -> bool:
        """Whether so many names may be given."""
        most = len(self.names) + len(self.optional)
        many = bool(self.optional) and self.optional[-1].endswith("...")
        return len(self.names) <= count and (many or count <= most)

    def title(self, place: Place) -> str:
        """The path to it, before its module is imported."""
        above = "" if self.parent is None else f"{TABLE[self.parent].help} > "
        return above + (" > ".join(place.names) or self.help)


TABLE: Final[Mapping[str, ScreenRef]] = {
    "overview": ScreenRef("overview", "Overview"),
    "groups": ScreenRef("groups", "Groups"),
    "group": ScreenRef("groups", "Group", ("GROUP",), "groups"),
    "history": ScreenRef("groups", "History", ("GROUP",), "group"),
    "topics": ScreenRef("topics", "Topics"),
    "topic": ScreenRef("topics", "Topic", ("TOPIC",), "topics"),
    "messages": ScreenRef("messages", "Messages", ("TOPIC",), "topic", ("QUEUE", "FROM", "COUNT")),
    "message": ScreenRef("messages", "Message", ("TOPIC", "QUEUE", "OFFSET"), "messages"),
    "follow": ScreenRef("messages", "New messages", ("TOPIC", "QUEUE"), "messages", ("FILTER",)),
    "search": ScreenRef("messages", "Search in messages", ("WORDS",), "topics"),
    "life": ScreenRef("messages", "Life of a message", ("ID",)),
    "trace": ScreenRef("messages", "Trace of a message", ("ID",)),
    "dlqs": ScreenRef("dead_letters", "Dead letters"),
    "dlq": ScreenRef("dead_letters", "Dead letters", ("GROUP",), "dlqs", ("BY",)),
    "letter": ScreenRef("dead_letters", "One dead letter", ("GROUP", "ID"), "dlq"),
    "agenda": ScreenRef("agenda", "Agenda"),
    "retry": ScreenRef("retries", "Attempts of a message", ("GROUP", "ID"), "retries"),
    "retries": ScreenRef("retries", "Retries", ("GROUP",), "agenda"),
    "contexts": ScreenRef("contexts", "Contexts"),
    "health": ScreenRef("health", "Store"),
    "check": ScreenRef("health", "Check", (), "health"),
    "audit": ScreenRef("audit", "Audit"),
    "change": ScreenRef("audit", "Change", ("CHANGE-ID",), "audit"),
}
ALIASES: Final[Mapping[str, str]] = {
    "o": "overview",
    "g": "groups",
    "t": "topics",
    "d": "dlqs",
    "a": "agenda",
    "ctx": "contexts",
}


def spec_of(screen: str) -> "ScreenSpec":
    """The screen with a name; its module is imported now."""
    module = import_module(f"rmqctl.console.screens.{TABLE[screen].module}")
    found: ScreenSpec = module.SCREENS[screen]
    return found


def place_named(words: Sequence[str]) -> Place:
    """The place of ``:`` and of the command's arguments. ValueError says what is possible."""
    screen = ALIASES.get(words[0], words[0])
    names = tuple(words[1:])
    for near in (screen, f"{screen}s", screen.removesuffix("s")):
        if near in TABLE and TABLE[near].takes(len(names)):
            return Place(near, names)
    if screen not in TABLE:
        near_names = get_close_matches(screen, TABLE, 1)
        hint = f"did you mean {near_names[0]!r}?" if near_names else f"one of {', '.join(TABLE)}"
        raise ValueError(f"{words[0]!r} is not a screen ({hint})")
    ref = TABLE[screen]
    wanted = " ".join((*ref.names, *(f"[{name}]" for name in ref.optional)))
    raise ValueError(f"'{screen}' takes {wanted or 'no name'}")
