"""Lists leave out RocketMQ's own topics and groups; ``--all`` shows them."""

import pytest

from rmqctl.admin.topics.rows import TopicRow
from rmqctl.console.looks.look import Place
from rmqctl.console.panes import Pane
from rmqctl.console.screens.table import spec_of
from rmqctl.output.view import Format, View
from tests.support import golden
from tests.support.cli import run

LISTS = (
    *("topic list", "topic describe", "topic queues", "topic stats", "group list"),
    *("group describe", "offset list", "offset inspect", "lag show"),
)
OWN = ("%RETRY%", "%DLQ%", "SCHEDULE_TOPIC", "RMQ_SYS", "TOOLS_CONSUMER", "CID_RMQ_SYS")


@pytest.fixture(scope="module", params=["retry-dlq-4.9", "transaction-4.9"])
def root(request):
    return golden.store(request.param)


def is_own(row):
    # A dead letter topic may have readers of its own: that is their progress.
    topic = row.get("topic", "") if "group" not in row else ""
    return topic.startswith(OWN) or row.get("group", "").startswith(OWN)


@pytest.mark.parametrize("line", LISTS)
def test_lists_have_the_rows_of_users_and_all_has_all(root, line):
    usual = run(*line.split(), "-S", root, "-o", "json").json()
    every = run(*line.split(), "--all", "-S", root, "-o", "json").json()
    assert not [row for row in usual if is_own(row)]
    assert len(usual) <= len(every)
    result = run(*line.split(), "-S", root)
    hidden = len(every) - len(usual)
    sentence = f"{hidden} system row" if hidden else ""
    if line != "lag show" or hidden == 0:
        assert result.err.count("(--all shows all)") == bool(hidden)
    assert sentence in result.err
    assert "(--all" not in run(*line.split(), "--all", "-S", root).err
    assert "(--all" not in run(*line.split(), "-q", "-S", root).err
    assert "(--all" not in run(*line.split(), "-S", root, "-o", "jsonl").err


def test_a_condition_on_the_kind_decides_itself(root):
    rows = run("topic", "list", "-S", root, "-o", "json", "--where", "kind != normal").json()
    assert "SCHEDULE_TOPIC_XXXX" in {row["topic"] for row in rows}


DECIDES = {
    "kind != normal": True,
    "KIND != normal": True,
    "'kind' != normal": True,
    "messages >= 0 and not kind = normal": True,
    "topic !~ kind": False,
    "topic != 'a kind of'": False,
}


@pytest.mark.parametrize("where", DECIDES)
def test_only_the_field_decides_not_the_word_in_a_value(root, where):
    rows = run("topic", "list", "-S", root, "-o", "json", "--where", where).json()
    assert any(is_own(row) for row in rows) == DECIDES[where]
    (spec,) = (spec for spec in spec_of("topics").panes if spec.look.row_type is TopicRow)
    pane = Pane(spec, Place("topics"), View(Format.TABLE, now_ms=0))
    pane.set_where(where)
    assert pane.wants_everything() == DECIDES[where]


def test_a_wrong_condition_is_refused(root):
    refused = run("topic", "list", "-S", root, "--where", "kinds ~")
    assert (refused.code, refused.raw) == (2, b"")
    assert "'kinds' is not a field" in refused.err


def test_what_is_named_is_shown(root):
    rows = run("topic", "queues", "TBW102", "-S", root, "-o", "json").json()
    assert {row["topic"] for row in rows} == {"TBW102"}
    (row,) = [run("group", "describe", "TOOLS_CONSUMER", "-S", root, "-o", "json").json()]
    assert row["kind"] == "system"
