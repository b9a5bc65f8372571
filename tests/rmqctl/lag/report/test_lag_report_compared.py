"""``lag report --compare``: with the reports that a folder keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analytics.history.daily import days_of
from analytics.lag.selection import Choice
from tests.support.cli import run
from tests.support.kept_reports import DAY_MS, OLD, run as keep
from tests.support.page import held

LOCAL = ("lag", "report", "--engine", "local", "--tz", "UTC")
WORDS = ("-o", "csv", "--columns", "group,lag,lag_before,lag_change")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four days of two stores; on the third one nothing is known of a store."""
    folder = tmp_path_factory.mktemp("kept") / "history"
    keep(folder, OLD - 3_600_000, {"a": 900, "b": 900})  # not the last one of its day
    for day, lag in enumerate((5, 7, None, 11)):
        keep(folder, OLD + day * DAY_MS, {"a": lag, "b": 20})
    return folder


@pytest.mark.slow
def test_the_newest_one_of_a_folder(history: Path) -> None:
    done = run(*LOCAL, "--from-partials", history, "--compare", history, *WORDS)
    assert done.lines == ["group,lag,lag_before,lag_change", "billing,31,31,0", "shipping,31,31,0"]
    assert "compared with the kept report of 2026-01-04T06:00:00.000+00:00" in done.err


@pytest.mark.slow
def test_the_last_one_at_a_time(history: Path) -> None:
    words = (*LOCAL, "--from-partials", history, "--recorded", history)
    first = run(*words, "--compare", "2026-01-02T05:00Z", *WORDS)
    assert first.lines[1:] == ["billing,31,25,6", "shipping,31,25,6"]
    assert "compared with the kept report of 2026-01-01T06:00:00.000+00:00" in first.err
    partly = run(*words, "--compare", "2026-01-03T07:00Z", *WORDS)
    assert partly.lines[1:] == ["billing,31,,", "shipping,31,,"], "of a store nothing was known"


@pytest.mark.slow
def test_a_later_one_is_named(history: Path) -> None:
    words = (*LOCAL, "--from-partials", history, "--as-of", "2026-01-02T07:00Z")
    later = run(*words, "--compare", history, *WORDS)
    assert later.lines[1:] == ["billing,27,31,-4", "shipping,27,31,-4"]
    assert "warning: the report of --compare is later than this one" in later.err
    earlier = run(*words, "--compare", "2026-01-01T07:00Z", "--recorded", history, *WORDS)
    assert earlier.lines[1:] == ["billing,27,25,2", "shipping,27,25,2"]
    assert "is later" not in earlier.err


@pytest.mark.slow
def test_what_is_known_in_part_now_has_no_change(tmp_path: Path) -> None:
    keep(tmp_path / "before", OLD, {"a": 5, "b": 20})
    keep(tmp_path / "now", OLD + DAY_MS, {"a": None, "b": 50})
    words = (*LOCAL, "--from-partials", tmp_path / "now", "--compare", tmp_path / "before")
    assert run(*words, *WORDS).lines[1:] == ["billing,50,25,", "shipping,50,25,"]


@pytest.mark.slow
def test_a_saved_report_that_is_known_in_part_is_compared_as_unknown(tmp_path: Path) -> None:
    keep(tmp_path / "before", OLD, {"a": None, "b": 20})
    keep(tmp_path / "now", OLD + DAY_MS, {"a": 5, "b": 50})
    saved = tmp_path / "before.json"
    before = (*LOCAL, "--from-partials", tmp_path / "before", "-o", "json", "--save", saved)
    assert run(*before).code == 0
    words = (*LOCAL, "--from-partials", tmp_path / "now", "--compare", saved)
    assert run(*words, *WORDS).lines[1:] == ["billing,55,,", "shipping,55,,"]


def test_groups_that_are_gone_are_named_with_the_folder(history: Path, tmp_path: Path) -> None:
    root = tmp_path / "s"
    assert run("store", "init", root, "--small", "-q").code == 0
    done = run(*LOCAL, "-S", root, "--compare", history)
    assert f"group billing in orders is in {history}, but has no progress now" in done.err


def test_what_cannot_be_compared_with_is_a_sentence(history: Path, tmp_path: Path) -> None:
    words = (*LOCAL, "--from-partials", history)
    wrong: list[tuple[list[Any], int, str]] = [
        (["--compare", "-1d"], 2, "name it with --recorded DIR"),
        (["--recorded", history], 2, "--recorded needs --compare with a time"),
        (["--compare", "1990-01-01", "--recorded", history], 3, "as old as --compare"),
        (["--compare", "-1d", "--recorded", tmp_path / "x"], 2, "is no folder of kept reports"),
        (["--compare", "soon", "--recorded", history], 2, "--compare: "),
        (["--compare", tmp_path / "x"], 3, "there is no file"),
    ]
    for more, code, said in wrong:
        done = run(*words, *more)
        assert (done.code, done.out) == (code, ""), (more, done.err)
        assert said in done.err, more


def test_a_folder_that_cannot_be_read_whole_is_not_compared_with(tmp_path: Path) -> None:
    """A lag without one of its stores would look like a fall."""
    keep(tmp_path, OLD, {"a": 5, "b": 6})
    (path,) = (tmp_path / "queues").rglob("*@b.parquet")
    path.write_bytes(b"PAR1")
    done = run(*LOCAL, "--from-partials", tmp_path, "--compare", tmp_path)
    assert (done.code, done.out) == (1, "")
    assert f"--compare: {tmp_path}/stores/" in done.err


@pytest.mark.slow
@pytest.mark.feature(50, 59)
def test_the_page_has_the_days(history: Path) -> None:
    done = run(*LOCAL, "--from-partials", history, "-q", "-o", "html")
    days = held(done.out)["page"]["days"]
    found = [(row["stores"], row["lag"], row["unknown_queues"]) for row in days["days"]]
    assert found == [(2, 50, 0), (2, 54, 0), (2, 40, 2), (2, 62, 0)]
    assert [row["oldest_unread_age_ms"] for row in days["days"]] == [20 * 60_000] * 4
    assert {row["group"] for row in days["groups"]} == {"billing", "shipping"}
    words = (*LOCAL, "--from-partials", history, "-q", "-o", "html")
    earlier = run(*words, "-g", "billing", "--as-of", "2026-01-02T12:00Z")
    days = held(earlier.out)["page"]["days"]
    assert [row["lag"] for row in days["days"]] == [25, 27]
    compared = run(*LOCAL, "--from-partials", history, "-q", "-o", "html", "--compare", history)
    assert len(held(compared.out)["page"]["days"]["days"]) == 4


def test_a_day_of_which_nothing_is_known_is_unknown_and_not_0(tmp_path: Path) -> None:
    keep(tmp_path, OLD, {"a": None, "b": 0})
    (day,) = days_of([str(tmp_path)], Choice(), OLD).days
    assert (day["lag"], day["oldest_unread_age_ms"], day["unknown_queues"]) == (None, None, 2)
    keep(tmp_path, OLD + DAY_MS, {"a": 0, "b": 0})
    last = days_of([str(tmp_path)], Choice(), OLD + DAY_MS).days[-1]
    assert (last["lag"], last["unknown_queues"]) == (0, 0)


def test_a_page_without_a_folder_has_no_days(tmp_path: Path) -> None:
    root = tmp_path / "s"
    assert run("store", "init", root, "--small", "-q").code == 0
    done = run(*LOCAL, "-S", root, "-q", "-o", "html")
    assert held(done.out)["page"]["days"] is None
