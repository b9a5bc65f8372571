"""Compressed, binary and damaged messages on every screen that shows messages: a sentence each."""

import zlib

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner, prepare
from storage.format.properties import encode_properties
from storage.format.sys_flag import MessageSysFlag
from storage.store import MessageStore
from tests.rmqctl.console.test_messages import complete
from tests.rmqctl.console.test_walks import following
from tests.support.console import drive

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
NOW = 1_792_616_340_000
ZLIB = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
BODIES = [
    (b"plain text", 0),
    (zlib.compress(b'{"said": "packed text"}'), ZLIB),
    (b"no stream of zlib", ZLIB),
    (zlib.compress(b"cut off " * 99)[:-9], ZLIB),
    (bytes(range(250, 256)) + b"\0\x1b]0;x\7", 0),
    (zlib.compress(b"\xff\xfe binary, packed"), ZLIB),
    (b"", 0),
    (b"broken soon", 0),
    (b"the last", 0),
]
PACKED, WRONG, BROKEN = 1, (2, 3), 7
TOPICS = ("odd", "%DLQ%readers")


def put(root, topic):
    """Store every kind of message in a topic."""
    with EmbeddedBroker.open(root, clock=lambda: NOW) as broker:
        assert broker.store is not None
        for number, (body, flag) in enumerate(BODIES):
            properties = encode_properties({"KEYS": f"k{number}", "UNIQ_KEY": f"ID{number:030}"})
            inner = MessageInner(
                topic, 0, body, properties, NOW, HOST, HOST, 0, flag, keys=(f"k{number}",)
            )
            broker.store.put(prepare((inner,)))


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A topic and dead letters of every kind; one record of each is damaged."""
    root = tmp_path_factory.mktemp("odd") / "s"
    MessageStore.create(root, SMALL_STORE)
    for topic in TOPICS:
        put(root, topic)
    log = root / "commitlog" / f"{0:020}"
    data = bytearray(log.read_bytes())
    assert data.count(b"broken soon") == len(TOPICS)
    data = data.replace(b"broken soon", b"broken s00n")
    log.write_bytes(data)
    return root


def sound(console):
    """The screen, which shows no error of the program."""
    text = console.text()
    assert "internal error" not in text
    assert "Traceback" not in text
    assert "\x1b" not in text
    return text


@pytest.mark.slow
def test_a_list_has_what_can_be_read_and_says_what_is_left_out(odd):
    async def steps(console):
        await complete(console)
        pane = console.app.panes[0]
        offsets = [row.queue_offset for row in pane.table.shown]
        assert not {*WRONG, BROKEN} & set(offsets), offsets
        text = sound(console)
        assert text.count("note: left out") == len(WRONG)
        assert "could not be read; 'rmqctl store fsck'" in text
        assert pane.table.shown[PACKED].body == '{"said": "packed text"}'
        assert "bytes fa fb fc" in text
        for _ in offsets:
            await console.press("j")
            await complete(console)
            sound(console)

    drive(odd, steps, "messages", "odd", "0", size=(140, 40))


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BODIES)))
def test_one_message_is_shown_in_each_form_or_a_sentence_says_why_not(odd, number):
    async def steps(console):
        await complete(console)
        text = sound(console)
        if number in (*WRONG, BROKEN):
            assert console.app.panes[0].error
            assert "! " in text
        elif number == PACKED:
            assert '"said": "packed text"' in text
        for _ in range(3):
            await console.press("v")
            sound(console)
        await console.press("L")
        await complete(console)
        sound(console)

    drive(odd, steps, "message", "odd", "0", str(number), size=(100, 30))


@pytest.mark.slow
@pytest.mark.parametrize("words", ["'packed text' -t odd", "--key k4", "--regex 'broken|last'"])
def test_a_search_says_which_records_may_be_hits_too(odd, words):
    async def steps(console):
        await console.type(f":search {words}")
        await console.press("enter")
        await complete(console)
        assert console.app.panes[0].error is None, sound(console)
        assert console.app.panes[0].table.total
        sound(console)

    drive(odd, steps)


@pytest.mark.slow
def test_dead_letters_of_every_kind(odd):
    async def steps(console):
        await complete(console)
        text = sound(console)
        assert console.app.panes[0].error is None, text
        await console.press("tab")
        for _ in BODIES:
            await console.press("j")
            await complete(console)
            sound(console)
        await console.press("enter")
        await complete(console)
        sound(console)

    drive(odd, steps, "dlq", "readers", size=(140, 40))


@pytest.mark.parametrize("words", [("letter", "readers"), ("retry", "readers")])
def test_one_dead_letter_that_cannot_be_unpacked(odd, words):
    async def steps(console):
        await complete(console)
        sound(console)

    drive(odd, steps, *words, f"ID{WRONG[0]:030}", size=(140, 40))


@pytest.mark.slow
def test_new_messages_of_every_kind(odd):
    async def steps(console):
        await following(console)
        put(odd, "odd")
        count = len(BODIES)
        await console.until(f"{count} came")
        await console.until(lambda: console.app.panes[0].table.total == count - len(WRONG))
        text = sound(console)
        assert "note: left out" in text
        assert f"{count} came, {len(WRONG)} left out, {count - len(WRONG)} kept" in text

    drive(odd, steps, "follow", "odd", "*", size=(140, 40))
