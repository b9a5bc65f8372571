"""The steps that all changing commands share, on a real context with rows of the test's own."""

import io
import json
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from rmqctl.admin.changes import Change, Outcome
from rmqctl.cli.change_steps import run_change
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


class ByFunction(Change):
    """A change that a function makes."""

    function: Callable[[], Iterable[Done]]

    def apply(self, note):
        """Call the function."""
        return Outcome(self.function())


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

    def carry_out(
        self, *, plan=PLAN, results=(), given, confirmed=None, shows_refused=False, **more
    ):
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
            change = ByFunction(Step, plan, **options)
            change.function = apply
            return run_change(cli, change, confirmed=confirmed, shows_refused=shows_refused)


@pytest.fixture
def streams():
    return Streams()


RESULTS = (Done("a", True), Done("b", True))


def test_without_a_terminal_it_stays_with_the_plan_and_is_refused(streams):
    with pytest.raises(Refused, match="no terminal to ask on; add --yes to proceed"):
        streams.carry_out(given={"output": "plain"})
    assert not streams.done
    assert streams.out == "name\na\nb\n"


@pytest.mark.parametrize("no_input", [False, True])
def test_execute_is_accepted_and_is_no_consent(streams, no_input):
    given = {"output": "csv", "execute": True, **({"no_input": True} if no_input else {})}
    with pytest.raises(Refused, match="--yes"):
        (Streams("y\n") if no_input else streams).carry_out(given=given)
    assert not streams.done


def test_a_dry_run_changes_nothing_whatever_else_is_given(streams):
    given = {"output": "csv", "dry_run": True, "yes": True}
    assert not streams.carry_out(given=given)
    assert not streams.done
    assert streams.out == "name\r\na\r\nb\r\n"


FORMATS = ["table", "wide", "plain", "md", "json", "jsonl", "yaml", "csv", "tsv"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("answer", [None, "y\n"])
def test_standard_output_gets_the_result_alone(form, answer):
    streams = Streams(answer)
    given = {"output": form} if answer else {"output": form, "yes": True}
    assert streams.carry_out(given=given, results=RESULTS)
    assert streams.done
    assert streams.out.lower().count("applied") == (2 if form in {"json", "jsonl", "yaml"} else 1)
    if form == "json":
        assert json.loads(streams.out) == [row._asdict() for row in RESULTS]


@pytest.mark.parametrize("form", FORMATS)
def test_standard_output_gets_the_plan_alone_where_it_is_forbidden(streams, form):
    with pytest.raises(Refused, match="not today"):
        streams.carry_out(given={"output": form, "yes": True}, refusals=[Refused("not today")])
    assert not streams.done
    assert streams.out
    assert "applied" not in streams.out.lower()


@pytest.mark.parametrize("given", [{"dry_run": True}, {}])
def test_a_plan_that_is_refused_may_be_looked_at(streams, given):
    refused = {"refusals": [Refused("not today")], "shows_refused": True}
    assert not streams.carry_out(given={"output": "plain", **given}, **refused)
    assert streams.out == "name\na\nb\n"
    assert streams.err.getvalue().endswith("not today\n")
    with pytest.raises(Refused, match="not today"):
        streams.carry_out(given={"output": "plain", "yes": True}, **refused)
    assert not streams.done


def test_columns_of_the_result_are_no_error_of_the_plan(streams):
    given = {"output": "plain", "columns": "applied,name", "sort": "-applied"}
    streams.carry_out(given={**given, "dry_run": True})
    assert streams.out == "name\na\nb\n"
    asked = Streams("y\n")
    assert asked.carry_out(given=given, results=RESULTS), "the plan is shown without them"
    with pytest.raises(UsageProblem):
        streams.carry_out(given={**given, "columns": "done", "yes": True})


@pytest.mark.parametrize("where", ["applied = false", "name = 'a' and applied = false"])
def test_a_condition_on_the_result_is_no_error_of_the_plan(streams, where):
    given = {"output": "plain", "where": where}
    streams.carry_out(given={**given, "dry_run": True})
    assert streams.out == "name\na\nb\n"
    forbidden = Streams()
    with pytest.raises(Refused, match="add --yes to proceed"):
        forbidden.carry_out(given=given)
    assert forbidden.out == "name\na\nb\n"
    asked = Streams("y\n")
    assert asked.carry_out(given=given, results=RESULTS)
    assert asked.out == "name\tapplied\n"
    assert "not shown" in asked.err.getvalue(), "the rows of the result are all left out"


def test_a_condition_on_the_plan_holds_for_the_plan(streams):
    streams.carry_out(given={"output": "plain", "where": "name = 'b'", "dry_run": True})
    assert streams.out == "name\nb\n"
    with pytest.raises(UsageProblem, match="'done' is not a field"):
        streams.carry_out(given={"where": "done = true", "dry_run": True})


@pytest.mark.parametrize(("answer", "done"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks_after_the_plan(answer, done):
    streams = Streams(answer)
    given = {"output": "json"}
    if done:
        streams.carry_out(given=given, results=RESULTS)
    else:
        with pytest.raises(Refused, match="not confirmed; nothing was changed"):
            streams.carry_out(given=given)
        assert json.loads(streams.out) == [row._asdict() for row in PLAN]
    assert streams.done == done
    shown, question = streams.err.getvalue().split("Do it?")
    assert "NAME" in shown, "the plan, as stdout has only the result"
    store = Path(os.environ["HOME"]) / ".local/share/rmqctl/store"
    assert question.startswith(f" Store {store}. [y/N] "), "the question names the target"


@pytest.mark.parametrize(("answer", "done"), [("orders\n", True), ("y\n", False)])
@pytest.mark.parametrize("yes", [{}, {"yes": True}])
def test_what_can_not_be_brought_back_needs_its_name(answer, done, yes):
    streams = Streams(answer)
    if done:
        streams.carry_out(given={"output": "plain", **yes}, confirm_name="orders")
    else:
        with pytest.raises(Refused, match="'y' is not 'orders'"):
            streams.carry_out(given={"output": "plain", **yes}, confirm_name="orders")
    assert streams.done == done


def test_elsewhere_it_needs_the_name_and_yes(streams):
    yes = {"output": "plain", "yes": True}
    with pytest.raises(Refused, match="add --confirm orders --yes"):
        streams.carry_out(given=yes, confirm_name="orders")
    with pytest.raises(Refused, match="add --yes"):
        streams.carry_out(given={"output": "plain"}, confirm_name="orders", confirmed="orders")
    with pytest.raises(Refused, match="'order' is not 'orders'"):
        streams.carry_out(given=yes, confirm_name="orders", confirmed="order")
    assert not streams.done
    assert streams.carry_out(given=yes, confirm_name="orders", confirmed="orders")


def test_a_given_name_leaves_the_question():
    streams = Streams("y\n")
    given = {"output": "plain"}
    assert streams.carry_out(given=given, confirm_name="orders", confirmed="orders")
    assert "Do it?" in streams.err.getvalue()


def test_a_row_that_was_not_done_makes_it_partly_done(streams):
    given = {"output": "csv", "yes": True}
    with pytest.raises(PartlyDone, match="1 of 2"):
        streams.carry_out(given=given, results=(Done("a", True), Done("b", False)))
    assert streams.out == "name,applied\r\na,true\r\nb,false\r\n"


def test_what_was_done_before_a_failure_is_shown(streams):
    def results():
        yield Done("a", True)
        raise Refused("no more")

    given = {"output": "csv", "yes": True}
    with pytest.raises(Refused, match="no more"):
        streams.carry_out(given=given, results=results())
    assert streams.out == "name,applied\r\na,true\r\n"


def test_the_foot_stands_below_the_plan(streams):
    streams.carry_out(given={"output": "plain", "dry_run": True}, summary=["2 of them"])
    assert streams.err.getvalue().splitlines()[:2] == [store_sentence(), "2 of them"]


def test_an_empty_plan_is_nothing_to_ask_about(streams):
    assert not streams.carry_out(plan=(), given={"output": "csv", "yes": True})
    assert not streams.done
    assert "nothing to change" in streams.err.getvalue()


def test_rows_that_are_filtered_away_are_spoken_of(streams):
    streams.carry_out(given={"output": "plain", "limit": "1", "dry_run": True})
    assert "1 of 2 rows of the plan are not shown" in streams.err.getvalue()


class Told(NamedTuple):
    applied: bool


def test_a_column_that_the_result_lacks_is_refused_before_it_is_done(streams):
    given = {"output": "json", "columns": "name", "yes": True}
    with pytest.raises(UsageProblem, match="'name' is not a field"):
        streams.carry_out(given=given, result_type=Told)
    assert not streams.done


@pytest.mark.parametrize("form", ["json", "jsonl", "csv", "plain"])
def test_what_was_done_and_is_filtered_away_is_spoken_of_once(streams, form):
    given = {"output": form, "where": "name = b", "sort": "name", "yes": True}
    assert streams.carry_out(given=given, results=RESULTS)
    warning = "rmqctl: warning: 1 of 2 rows of the result are not shown, but belong to it\n"
    said = sorted(streams.err.getvalue().splitlines(keepends=True))
    assert said == [warning, f"{store_sentence()}\n"]


def test_nothing_is_said_where_all_rows_are_shown(streams):
    given = {"output": "json", "limit": "2", "yes": True}
    assert streams.carry_out(given=given, results=RESULTS)
    assert streams.err.getvalue() == f"{store_sentence()}\n"
