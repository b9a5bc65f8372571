"""Commands that the console shows: names that begin with '-' are no options."""

import shlex

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks.look import typed_command
from storage.format.message import Message
from tests.rmqctl.console.test_changes import turn_on
from tests.support.cli import run
from tests.support.console import drive
from tests.support.dead_letters import bury, give_back

GROUP, TOPIC = "-x", "-t"


@pytest.mark.parametrize(
    ("words", "names", "options", "command"),
    [
        (("lag", "show", "g"), ["g"], ("--wide",), "lag show g --wide"),
        (("lag", "show", "-x", "--by", "queue"), ["-x"], (), "lag show --by queue -- -x"),
        (("dlq", "show", "-x", "5"), ["-x", "5"], (), "dlq show -- -x 5"),
        (("dlq", "show", "g", "-5"), ["g", "-5"], (), "dlq show -- g -5"),
        (("dlq", "ack", "-x", "0", "2", "--undo"), ["-x"], (), "dlq ack --undo -- -x 0 2"),
        (("dlq", "redrive", "--all", "--all"), ["--all"], (), "dlq redrive --all -- --all"),
        (
            ("offset", "reset", "-t", "-t", "-t", "--to-latest"),
            ["-t"],
            ("--reason", "-t"),
            "offset reset -t -t --to-latest --reason -t -- -t",
        ),
    ],
)
def test_arguments_stand_after_two_dashes(words, names, options, command):
    assert typed_command(words, names, options) == f"rmqctl {command}"


@pytest.fixture
def dashed(store):
    """A group and a topic whose names begin with '-', with dead letters and a retry."""
    bury(store, GROUP, [Message(TOPIC, b"%d" % n) for n in range(2)], ["timeout", "timeout"])
    with EmbeddedBroker.open(store) as broker:
        sent = broker.send(Message(TOPIC, b"again"))
        (stored,) = broker.query_unique(TOPIC, sent.msg_id)
        give_back(broker, GROUP, stored, level=18)
    assert run("offset", "reset", "-t", TOPIC, "--to-earliest", "--yes", "--", GROUP).code == 0
    return store


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "keys", "more"),
    [
        (("group", GROUP), "r", ("--to-latest",)),
        (("dlqs",), "R", ()),
        (("dlqs",), "A", ()),
        (("retries", GROUP), "N", ()),
        (("retries", GROUP), "D", ()),
        (("letter", GROUP, "0"), "R", ()),
        (("group", GROUP), "D", ()),
        (("topic", TOPIC), "D", ()),
    ],
)
def test_the_command_of_a_plan_is_understood(dashed, place, keys, more):
    found = []

    async def steps(console):
        await console.read()
        await console.press(*keys)
        found.append(console.app.desk.command)

    drive(dashed, steps, *place)
    words = shlex.split(found[0])[1:]
    if "TIME" in words:
        at = words.index("--to-datetime")
        words[at : at + 2] = more
    at = words.index("--")
    done = run(*words[:at], "--dry-run", *words[at:])
    assert done.code == 0, done.err


@pytest.mark.slow
def test_the_command_of_a_plan_with_a_reason_is_understood(dashed):
    async def steps(console):
        await turn_on(console)
        await console.press("A")
        await console.until(f"Type {GROUP}")
        await console.press("enter")
        await console.type("why")
        await console.press("enter")
        assert console.app.desk.sheet.command() == "rmqctl dlq ack --all --reason why -- -x"

    drive(dashed, steps, "dlqs", size=(120, 30))
