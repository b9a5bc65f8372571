"""The one table of keys: it makes the bindings, the help and the documents."""

from collections.abc import Iterable
from typing import Final, NamedTuple


class Key(NamedTuple):
    """Keys that do one thing."""

    keys: tuple[str, ...]
    """Their names, as Textual has them."""
    action: str
    """The function, without its ``do_``."""
    label: str
    """How the help writes them."""
    help: str
    screens: tuple[str, ...] = ()
    """The screens on which they work; none: on all."""
    module: str = ""
    """The module of this package with the function ``do_ACTION``; none: ``program.actions``."""
    changes: bool = False
    """Whether they open the plan of a change; off while the console is read only."""


BODIES: Final = ("messages", "message", "life", "letter", "dlq", "retry", "follow", "search")
"""The screens that show a body."""
IDS: Final = ("messages", "message", "retries", "letter", "dlq", "retry", "follow", "search")
"""The screens whose rows are messages."""
WAITING: Final = ("agenda", "retries", "retry")
"""The screens of messages that wait."""
KEYS: Final = (
    Key(("j", "down"), "down", "j", "next row"),
    Key(("k", "up"), "up", "k", "previous row"),
    Key(("g", "home"), "first", "g", "first row"),
    Key(("G", "end"), "last", "G", "last row"),
    Key(("ctrl+d", "pagedown"), "page_down", "^d", "half a page down"),
    Key(("ctrl+u", "pageup"), "page_up", "^u", "half a page up"),
    Key(("enter",), "open", "enter", "open what the row is about"),
    Key(("escape",), "back", "esc", "close, or go back one screen"),
    Key(("minus",), "last_place", "-", "the screen before"),
    Key(("left_square_bracket",), "history_back", "[", "back in the history"),
    Key(("right_square_bracket",), "history_forward", "]", "forward in the history"),
    Key(("tab",), "next_pane", "tab", "next pane"),
    Key(("left",), "queue_before", "left", "queue before in the map", ("group",)),
    Key(("right",), "queue_after", "right", "next queue of the map", ("group",)),
    Key(("h",), "history", "h", "changes of the group", ("group",)),
    Key(("b",), "agenda_by", "b", "order by level, topic or group", ("agenda",)),
    Key(("x",), "stop", "x", "stop what is read, such as a check or a search"),
    Key(("C",), "check", "C", "check the store", ("health",)),
    Key(("colon",), "go_to", ":", "go to a screen, or set something"),
    Key(("slash",), "find", "/", "show rows with a text; /!TEXT: without it"),
    Key(("tilde",), "find_fuzzy", "~", "show rows with these letters in this order"),
    Key(("s",), "sort", "s", "sort by the next column; again: the other way"),
    Key(("S",), "reverse", "S", "sort the other way"),
    Key(("c",), "columns", "c", "choose and order the columns", (), "program.shaping"),
    Key(("w",), "wide", "w", "all columns, or the usual ones"),
    Key(("space",), "mark", "space", "mark the row"),
    Key(("asterisk",), "mark_all", "*", "mark all rows that are shown, or none"),
    Key(("p",), "pause", "p", "pause, or go on"),
    Key(("ctrl+r",), "look_now", "^r", "look now; what was stopped begins again"),
    Key(
        ("y",),
        "copy_cell",
        "y",
        "copy the cell that was clicked or is sorted by, or the row's name",
    ),
    Key(("Y",), "copy_command", "Y", "copy the command"),
    Key(("r",), "reset", "r", "reset offsets...", ("groups", "group"), changes=True),
    Key(
        ("u",),
        "undo",
        "u",
        "undo a change of offsets...",
        ("groups", "group", "audit", "change", "history", "plan"),
        changes=True,
    ),
    Key(("R",), "redrive", "R", "redrive dead letters...", ("dlqs", "dlq", "letter"), changes=True),
    Key(
        ("A",),
        "acknowledge",
        "A",
        "acknowledge dead letters...",
        ("dlqs", "dlq", "letter"),
        changes=True,
    ),
    Key(("N",), "deliver_now", "N", "deliver retries now...", WAITING, changes=True),
    Key(
        ("D",),
        "make_dead",
        "D",
        "make retries dead letters...",
        WAITING,
        changes=True,
    ),
    Key(("M",), "repair", "M", "repair the store...", ("health",), changes=True),
    Key(("B",), "snapshot", "B", "take a snapshot (backup)...", ("health",), changes=True),
    Key(
        ("D",), "delete", "D", "the command that deletes it", ("groups", "group", "topics", "topic")
    ),
    Key(("v",), "form", "v", "body as JSON, text or hex", BODIES, "message_actions"),
    Key(("W",), "wrap", "W", "wrap long lines, or cut them", BODIES, "message_actions"),
    Key(("L",), "life", "L", "the life of the message", IDS, "message_actions"),
    Key(("T",), "trace", "T", "the trace of the message", IDS, "message_actions"),
    Key(("b",), "by", "b", "by reason, tag, key or hour", ("dlq",), "message_actions"),
    Key(
        ("f",),
        "follow",
        "f",
        "follow new messages, or stop",
        ("topic", "messages", "follow"),
        "message_actions",
    ),
    Key(("n",), "next_hit", "n", "next hit", ("search",), "message_actions"),
    Key(("m",), "more", "m", "twice as many messages", ("messages",), "message_actions"),
    Key(("b",), "rule", "b", "the next rule for a time", ("plan",)),
    Key(("left",), "earlier", "left", "a minute earlier", ("plan",)),
    Key(("right",), "later", "right", "a minute later", ("plan",)),
    Key(
        ("e",),
        "export",
        "e",
        "export the rows, or those marked, to a file",
        (),
        "program.exporting",
    ),
    Key(
        ("exclamation_mark",),
        "explain",
        "!",
        "explain the word of the row",
        (),
        "program.explaining",
    ),
    Key(
        ("ctrl+s",),
        "picture",
        "^s",
        "a picture of the screen, as a file (SVG)",
        (),
        "program.pictures",
    ),
    Key(("ctrl+p",), "palette", "^p", "all actions, by their words", (), "program.palette"),
    Key(("question_mark",), "help", "?", "the keys of this screen"),
    Key(("q", "ctrl+c"), "quit", "q", "quit"),
    Key(("ctrl+z",), "suspend", "^z", "suspend"),
)


class Word(NamedTuple):
    """What may be typed after ``:``, besides the name of a screen."""

    word: str
    takes: str
    """What follows it, as the documents write it."""
    help: str


WORDS: Final = (
    Word("where", "EXPR", "show the rows for which it holds; without EXPR all of them"),
    Word("sort", "FIELD", "sort by a field; -FIELD: the largest first"),
    Word("columns", "A,B,C", "show these columns; without any the usual ones"),
    Word("all", "", "show topics of the system, retries and dead letters, too, or not"),
    Word("every", "DUR", "time between two looks"),
    Word("from", "POSITION", "on the messages of a topic: where they begin"),
    Word("search", "WORDS", "search as 'message search' does, within the topic that is shown"),
    Word("follow", "TOPIC [QUEUE] [FILTERS]", "show what is stored from now on"),
    Word("explain", "TERM", "the meaning of a word"),
    Word("export", "[FORMAT] FILE", "write the rows; export! replaces a file"),
    Word("picture", "FILE", "write a picture of the screen (SVG); picture! replaces a file"),
    Word("ctx", "NAME", "show the store of a context, of another -S, or the first one"),
    Word("write", "NAME", "turn changes on; NAME is that of the store's folder"),
    Word("readonly", "", "turn changes off"),
    Word("q", "", "quit"),
)


ANYWHERE: Final = tuple(key for key in KEYS if key.action in ("picture", "suspend"))
"""They work on plans, texts, lists and lines that are typed, too."""


def keys_of(screen: str) -> Iterable[Key]:
    """The keys that work on a screen."""
    return (key for key in KEYS if not key.screens or screen in key.screens)


def key_of(name: str, screen: str) -> Key | None:
    """What a key does on a screen; None if nothing."""
    return next((key for key in keys_of(screen) if name in key.keys), None)
