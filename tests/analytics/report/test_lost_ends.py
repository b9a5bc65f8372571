"""A log that lost its end, or its last files, is named in reports of each engine."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from analytics.datasource.plan.kept_logs import kept_logs
from analytics.datasource.plan.log_now import LogLooks
from analytics.datasource.query.errors import DamagedError
from analytics.datasource.query.options import read_options
from analytics.engines import Engine
from analytics.engines.local import LocalEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from storage.errors import IncompleteStoreWarning
from tests.analytics.report.test_lag_report import write_offsets
from tests.support.cli import run
from tests.support.hand_made import START_MS, TINY, HandMade
from tests.support.spark_source import Stream, read_table

T = TypeVar("T")
R = TypeVar("R")
NOW = START_MS + 10_000_000


class OtherMachine:
    """Warnings of Python stay where the work is done, as on another machine."""

    name = "elsewhere"
    cores = 1
    is_here = False

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        progress: Callable[[int], None] | None = None,
    ) -> list[R]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return LocalEngine().map(function, items, progress)


def store(root: Path, lost: str) -> StoreRef:
    """Thirty messages, of which a group has read two."""
    made = HandMade(TINY.with_(mapped_file_size_consume_queue=2000))
    for _ in range(30):
        made.put("T", 0)
    root.mkdir()
    made.write(root)
    write_offsets(root, {("g", "T", 0): 2, ("g", "U", 0): 0})
    *_, before, last = sorted((root / "commitlog").iterdir())
    if lost == "end":
        at = made.messages[-1].commitlog_offset - int(last.name)
        last.write_bytes(last.read_bytes()[: at + 20])
    elif lost == "files":
        before.unlink()
        last.unlink()
    return StoreRef("b", str(root))


SAID = {"end": "the queues know of 1 message after the log", "files": "the queues know of messages"}
LEFT = {"end": 29, "files": 10}


@pytest.mark.parametrize("lost", SAID)
@pytest.mark.parametrize("engine", [LocalEngine(), OtherMachine()], ids=["here", "elsewhere"])
def test_each_engine_says_so_once_and_so_does_a_kept_report(
    tmp_path: Path, lost: str, engine: Engine, recwarn: pytest.WarningsRecorder
) -> None:
    warnings.simplefilter("always")
    ref = store(tmp_path / "s", lost)
    made = lag_report(engine, [ref], NOW, Choice())
    assert not recwarn.list
    check(made, lost)
    keep(made.shares, NOW, tmp_path / "kept", [("g", "T")], None)
    for choice in (Choice(), Choice(["g"], ["T"])):
        check(gathered_report(engine, find_kept([str(tmp_path / "kept")], NOW), choice, NOW), lost)


def check(made: MadeReport, lost: str) -> None:
    assert made.is_damaged
    assert sum(SAID[lost] in text for text in made.report.warnings) == 1


def test_a_whole_store_is_not_called_damaged(tmp_path: Path) -> None:
    made = lag_report(LocalEngine(), [store(tmp_path / "s", "")], NOW, Choice())
    assert not made.is_damaged
    assert not any("incomplete" in text for text in made.report.warnings)


def test_the_command_ends_with_8(tmp_path: Path) -> None:
    root = store(tmp_path / "s", "end").path
    done = run("lag", "report", "--engine", "local", "-S", root)
    assert done.code == 8
    assert done.err.count(SAID["end"]) == 1


@pytest.mark.parametrize("copies", ["once", "all"])
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "died"])
@pytest.mark.parametrize("lost", SAID)
def test_the_data_source_fails_or_reads_what_is_before_it(
    tmp_path: Path, lost: str, is_closed: bool, copies: str, caplog: pytest.LogCaptureFixture
) -> None:
    root = store(tmp_path / "s", lost).path
    if is_closed:
        Path(root, "abort").unlink(missing_ok=True)
    else:
        Path(root, "abort").touch()
    with pytest.raises(DamagedError, match=SAID[lost]):
        read_table("messages", root, copies=copies)
    with pytest.raises(DamagedError, match=SAID[lost]):
        Stream(root)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteStoreWarning)  # of each task that opens the store
        assert len(read_table("messages", root, onDamage="skip")) == LEFT[lost]
    assert SAID[lost] in caplog.text
    caplog.clear()
    looks, options = LogLooks(), read_options({"path": root, "table": "consumequeue"})
    assert [kept_logs(options, looks)[0].lost is None for _ in range(3)] == [False] * 3
    assert caplog.text.count(SAID[lost]) == 1
