"""The steps that all changing commands share, on a real context with rows of the test's own."""

import io
import json
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from rmqctl.cli.change_steps import carry_out
from rmqctl.cli.context import Cli
from rmqctl.errors import PartlyDone, Refused, UsageProblem


def store_sentence() -> str:
    """The sentence about the store that a plan is for."""
    store = Path(os.environ["HOME"]) / ".local/share/rmqctl/store"
    return f"store {store} (the user's data folder)"


class Step(NamedTuple):
    name: str


class Done(NamedTuple):
    name: str
    applied: bool


PLAN = (Step("a"), Step("b"))


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Streams:
    """The three streams of a call; with an answer they are a terminal on which it is typed."""

    def __init__(self, answer=None):
        self.done = False
        self.raw = io.BytesIO()
        self.err = io.StringIO() if answer is None else Terminal()
        self.source = io.StringIO() if answer is None else Terminal(answer)

    @property
    def out(self):
        return self.raw.getvalue().decode()

    def carry_out(self, *, plan=PLAN, results=(), given, **more):
        def apply():
            self.done = True
            return results

        out = io.TextIOWrapper(self.raw, "utf-8", write_through=True)
        with ExitStack() as stack:
            stack.callback(out.detach)
            for name, stream in (("stdout", out), ("stderr", self.err), ("stdin", self.source)):
                stack.enter_context(patch.object(sys, name, stream))
            cli = Cli({})
            stack.callback(lambda: cli.out.flush())
            for name, value in given.items():
                cli.remember(name, value)
            options = {"question": "Do it?", "result_type": Done, **more}
            return carry_out(cli, Step, plan, apply, **options)


@pytest.fixture
def streams():
    return Streams()


RESULTS = (Done("a", True), Done("b", True))


def test_without_execute_only_the_plan_is_shown_and_how_to_go_on(streams):
    assert not streams.carry_out(given={"output": "plain"})
    assert not streams.done
    assert streams.out == "name\na\nb\n"
    assert "--execute" in streams.err.getvalue()


@pytest.mark.parametrize("by_default", [False, True])
def test_a_dry_run_changes_nothing_whatever_else_is_given(streams, by_default):
    given = {"output": "csv", "dry_run": True, "execute": True, "yes": True}
    assert not streams.carry_out(given=given, execute_by_default=by_default)
    assert not streams.done
    assert streams.out == "name\r\na\r\nb\r\n"


def test_people_get_the_plan_and_the_result(streams):
    given = {"output": "plain", "execute": True, "yes": True}
    assert streams.carry_out(given=given, results=RESULTS)
    assert streams.done
    assert streams.out == "name\na\nb\nname\tapplied\na\ttrue\nb\ttrue\n"


def test_columns_of_the_result_are_no_error_of_the_plan(streams):
    given = {"output": "plain", "columns": "applied,name", "sort": "-applied", "yes": True}
    assert streams.carry_out(given=given, results=RESULTS, execute_by_default=True)
    assert streams.out == "name\na\nb\napplied\tname\ntrue\ta\ntrue\tb\n"
    with pytest.raises(UsageProblem):
        streams.carry_out(given={**given, "columns": "done"})


@pytest.mark.parametrize("form", ["json", "jsonl", "yaml", "csv", "tsv"])
def test_programs_get_the_result_alone(streams, form):
    given = {"output": form, "yes": True}
    assert streams.carry_out(given=given, results=RESULTS, execute_by_default=True)
    assert streams.out.count("applied") in {1, 2}
    if form == "json":
        assert json.loads(streams.out) == [row._asdict() for row in RESULTS]


def test_without_a_terminal_and_yes_it_is_refused(streams):
    with pytest.raises(Refused, match="--yes"):
        streams.carry_out(given={"output": "plain", "execute": True})
    assert not streams.done
    assert streams.out.startswith("name\n"), "the plan is shown all the same"


@pytest.mark.parametrize(("answer", "done"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks_after_the_plan(answer, done):
    streams = Streams(answer)
    given = {"output": "json", "execute": True}
    if done:
        streams.carry_out(given=given, results=RESULTS)
    else:
        with pytest.raises(Refused):
            streams.carry_out(given=given)
    assert streams.done == done
    shown, question = streams.err.getvalue().split("Do it?")
    assert "NAME" in shown, "the plan, as stdout has only the result"
    store = Path(os.environ["HOME"]) / ".local/share/rmqctl/store"
    assert question.startswith(f" Store {store}. [y/N] "), "the question names the target"


@pytest.mark.parametrize(("answer", "done"), [("orders\n", True), ("y\n", False)])
def test_what_can_not_be_brought_back_needs_its_name(answer, done):
    streams = Streams(answer)
    if done:
        given = {"output": "plain", "execute": True, "yes": True}
        streams.carry_out(given=given, confirm_name="orders")
    else:
        with pytest.raises(Refused):
            streams.carry_out(given={"output": "plain", "execute": True}, confirm_name="orders")
    assert streams.done == done


def test_yes_does_not_stand_for_the_name_but_confirm_does(streams):
    given = {"output": "plain", "execute": True, "yes": True}
    with pytest.raises(Refused, match="--confirm orders"):
        streams.carry_out(given=given, confirm_name="orders")
    assert not streams.done
    assert streams.carry_out(given=given, confirm_name="orders", confirmed="orders")


def test_a_row_that_was_not_done_makes_it_partly_done(streams):
    given = {"output": "csv", "execute": True, "yes": True}
    with pytest.raises(PartlyDone, match="1 of 2"):
        streams.carry_out(given=given, results=(Done("a", True), Done("b", False)))
    assert streams.out == "name,applied\r\na,true\r\nb,false\r\n"


def test_what_was_done_before_a_failure_is_shown(streams):
    def results():
        yield Done("a", True)
        raise Refused("no more")

    given = {"output": "csv", "execute": True, "yes": True}
    with pytest.raises(Refused, match="no more"):
        streams.carry_out(given=given, results=results())
    assert streams.out == "name,applied\r\na,true\r\n"


def test_the_foot_stands_below_the_plan(streams):
    streams.carry_out(given={"output": "plain"}, plan_summary=["2 of them"])
    assert streams.err.getvalue().splitlines()[:2] == [store_sentence(), "2 of them"]


def test_an_empty_plan_is_nothing_to_ask_about(streams):
    assert not streams.carry_out(plan=(), given={"output": "csv", "execute": True})
    assert not streams.done
    assert "nothing to change" in streams.err.getvalue()


def test_rows_that_are_filtered_away_are_spoken_of(streams):
    streams.carry_out(given={"output": "plain", "limit": "1"})
    assert "1 of 2 rows of the plan are not shown" in streams.err.getvalue()


class Told(NamedTuple):
    applied: bool


def test_a_column_that_the_result_lacks_is_refused_before_it_is_done(streams):
    given = {"output": "json", "columns": "name", "yes": True}
    with pytest.raises(UsageProblem, match="'name' is not a field"):
        streams.carry_out(given=given, result_type=Told, execute_by_default=True)
    assert not streams.done


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "plain"])
def test_what_was_done_and_is_filtered_away_is_spoken_of_once(streams, form):
    given = {"output": form, "where": "name = b", "sort": "name", "yes": True}
    assert streams.carry_out(given=given, results=RESULTS, execute_by_default=True)
    part = "plan" if form == "plain" else "result"
    warning = f"rmqctl: warning: 1 of 2 rows of the {part} are not shown, but belong to it\n"
    said = sorted(streams.err.getvalue().splitlines(keepends=True))
    assert said == [warning, f"{store_sentence()}\n"]


def test_nothing_is_said_where_all_rows_are_shown(streams):
    given = {"output": "json", "limit": "2", "yes": True}
    assert streams.carry_out(given=given, results=RESULTS, execute_by_default=True)
    assert streams.err.getvalue() == f"{store_sentence()}\n"
