"""Measurements are reported unchanged: goals, tables, the page and its picture."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.contest import take_turns
from benchmarks.document import Finding, Session, command_shown, write_document
from benchmarks.goals import BY_KEY, TARGETS, row
from benchmarks.machine import shape
from benchmarks.page_update import PageError, update_document
from benchmarks.plot import goals_plot
from benchmarks.report import Goal, Row, table


def session(*rows: Row) -> Session:
    return Session(
        findings={"single": Finding(rows, 1.0, "One message a call.")},
        missing={"batches vs Redis": "redis is not installed\nat all"},
        shape={"processors": "2"},
        versions={"Python": "3.11"},
        command="python -m benchmarks",
        rounds=5,
        quick=False,
        ended=0.0,
    )


@pytest.mark.slow
def test_each_contestant_runs_once_a_round_and_first_in_turn() -> None:
    order: list[str] = []

    def contestant(name: str, seconds: float) -> float:
        order.append(name)
        return seconds

    times = take_turns(
        {"a": lambda: contestant("a", 2.0), "b": lambda: contestant("b", 1.0)}, rounds=2
    )
    assert order == ["b", "a", "a", "b", "b", "a"]  # the first two warm up
    assert times.of == {"a": [2.0, 2.0], "b": [1.0, 1.0]}
    del order[:]
    assert take_turns({"a": lambda: contestant("a", 1.0)}, 2, warming=3).of == {"a": [1.0, 1.0]}
    assert len(order) == 5
    assert times.ratios("a", "b") == [2.0, 2.0]


@pytest.mark.parametrize(
    ("goal", "ratio", "met", "stretch", "distance"),
    [
        (Goal(2, stretch=4), 3.0, True, False, 1.5),
        (Goal(2, stretch=4), 4.0, True, True, 2.0),
        (Goal(2), 1.0, False, False, 0.5),
        (Goal(2, at_most=True, stretch=1), 1.0, True, True, 2.0),
        (Goal(2, at_most=True), 4.0, False, False, 0.5),
    ],
)
def test_a_goal_is_met_from_its_side(
    goal: Goal, ratio: float, met: bool, stretch: bool, distance: float
) -> None:
    assert goal.met_by(ratio) is met
    assert goal.stretch_met_by(ratio) is stretch
    assert goal.distance(ratio) == distance


def test_the_median_of_the_rounds_is_judged() -> None:
    judged = row("exclusive/lmdb", ("1 us", "2 us"), [9.0, 1.0, 1.1], detail="1 KiB")
    assert judged.ratio == 1.1
    assert judged.met is False
    assert "1.10 x (1.00..9.00) >= 1.2 MISSED" in " ".join(table([judged]).split())


def test_each_goal_is_stated_once() -> None:
    assert len(BY_KEY) == len(TARGETS)
    assert len({target.what for target in TARGETS}) == len(TARGETS)


def test_the_page_says_what_is_met_missed_and_not_measured(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    met = row("exclusive/lmdb", ("1 us", "2 us"), [2.0])
    missed = row("shared/lmdb", ("1 us", "2 us"), [0.5])
    further = [Row("first frame", "1 s", "", [ratio], Goal(2, at_most=True)) for ratio in (1, 3, 4)]
    write_document(page, session(met, missed, *further))
    text = page.read_text()
    assert "| single append, exclusive, vs lmdb | 2.00 x (2.00..2.00) | >= 1.2 | yes |" in text
    assert (
        "| single append, shared, vs lmdb | 0.50 x (0.50..0.50) | >= 0.8 (1.2) | MISSED |" in text
    )
    assert "| single append, shared, vs Redis | not measured |" in text
    assert f"1 of these {len(TARGETS)} are met, 2 were measured." in text
    assert "1 of 3 further goals in the tables below are met." in text
    assert "* batches vs Redis: redis is not installed" in text
    assert (page.parent / "pictures" / "benchmarks.svg").is_file()
    for line in text.splitlines():
        assert len(line) <= 100 or line.startswith("|")


def test_a_table_of_the_page_is_measured_anew_and_says_when(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    missed = row("shared/lmdb", ("1 us", "2 us"), [0.5])
    further = [Row("first | frame", "1 s", "", [ratio], Goal(2, at_most=True)) for ratio in (1, 3)]
    old = session(missed, further[0])
    findings = {"console": Finding([further[1]], 9.0, "The console."), **old.findings}
    write_document(page, replace(old, findings=findings))
    before = page.read_text()
    assert "1 of 2 further goals in the tables below are met." in before
    better = Row("first | frame", "1 s", "", [1.5], Goal(2, at_most=True))
    findings = {"console": Finding([better], 7.0, "The console.")}
    later = replace(old, findings=findings, missing={})
    update_document(page, later)
    text = page.read_text()
    assert "2 of 2 further goals in the tables below are met." in text
    assert "--only console` (7 s), measured on 1970-01-01 00:00 UTC" in text
    assert "were measured later" in text
    changed = set(text.splitlines()) ^ set(before.splitlines())
    assert len(changed) == 8, changed
    update_document(page, later)
    assert page.read_text() == text
    with pytest.raises(PageError, match="first table"):
        update_document(page, old)
    with pytest.raises(PageError, match="no table of carve"):
        update_document(page, replace(later, findings={"carve": Finding([better], 7.0, "")}))
    assert page.read_text() == text


@pytest.mark.parametrize(
    ("rows", "missing", "why"),
    [
        ([], {"frames vs less": "less is not installed\nat all"}, "frames vs less: less is not in"),
        ([1.5], {"frames vs less": "less is not installed"}, "frames vs less: less is not in"),
        (None, {"console": "it broke"}, "console: it broke"),
        ([], {}, "console has no row"),
        (None, {}, "nothing was measured"),
    ],
)
def test_a_page_stays_where_a_part_of_its_table_was_not_measured(
    tmp_path: Path, rows: list[float] | None, missing: dict[str, str], why: str
) -> None:
    page = tmp_path / "benchmarks.md"
    old = session(Row("first frame", "1 s", "", [1.5], Goal(2, at_most=True)))
    first = replace(old.findings["single"], about="The console.")
    write_document(page, replace(old, findings={"console": first}))
    before = page.read_text()
    found = [Row("first frame", "1 s", "", [ratio]) for ratio in rows or ()]
    findings = {} if rows is None else {"console": Finding(found, 7.0, "The console.")}
    with pytest.raises(PageError, match=why) as refused:
        update_document(page, replace(old, findings=findings, missing=missing))
    assert "at all" not in str(refused.value)
    assert page.read_text() == before


def test_the_page_names_the_system_without_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.18.44-private-v7")
    system = shape(tmp_path)["system"]
    assert "6.18.44, " in system
    assert "private" not in system


def test_the_picture_has_a_bar_on_the_right_side_of_the_line() -> None:
    better = row("exclusive/lmdb", ("", ""), [4.8])
    worse = row("durable/device", ("", ""), [3.2])
    text = goals_plot([better, worse])
    root = ElementTree.fromstring(text)
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if one.get("x")]
    line = re.search(r'<path d="M(\d+) [^"]*" stroke="#333"/>', text)
    assert line is not None
    goal = int(line.group(1))
    assert int(bars[0].attrib["x"]) == goal
    assert int(bars[1].attrib["x"]) + int(bars[1].attrib["width"]) == goal


def test_the_command_on_the_page_names_no_folder_of_this_machine() -> None:
    given = [
        "--only",
        "pull",
        "--dir",
        "/fast",
        "--json=/there",
        "--document",
        "docs/benchmarks.md",
    ]
    shown = "python -m benchmarks --only pull --document docs/benchmarks.md"
    assert command_shown(given) == shown
