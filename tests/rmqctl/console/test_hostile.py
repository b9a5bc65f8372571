"""Names and texts of a store never command the terminal, and columns line up."""

import base64
import json
import re
import unicodedata
from functools import cache
from itertools import product

import pyte
import pytest
from textual.events import Paste

from rmqctl.console.cells import safe
from rmqctl.console.drawing import Span
from rmqctl.console.looks.look import Place
from rmqctl.console.painting import Painter
from rmqctl.console.screens.table import TABLE
from rmqctl.console.themes import Theme
from rmqctl.output.cells import cells_of
from storage.clock import now_ms
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.hostile_text import SPECIAL
from tests.support.rich_store import GROUP, GROUPS, TOPIC, TOPICS, make_rich_store

FRAME = re.compile(r"\x1b\[(?:\d+;\d+H|\d+G|\d*[ABCD]|[\d;]*m)")
SEQUENCES = re.compile(
    r"\x1b\[(?:\d+;\d+H|\d+G|\d*[ABCD]|[\d;]*m|\?(?:7|25|1000|1002|1003|1004|1006|1015|1049|2004|2026)[hl]"
    r"|\?2026\$p|>1u|<u)|\x1b\]52;c;[A-Za-z0-9+/=]*\x07"
)
LONG = "L\u6f22\x1b[31m" * 13_000
NAMES = tuple(text for text in SPECIAL if "\ud800" not in text)


def printable(text, sequences=FRAME):
    """The text that is left when the sequences that are allowed are taken out; it is safe."""
    rest = sequences.sub("", text)
    bad = [ascii(letter) for letter in rest if not letter.isprintable()]
    assert not bad, bad[:20]
    return rest


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A store with everything odd, and names in its files that no broker would accept."""
    store = make_rich_store(tmp_path_factory.mktemp("hostile") / "s", now_ms() - 300_000).root
    topics = store / "config" / "topics.json"
    tables = json.loads(topics.read_text("utf-8"))
    pattern = next(iter(tables["topicConfigTable"].values()))
    for name in (*NAMES, LONG):
        tables["topicConfigTable"][name] = {**pattern, "topicName": name}
    topics.write_text(json.dumps(tables), "utf-8")
    groups = store / "config" / "subscriptionGroup.json"
    tables = json.loads(groups.read_text("utf-8"))
    pattern = next(iter(tables["subscriptionGroupTable"].values()))
    for name in (*NAMES, LONG):
        tables["subscriptionGroupTable"][name] = {**pattern, "groupName": name}
    groups.write_text(json.dumps(tables), "utf-8")
    offsets = store / "config" / "consumerOffset.json"
    start = '"offsetTable":{'
    added = "".join(json.dumps(f"{TOPIC}@{name}") + ":{0:1}," for name in (*NAMES, LONG))
    text = offsets.read_text("utf-8")
    assert start in text
    offsets.write_text(text.replace(start, start + added), "utf-8")
    return store


ODD = (NAMES[1], LONG)
CHOICES = {"GROUP": (GROUP, GROUPS[1], *ODD), "TOPIC": (TOPIC, TOPICS[1], *ODD)}
SCREENS = [screen for screen in TABLE if set(TABLE[screen].names) <= set(CHOICES)]


def shown_by_pyte(text):
    """Without marks that have no combining class: at these, pyte drops what follows."""
    if text.isascii():
        return text
    return "".join(
        letter
        for letter in text
        if unicodedata.category(letter) != "Mn" or unicodedata.combining(letter)
    )


@cache
def alone_on_a_terminal(shown, width):
    """What a terminal shows of a line without colors; most lines come again on each screen."""
    screen = pyte.Screen(width, 1)
    screen.reset_mode(7, private=True)
    pyte.Stream(screen).feed(shown_by_pyte(shown))
    return screen.display[0]


def check_screen(console):
    """The screen's bytes are safe; a terminal shows exactly its lines."""
    width, height = console.app.size
    lines = console.app.lines(width, height)
    assert len(lines) == height
    text = Painter(Theme("dark", color=True)).frame(lines, width)
    printable(text)
    screen = pyte.Screen(width, height)
    screen.reset_mode(7, private=True)
    pyte.Stream(screen).feed(shown_by_pyte(text))
    displayed = screen.display
    for y, line in enumerate(lines):
        shown = "".join(span.text for span in line)
        assert safe(shown) == shown or console.app.prompt is not None, ascii(shown)
        assert cells_of(shown) == width, ascii(shown)
        assert displayed[y] == alone_on_a_terminal(shown, width)


@pytest.mark.parametrize(
    "screen",
    [
        pytest.param(screen, marks=[pytest.mark.long] if number % 4 else [])
        for number, screen in enumerate(SCREENS)
    ],
)
@pytest.mark.slow
def test_every_screen_is_safe_and_lines_up(hostile, screen):
    async def steps(console):
        for names in product(*(CHOICES[name] for name in TABLE[screen].names)):
            console.app.go(Place(screen, names))
            await console.read()
            check_screen(console)
            await console.press("j", "space", "w", "s")
            check_screen(console)

    size = (140, 40) if SCREENS.index(screen) % 2 else (80, 24)
    drive(hostile, steps, size=size)


ODD_BODY = "\n".join((*NAMES, f"e{chr(0x301) * 200}", "\u6f22e\u0301" * 60))
"""A text of which letters have marks where its lines are wrapped."""


@pytest.fixture
def odd_messages(store):
    """Messages with everything odd in bodies and properties; their IDs."""
    value = next(text for text in NAMES if "\u20e3" in text)
    sent = []
    for body in (ODD_BODY, json.dumps({text: text for text in NAMES}, ensure_ascii=False)):
        record = {"body": body, "properties": {"odd": value, "marks": f"e{chr(0x301) * 200}"}}
        run("produce", "orders", "--input", "jsonl", stdin=json.dumps(record).encode() + b"\n")
    for row in json.loads(run("consume", "orders", "-e", "-o", "json", "--with-meta").out):
        assert value in row["properties"].values()
        sent.append((str(row["queue_id"]), str(row["queue_offset"]), row["msg_id"]))
    return store, sent


@pytest.mark.parametrize(
    "size", [(80, 24), pytest.param((140, 40), marks=pytest.mark.long)], ids=["narrow", "wide"]
)
@pytest.mark.slow
def test_bodies_and_properties_are_safe_and_line_up(odd_messages, size):
    store, sent = odd_messages

    async def steps(console):
        for queue, offset, message_id in sent:
            for place in (
                Place("message", ("orders", queue, offset)),
                Place("messages", ("orders",)),
                Place("life", (message_id,)),
                Place("search", ("orders",)),
            ):
                console.app.go(place)
                await console.read()
                check_screen(console)
                await console.press("v")
                check_screen(console)
                await console.press("v", "W")
                check_screen(console)
                await console.press("G")
                check_screen(console)
        console.app.go(Place("message", ("orders", *sent[0][:2])))
        await console.read()
        assert "\\U0001f1ea" in console.text(), "a half of a flag is escaped, as in a list"

    drive(store, steps, "topics", size=size)


def test_a_text_that_is_not_made_safe_is_so_when_it_is_painted():
    for text in SPECIAL:
        painted = Painter(Theme("dark", color=True)).frame([[Span(text)]], 400)
        shown = FRAME.sub("", painted)
        assert safe(shown) == shown, ascii(shown)


@pytest.mark.slow
def test_what_is_typed_pasted_or_said_is_safe(hostile):
    async def steps(console):
        await console.read()
        for text in SPECIAL:
            console.app.notice = text
            check_screen(console)
        for n, text in enumerate((*SPECIAL[1::3], LONG)):
            await console.press(("slash", "tilde", "colon")[n % 3])
            console.app.post_message(Paste(text))
            await console.press("home", "right")
            check_screen(console)
            await console.press("enter")
            check_screen(console)
            await console.press("escape", "escape")

    drive(hostile, steps, "groups")


@pytest.mark.slow
def test_the_bytes_of_a_walk_are_text_and_known_sequences(hostile):
    with terminal(hostile, "topics") as console:
        console.until("TOPIC")
        console.until(TOPICS[0])
        copied = 0
        for keys in ("y", "jy", "jy", "G", "y", "kkkkkky", "\r", "Y", ":groups\r", "y", "w", "?"):
            console.send(keys)
            copied += "y" in keys.lower()
            console.until(lambda n=copied: console.raw.count(b"\x1b]52;") >= n)
            if keys == ":groups\r":
                console.until(f"{GROUP} ")
        console.send("q")
        assert console.ended() == 0
        text = console.raw.decode("utf-8", "surrogateescape")
        printable(text, SEQUENCES)
        for data in re.findall(r"\x1b\]52;c;(.*?)\x07", text):
            base64.b64decode(data, validate=True)
