"""``lag compact``: plan, consent, and what is said of files that cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.kept_reports import DAY_MS, OLD, document, files, run as keep
from tests.support.old_history import extract_history

COMPACT = ("lag", "compact")


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two days of a month that is over."""
    for day in (0, 1):
        keep(tmp_path / "history", OLD + day * DAY_MS, {"a": 3, "b": 4})
    return tmp_path / "history"


@pytest.mark.slow
def test_it_shows_the_plan_and_joins_with_consent(history: Path) -> None:
    before = document(history), files(history)
    dry = run(*COMPACT, history, "-n", "-o", "jsonl")
    assert (dry.code, len(dry.lines)) == (0, 8)
    assert dry.err == "32 files become 8\ndry run: nothing was changed\n"
    refused = run(*COMPACT, history, "-o", "jsonl")
    assert (refused.code, refused.out) == (7, dry.out)
    assert (document(history), files(history)) == before
    done = run(*COMPACT, history, "-y", "-o", "json")
    assert done.code == 0, done.err
    rows = done.json()
    assert {(row["month"], row["files"], row["joined_files"]) for row in rows} == {
        ("2026-01", 4, 1)
    }
    assert {row["table"]: row["rows"] for row in rows}["groups"] == 8
    assert document(history) == before[0]
    assert len(files(history)) == 8
    assert sum(row["joined_bytes"] for row in rows) == sum(
        path.stat().st_size for path in history.rglob("*.parquet")
    )
    again = run(*COMPACT, history, "-y")
    assert (again.code, len(again.lines)) == (0, 1)  # the heads of the columns
    assert "there is nothing to change" in again.err


@pytest.mark.slow
def test_days_are_joined_alone(history: Path) -> None:
    done = run(
        *COMPACT, history, "--by", "day", "-y", "-o", "csv", "--columns", "files,joined_files"
    )
    assert set(done.lines[1:]) == {"4,2"}


@pytest.mark.slow
def test_a_file_that_cannot_be_read_stays_and_the_row_says_so(history: Path) -> None:
    (path,) = (history / "tags").rglob(f"part-{OLD}@a.parquet")
    path.write_bytes(b"PAR1")
    done = run(*COMPACT, history, "-y", "-o", "csv", "--columns", "table,applied")
    assert done.code == 8
    assert [line for line in done.lines if line.endswith("false")] == ["tags,false"]
    assert f"rmqctl: warning: {path} cannot be read: " in done.err
    assert path.exists()


@pytest.mark.slow
def test_where_each_row_was_done_in_part_a_part_was_done(history: Path) -> None:
    damaged = list(history.rglob(f"part-{OLD}@a.parquet"))
    for path in damaged:
        path.write_bytes(b"PAR1")
    done = run(*COMPACT, history, "-y", "-o", "csv", "--columns", "applied,rows")
    assert {line.split(",")[0] for line in done.lines[1:]} == {"false"}
    assert done.code == 8, done.err
    assert all(path.exists() for path in damaged)


@pytest.mark.slow
def test_a_folder_with_files_of_version_1_is_warned_of(tmp_path: Path) -> None:
    history = extract_history(tmp_path)
    root = tmp_path / "a" / "store"
    root.parent.mkdir()
    assert run("store", "init", root, "--small", "-q").code == 0
    words = ("lag", "report", "--engine", "local", "-S", root, "-o", "parquet", "--save", history)
    assert f"until 'rmqctl lag compact {history}' has joined them" in run(*words).err
    assert run(*COMPACT, history, "-y", "-q").code == 0
    assert "has joined them" not in run(*words).err


def test_a_folder_without_reports_is_not_found(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        done = run(*COMPACT, folder, "-y")
        assert (done.code, done.out) == (3, "")
        assert "holds no kept reports" in done.err


@pytest.mark.slow
def test_a_report_of_a_joined_moment_is_refused(history: Path, tmp_path: Path) -> None:
    root = tmp_path / "a" / "store"
    root.parent.mkdir()
    assert run("store", "init", root, "--small", "-q").code == 0
    words = ("lag", "report", "--engine", "local", "-S", root, "-o", "parquet", "--save", history)
    assert run(*COMPACT, history, "-y", "-q").code == 0
    done = run(*words, "--as-of", str(OLD))
    assert done.code == 7
    assert "'lag compact' has joined with others" in done.err
