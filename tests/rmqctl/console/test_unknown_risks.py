"""A group of which it is unknown whether it loses messages is a row of the console, too."""

import json

import pytest

from broker.embedded.broker import EmbeddedBroker
from rmqctl.console.looks import lag
from rmqctl.console.looks.look import Place, Source
from storage.clock import now_ms
from storage.readonly import StoreView
from tests.support import golden
from tests.support.cli import run


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Group g has read all of a topic; of h it is unknown in one queue, or in none."""
    root = golden.extract("basic-4.9", tmp_path)
    monkeypatch.setenv("RMQCTL_STORE", str(root))
    with StoreView.open(root) as view:
        ends = {q: view.queue_bounds(t, q)[1] for t, q in view.queues() if t == "GoldenEight"}

    def write(*, known):
        of_h = ends if known else {**ends, 0: 999}
        table = {"offsetTable": {"GoldenEight@g": ends, "GoldenEight@h": of_h}}
        (root / "config" / "consumerOffset.json").write_text(json.dumps(table))
        return root

    return write


def risks(root):
    with EmbeddedBroker.open(root, read_only=True) as broker:
        source = Source(broker, now_ms(), lambda sentence: None, {})
        return {row.group: row.at_risk for row in lag.RISKS.read(source, Place("overview"))}


def of_command():
    return {row["group"]: row["at_risk"] for row in run("lag", "risk", "-o", "json").json()}


@pytest.mark.parametrize(("known", "expected"), [(True, {}), (False, {"h": None})])
def test_progress_beyond_the_end_is_a_row(read, known, expected):
    root = read(known=known)
    assert risks(root) == of_command() == expected


def test_each_group_is_a_row_where_offsets_are_from_a_bak(read):
    file = read(known=True) / "config" / "consumerOffset.json"
    file.rename(file.with_name("consumerOffset.json.bak"))
    file.write_text('{"offsetTable":{"GoldenEi')
    assert risks(file.parent.parent) == of_command() == {"g": None, "h": None}
