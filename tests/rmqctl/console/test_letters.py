"""The screens of dead letters and retries: counts, the letters of one, a letter in full."""

import json

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.dead_letters.rows import DeadLetterRow
from rmqctl.console.looks import dead_letters
from rmqctl.console.looks.look import Place, Source
from rmqctl.output.fields import fields_of
from rmqctl.output.shaping import predicate_of
from rmqctl.output.values import plain
from rmqctl.output.view import Format, View
from storage.clock import now_ms
from tests.rmqctl.console.test_messages import complete, same_rows
from tests.support.console import drive, json_rows
from tests.support.rich_store import make_rich_store


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A store with dead letters of several reasons, tags and keys."""
    return make_rich_store(tmp_path_factory.mktemp("rich") / "s", now_ms() - 600_000).root


@pytest.mark.slow
@pytest.mark.feature(159)
@pytest.mark.parametrize("by", dead_letters.BY)
def test_the_letters_of_a_count_are_as_many_and_those_of_the_command(rich, by):
    place = Place("dlq", ("readers", by))
    names = [field.name for field in fields_of(DeadLetterRow)]
    with EmbeddedBroker.open(rich, read_only=True) as broker:
        source = Source(broker, now_ms(), lambda sentence: None, {})
        counts = list(dead_letters.REASONS.read(source, place))
        assert counts
        for row in counts:
            there = dead_letters.letters_of(place)(row)
            letters = list(dead_letters.LETTERS.read(source, there))
            assert len(letters) == row.count
            command = dead_letters.LETTERS.command(there)
            found = [dict(zip(names, plain(list(letter)), strict=True)) for letter in letters]
            printed = json_rows(rich, command)
            for each in (*found, *printed):
                del each["age_ms"]
            assert json.loads(json.dumps(found)) == printed


@pytest.mark.parametrize("text", ["it's", 'a "b"', 'it\'s "b" (1) \\ *', "", "a\nb", "null", "5"])
def test_any_reason_can_be_asked_for(text):
    fields = fields_of(DeadLetterRow)
    asked = dead_letters._condition("reason", text)
    test = predicate_of(fields, View(Format.TABLE, where=asked))
    assert test is not None
    names = [field.name for field in fields]

    def row(reason):
        return [reason if name == "reason" else None for name in names]

    assert test(row(text))
    assert not test(row(f"{text}x"))
    assert not test(row(None))


@pytest.mark.slow
def test_marks_stay_while_letters_are_looked_at_and_counted_otherwise(rich):
    async def steps(console):
        await complete(console)
        await console.press("tab", "asterisk")
        assert "marked: 1" in console.text()
        await console.press("enter")
        await complete(console)
        assert "Dead letters > readers > 0" in console.text()
        same_rows(rich, console.app.panes[1])
        assert "origin" in console.text()
        await console.press("escape")
        await complete(console)
        assert len(console.app.panes[1].table.marked) == 1
        await console.press("b")
        await console.until("by tag")
        await complete(console)
        assert len(console.app.panes[1].table.marked) == 1

    drive(rich, steps, "dlq", "readers", size=(140, 40))


def test_the_attempts_of_a_retry_lead_to_its_records(rich):
    async def steps(console):
        await complete(console)
        await console.press("enter")
        await console.until("ATTEMPTS")
        await complete(console)
        attempts, record = console.app.panes
        same_rows(rich, attempts)
        await complete(console)
        same_rows(rich, record)

    drive(rich, steps, "retries", "readers", size=(140, 40))
