"""Empty results: a sentence on a terminal, and what machine formats have always printed."""

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.output.nothing import nothing_sentence
from storage.format.message import Message
from tests.support.cli import ROOT, run
from tests.support.terminal import on_a_terminal

EMPTY = {
    "dlq list": "no dead letters in {store}",
    "audit list": "no changes in {store}",
    "group clients": "no running consumers in {store}",
    "topic list --all --where topic=x": "no topics match",
    "message search nothing": "no messages match",
    "context list": "no contexts",
}


@pytest.mark.parametrize("line", EMPTY)
@pytest.mark.slow
def test_a_terminal_gets_a_sentence(store, line):
    shown = on_a_terminal(
        ["-m", "rmqctl", *line.split(), "-S", store], columns=80, env={"NO_COLOR": "1"}
    )
    assert " ".join(shown.split()) == EMPTY[line].format(store=store)
    quiet = ["-m", "rmqctl", *line.split(), "-S", store, "-q"]
    assert on_a_terminal(quiet, columns=80, env={"NO_COLOR": "1"}).strip() == ""


def test_a_terminal_gets_no_such_sentence_where_it_is_unknown_what_there_is(store):
    with EmbeddedBroker.open(store) as broker:
        broker.send(Message("%RETRY%g", b"x"), 0)
        broker.progress.move("g", {("%RETRY%g", 0): 1000})
    command = ["-m", "rmqctl", "retry", "browse", "g", "-S", store]
    shown = on_a_terminal(command, columns=200, env={"NO_COLOR": "1"})
    assert "how many retries wait is unknown" in shown
    assert "no waiting retries" not in shown


@pytest.mark.parametrize(("form", "shown"), [("json", "[]\n"), ("jsonl", ""), ("yaml", "[]\n")])
def test_a_pipe_gets_what_it_always_got(store, form, shown):
    result = run("dlq", "list", "-o", form)
    assert (result.out, result.err) == (shown, "")
    assert run("dlq", "list").out.startswith("group\tdepth\t")


def test_changes_have_sentences_of_their_own():
    assert nothing_sentence("topic alter", str(ROOT), filtered=False) == ""
