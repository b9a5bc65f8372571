"""``store rebuild``: the plan, doing it, the journal, and what it refuses."""

from pathlib import Path

import pytest

from storage.format.names import CONSUMEQUEUE, INDEX
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Severity, fsck
from tests.support import golden
from tests.support.cli import Result, run
from tests.support.java_lock import java_lock


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return golden.extract("hole-4.9", tmp_path)


def rebuild(root: Path, *args: str) -> Result:
    return run("-S", root, "store", "rebuild", *args)


def files(root: Path, part: str) -> dict[str, bytes]:
    folder = root / part
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_dry_run_shows_what_is_wrong_and_changes_nothing(root: Path) -> None:
    before = files(root, ".")
    result = rebuild(root, "queue", "-o", "json")
    (row,) = result.json()
    assert (row["topic"], row["queue_id"]) == ("GoldenTiny", 0)
    assert row["files"] == ["00000000000000000800"]
    assert (row["units_before"], row["units_after"], row["changed"]) == (280, 280, 40)
    assert row["log_from"] < row["log_to"]
    assert "8 queues match the log" in result.err
    assert "add --yes" in result.err
    assert files(root, ".") == before


@pytest.mark.feature(113)
@pytest.mark.slow
def test_executing_makes_it_what_the_broker_wrote_and_says_so_in_the_journal(root: Path) -> None:
    result = rebuild(root, "queue", "--execute", "--yes", "-o", "json")
    assert (result.code, result.json()[0]["applied"]) == (0, True)
    assert files(root, CONSUMEQUEUE) == files(golden.store("small-files-4.9"), CONSUMEQUEUE)
    with StoreView.open(root) as view:
        assert all(f.severity is Severity.INFO for f in fsck(view).findings)
    (entry,) = run("-S", root, "audit", "list", "-o", "json").json()
    assert (entry["command"], entry["topic"]) == ("store rebuild", "GoldenTiny")
    again = rebuild(root, "queue", "--execute", "--yes", "-o", "json")
    assert (again.code, again.json()) == (0, [])
    assert not (root / "abort").exists()


@pytest.mark.slow
def test_only_the_named_queues_are_touched(root: Path) -> None:
    folders = [root / CONSUMEQUEUE / "GoldenSmall" / name for name in ("0", "1")]
    before = files(root, CONSUMEQUEUE)
    for folder in folders:
        for path in folder.iterdir():
            path.write_bytes(bytes(len(path.read_bytes())))
    rows = rebuild(
        root, "queue", "-t", "GoldenSmall", "-Q", "1", "--execute", "--yes", "-o", "json"
    )
    assert [row["queue_id"] for row in rows.json()] == [1]
    after = files(root, CONSUMEQUEUE)
    assert {name for name in before if after[name] != before[name]} == {
        str(path.relative_to(root / CONSUMEQUEUE)) for path in folders[0].iterdir()
    }


@pytest.mark.slow
@pytest.mark.feature(114)
def test_the_index_comes_back(root: Path) -> None:
    before = files(root, INDEX)
    newest = max((root / INDEX).iterdir())
    newest.unlink()
    result = rebuild(root, "index", "--execute", "--yes", "-o", "json")
    (row,) = result.json()
    assert (row["part"], row["units_before"], row["topic"]) == ("index", None, None)
    after = files(root, INDEX)
    assert [after[name] for name in sorted(after)] == [before[name] for name in sorted(before)]


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("tables",), 2, "neither queue nor index"),
        (("index", "-t", "GoldenTiny"), 2, "omit --topic"),
        (("queue", "-Q", "1"), 2, "--topic"),
        (("queue", "-t", "GoldenTiny", "-Q", "x"), 2, "list of queues"),
        (("queue", "-t", "nobody"), 3, "neither queues nor messages"),
        (("queue", "-t", "GoldenTiny", "-Q", "9"), 3, "no queue 9"),
        (("queue", "--execute"), 7, "--yes"),
    ],
)
def test_what_it_refuses(root: Path, args: tuple[str, ...], code: int, words: str) -> None:
    before = files(root, ".")
    result = rebuild(root, *args)
    assert (result.code, words in result.err) == (code, True), result.err
    assert files(root, ".") == before


@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
@pytest.mark.parametrize("args", [(), ("--execute", "--yes")], ids=["plan", "done"])
def test_queues_are_not_made_from_a_log_whose_last_files_are_missing(
    root: Path, args: tuple[str, ...]
) -> None:
    """Their units tell what is missing: without them the next writer takes the log for a whole
    one, and gives new messages the offsets of lost ones."""
    max((root / "commitlog").iterdir()).unlink()
    before = files(root, CONSUMEQUEUE)
    result = rebuild(root, "queue", *args)
    assert (result.code, "rmqctl store repair" in result.err) == (4, True), result.err
    assert files(root, CONSUMEQUEUE) == before


@pytest.mark.slow
def test_it_does_nothing_beside_another_writer_but_shows_what_it_would(root: Path) -> None:
    with MessageStore.open(root):
        assert rebuild(root, "queue", "--execute", "--yes").code == 7
        assert rebuild(root, "queue", "-t", "GoldenFull", "-o", "json").json() == []


@pytest.mark.slow
@pytest.mark.feature(114)
def test_beside_a_writer_a_lost_index_is_shown_and_only_the_newest_file_left_out(
    root: Path,
) -> None:
    lines = run("-S", root, "store", "rebuild", "index").err
    with MessageStore.open(root):
        beside = rebuild(root, "index")
        names = sorted(path.name for path in (root / INDEX).iterdir())
        for path in (root / INDEX).iterdir():
            path.unlink()
        lost = rebuild(root, "index", "-o", "json")
    assert f"{len(names)} index files match the log" in lines
    assert "left out" not in lines
    assert f"{len(names) - 1} index files match the log" in beside.err
    assert f"index file {names[-1]} is being written and is skipped" in beside.err
    assert [row["units_before"] for row in lost.json()] == [None]
    assert "add --yes" in lost.err
    assert "left out" not in lost.err


def test_it_does_nothing_beside_a_java_broker(root: Path) -> None:
    with java_lock(root):
        assert rebuild(root, "queue", "--execute", "--yes").code == 5
