"""What waits for its time is read once: a look reads what came since then, and x stops it."""

import threading

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import retries as admin
from rmqctl.console.looks import agenda, retries
from rmqctl.console.looks.look import Place, Progress, Source
from storage.clock import now_ms
from storage.configs.delay_offsets import load_delay_offsets, save_delay_offsets
from storage.format.message import Message
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import give_back

GROUP = "billing"
LOOKS = [agenda.EACH, retries.AGENDA, retries.RETRIES]


@pytest.fixture
def waiting(store):
    """Three retries and four other messages that wait, on two levels."""
    run("consume", "orders", "-g", GROUP, "-e")
    with EmbeddedBroker.open(store) as broker:
        for number in range(3):
            back(broker, number)
        for number in range(4):
            broker.send(later(b"later %d" % number))
    return store


def later(body):
    """A message that waits on the level before that of the retries."""
    return Message("mails", body, delay_time_level=17)


def back(broker, number):
    """Give a message back that waits as a retry then."""
    sent = broker.send(Message("orders", b"again %d" % number))
    (stored,) = broker.query_unique("orders", sent.msg_id)
    give_back(broker, GROUP, stored, level=18)


def expected(view, broker, now):
    """The rows of each look, as the commands find them."""
    return [
        list(admin.delayed_messages(view)),
        list(admin.agenda(view, now)),
        admin.Retries(view, broker, GROUP, now).rows(),
    ]


class Looks:
    """Looks one after the other, with one memory."""

    def __init__(self, store):
        self.store = store
        self.memory = {}

    def read(self, now):
        """The rows of all looks, beside those of the commands; and how many messages were read."""
        reports: list[object] = []
        with EmbeddedBroker.open(self.store, read_only=True) as broker:
            source = Source(broker, now, reports.append, self.memory, reports.append)
            rows = [list(look.read(source, Place("agenda", (GROUP,)))) for look in LOOKS]
            assert rows == expected(broker.view, broker, now)
        return len([said for said in reports if isinstance(said, Progress)])


@pytest.mark.slow
def test_what_waits_is_not_read_again_while_none_comes_or_goes(waiting):
    looks, now = Looks(waiting), now_ms()
    assert looks.read(now) >= 7
    assert looks.read(now) == 0
    assert looks.read(now + 10_000_000) == 0, "they are overdue now"
    assert looks.read(now) == 0


@pytest.mark.slow
def test_only_what_has_come_is_read_and_what_has_gone_is_left_out(waiting):
    looks, now = Looks(waiting), now_ms()
    looks.read(now)
    with EmbeddedBroker.open(waiting) as broker:
        broker.send(later(b"one more"))
    assert looks.read(now) == 1
    with EmbeddedBroker.open(waiting) as broker:
        back(broker, 9)
    assert looks.read(now) == 1 + 4, "one came, and the four retries of the group are read"
    (first, *_) = run("retry", "browse", GROUP, "-S", waiting, "-o", "json").json()
    assert run("retry", "now", GROUP, first["offset_msg_id"], "-y", "-S", waiting).code == 0
    looks.read(now)
    assert looks.read(now) == 0
    saved = load_delay_offsets(waiting)
    save_delay_offsets(waiting, {**saved, 17: 2})
    looks.read(now)
    save_delay_offsets(waiting, saved)
    looks.read(now)
    levels = "1s " * 17 + "9h"
    assert (
        run("broker", "config", "set", "messageDelayLevel", levels, "-y", "-S", waiting).code == 0
    )
    assert looks.read(now) > 0, "they are due at other times"


@pytest.mark.slow
@pytest.mark.parametrize("place", [Place("agenda"), Place("retries", (GROUP,))])
def test_x_stops_the_reading_of_what_waits(waiting, place):
    async def steps(console):
        await console.read()
        app, gate = console.app, threading.Event()
        app.reader.call(lambda source: gate.wait(30), lambda value: None)
        app.go(place)
        app.reader.hold(held=True)
        gate.set()
        await console.press("x")
        await console.until("stopped (^r: again)")
        app.reader.hold(held=False)
        await console.until(lambda: all(pane.stopped or not pane.loading for pane in app.panes))
        stopped = [pane for pane in app.panes if pane.stopped]
        assert stopped == app.panes
        numbers = [pane.number for pane in stopped]
        await console.press("j")
        app.look()
        assert [pane.number for pane in stopped] == numbers, "what was stopped is not read again"
        await console.press("ctrl+r")
        await console.read()
        assert "stopped" not in console.text()

    drive(waiting, steps, "groups", size=(120, 40))
