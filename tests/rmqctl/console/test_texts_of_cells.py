"""The texts of cells: equal values of different types, and null that is unknown or no value."""

from typing import Annotated, NamedTuple

import pytest

from rmqctl.admin.audit.rows import ChangeRow
from rmqctl.admin.dead_letters.rows import DlqRow
from rmqctl.admin.lag.rows import LagQueueRow, LagRow, LagTopicRow
from rmqctl.admin.retries.rows import AgendaRow, RetryRow
from rmqctl.admin.topics.rows import TopicDescription, TopicQueueRow
from rmqctl.console.tables import RowTable, view_of
from rmqctl.output.view import Format, View
from tests.support.cli import run
from tests.support.console import drive

VIEW = View(Format.TABLE)


def shown(row_type, rows, *columns):
    """The cells of rows, by column."""
    table = RowTable(row_type, (row_type._fields[0],), view_of(VIEW._replace(columns=columns)))
    table.set_rows(rows)
    return [table.cells(place) for place in range(len(rows))]


def row_of(row_type, **values):
    """A row in which all other fields are null."""
    return row_type(**{**dict.fromkeys(row_type._fields), **values})


@pytest.mark.parametrize("order", [1, -1])
def test_equal_values_of_different_types_keep_their_texts(order):
    values = [1, True, 1.0, 0, False, 0.0, "1", None, 1, True, 1.0][::order]
    rows = [row_of(ChangeRow, new=value, old=value) for value in values]
    texts = {"1": "1", "True": "true", "1.0": "1.00", "0": "0", "False": "false", "0.0": "0.00"}
    expected = [texts.get(repr(value), "1" if value == "1" else "-") for value in values]
    assert shown(ChangeRow, rows, "old", "new") == [[text, text] for text in expected]


class _Rate(NamedTuple):
    name: str
    rate: Annotated[float | None, "a rate"]


def test_whole_and_broken_numbers_of_a_rate_keep_their_texts():
    rows = [_Rate("a", 1), _Rate("b", 1.0), _Rate("c", 0), _Rate("d", 0.0)]
    assert [row[1] for row in shown(_Rate, rows, "name", "rate")] == ["1", "1.00", "0", "0.00"]


@pytest.mark.slow
def test_settings_in_the_journal_are_those_of_the_command(store):
    for setting, value in (("fileReservedTime", "1"), ("autoCreateTopicEnable", "false")):
        assert run("broker", "config", "set", setting, value, "-y").code == 0
    assert run("broker", "config", "set", "autoCreateTopicEnable", "true", "-y").code == 0
    rows = run("audit", "list", "-o", "json").json()
    texts = [str(row["new"]).lower() for row in rows]
    assert sorted(texts) == ["1", "false", "true"]

    async def steps(console):
        await console.read()
        await console.type(":columns new")
        await console.press("enter")
        table = console.app.pane.table
        told = [str(row.new).lower() for row in table.shown]
        assert sorted(told) == sorted(texts)
        assert [table.cells(place) for place in range(3)] == [[text] for text in told]
        await console.press("slash", *"true", "enter")
        assert [row.new for row in table.shown] == [True]

    drive(store, steps, "audit")


@pytest.mark.parametrize(
    ("row", "columns", "texts"),
    [
        (
            row_of(AgendaRow, level=3, state="AHEAD"),
            ("messages", "next_timestamp", "last_timestamp", "overdue", "topic"),
            ["?", "?", "?", "?", "-"],
        ),
        (
            row_of(AgendaRow, level=3, state="AHEAD", messages=0, overdue=0),
            ("messages", "next_timestamp", "last_timestamp", "overdue"),
            ["0", "-", "-", "0"],
        ),
        (row_of(RetryRow), ("due_timestamp", "state", "tags", "reason"), ["?", "?", "-", "-"]),
        (row_of(ChangeRow), ("applied", "undone_by"), ["?", "-"]),
        (row_of(DlqRow, depth=1), ("oldest_timestamp", "newest_timestamp"), ["?", "?"]),
        (row_of(DlqRow, depth=0), ("oldest_timestamp", "newest_timestamp"), ["-", "-"]),
        *[
            (row_of(kind, **held), ("first_timestamp", "last_timestamp"), [text, text])
            for kind, member in ((TopicDescription, "messages"), (TopicQueueRow, "count"))
            for held, text in (({member: 1}, "?"), ({member: 0}, "-"))
        ],
        *[
            (row_of(kind, lag=lag), ("oldest_unread_age_ms", "drain_ms"), [text, "-"])
            for kind in (LagRow, LagQueueRow, LagTopicRow)
            for lag, text in ((3, "?"), (None, "?"), (0, "-"))
        ],
    ],
)
def test_null_is_a_question_mark_where_it_is_unknown(row, columns, texts):
    assert shown(type(row), [row], *columns) == [texts]
