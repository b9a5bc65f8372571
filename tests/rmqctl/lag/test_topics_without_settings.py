"""Topics without settings that have queues are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Topics T and Fresh have messages, and nothing is set up; a group reads one of T's queues."""
    made = HandMade(TINY)
    for number in range(12):
        made.put("T", number % 3)
    made.put("Fresh", 0)
    made.put("SCHEDULE_TOPIC_XXXX", 0)
    made.put("%LMQ%light", 0)
    root = made.write(tmp_path)
    (root / "config").mkdir()
    table = {"T@g": {"0": 1}, "Gone@h": {"0": 7}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return root


def report(root: Path, *options: str) -> Any:
    return run("lag", "report", "--engine", "local", "-S", root, *options, "-o", "json")


def test_a_report_has_all_their_queues(bare: Path) -> None:
    done = report(bare, "g")
    [row] = done.json()["groups"]
    [shown] = run("lag", "show", "g", "-S", bare, "-o", "json").json()
    for name in ("queues", "lag", "unknown_queues"):
        assert row[name] == shown[name], name
    assert (row["queues"], row["lag"], row["unknown_queues"]) == (3, 3, 2)
    assert "does not exist" not in done.err
    assert report(bare, "-t", "Fresh").code == 0  # there, and read by no group
    assert report(bare, "-t", "Never").code == 3


def test_a_report_names_what_does_not_exist_of_those_asked_for(bare: Path) -> None:
    assert "progress in Gone, which does not exist" in report(bare).err
    assert "progress in Gone, which does not exist" in report(bare, "h").err
    assert "progress in Gone, which does not exist" in report(bare, "-t", "Gone").err
    assert "group h" not in report(bare, "g").err


def test_orphans_name_the_topics_that_are_not_set_up(bare: Path) -> None:
    rows = run("offset", "orphans", "-S", bare, "-o", "json").json()
    assert [(row["topic"], row["problem"]) for row in rows] == [
        ("Gone", "TOPIC_GONE"),
        ("Fresh", "NO_TOPIC"),
        ("T", "NO_TOPIC"),
    ]
