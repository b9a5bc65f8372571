"""One test for each row of the crash table (docs/internals/append.md)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.readonly import StoreView
from tests.support.crash import fast_folder, inspect
from tests.support.last_instant import shared
from tests.support.oracle import Found
from tests.support.samples import START_MS, TINY, Sample, Ticking, open_store, prepared
from tests.support.slim import Slim

pytestmark = [pytest.mark.crash, pytest.mark.slow]

BEFORE = ["one", "two-0", "two-1", "two-2"]
FILLING = ["filling-0", "filling-1", "filling-2"]
LAST = ["last-0", "last-1", "last-2"]
SINGLES = [f"single-{i}" for i in range(6)]
IN_KEYS = [
    ("map", "/index/", 1),
    ("torn map", "/index/", 1),
    ("map", "/index/", 2),
    ("map", "/index/", 4),
    ("torn map", "/index/", 2),
    ("create", "new-index", 1),
    ("rename", "/index/", 1),
    ("word", "INDEX_FILE", 1),
    ("word", "KEYS_FROM", 1),
]
"""Instants while keys are put: kind of call, what it changes, which time."""


@pytest.fixture
def folder() -> Iterator[Path]:
    with fast_folder() as path:
        yield path


def test_killed_before_stage_1_nothing_has_happened(folder):
    died = die(folder, "word", "STAGE", value=1)
    assert died["stage"] == 0
    assert died["start"] == died["log_end"] < died["end"]
    assert log_bytes(died, died["log_end"], 4096) == bytes(4096 - died["log_end"])
    assert after_the_next_writer(died) == BEFORE


@pytest.mark.parametrize(
    ("kind", "what", "value"),
    [("map", "/commitlog/", None), ("torn map", "/commitlog/", None), ("word", "STAGE", 2)],
)
def test_killed_in_the_records_they_are_zeroed(folder, kind, what, value):
    died = die(folder, kind, what, value=value)
    assert died["stage"] == 1
    assert any(log_bytes(died, died["start"], died["end"])) == (kind != "map")
    open_store(Path(died["root"])).close()
    assert not any(log_bytes(died, died["start"], died["end"]))
    assert shared(Path(died["root"]))["stage"] == 0
    assert after_the_next_writer(died) == BEFORE


@pytest.mark.conformance("A15")
@pytest.mark.parametrize(
    ("kind", "what", "times"),
    [
        ("torn map", "/consumequeue/A/0", 1),
        ("map", "/consumequeue/A/1", 1),
    ],
)
def test_killed_in_units_they_are_written_again(folder, kind, what, times):
    died = die(folder, kind, what, times=times)
    assert died["stage"] == 2
    assert died["log_end"] == died["start"]
    assert after_the_next_writer(died) == BEFORE + LAST


@pytest.mark.conformance("A15")
@pytest.mark.parametrize(
    ("flush", "instant"),
    [
        # The short run has each instant once: of a batch, or of single records (flush).
        pytest.param(flush, instant, marks=() if flush == n % 2 else pytest.mark.long)
        for flush in (False, True)
        for n, instant in enumerate(IN_KEYS)
    ],
)
def test_killed_in_keys_they_are_put_again(folder, flush, instant):
    kind, what, times = instant
    died = die(folder, kind, what, times=times, flush=flush)
    assert died["stage"] == 3
    assert died["log_end"] == died["keys_to"] > died["keys_from"]
    there = BEFORE + (SINGLES if flush else LAST)
    assert keys_found(died, there) == there, "before anybody has put them"
    assert after_the_next_writer(died) == there


@pytest.mark.parametrize(
    ("kind", "what", "value"), [("word", "KEYS_TO", None), ("word", "STAGE", 3)]
)
def test_killed_before_stage_3_the_keys_are_still_pending(folder, kind, what, value):
    died = die(folder, kind, what, value=value, flush=True)
    assert died["stage"] == 0
    assert died["keys_from"] < died["log_end"]
    assert keys_found(died, BEFORE + SINGLES) == BEFORE + SINGLES
    assert after_the_next_writer(died) == BEFORE + SINGLES


def test_killed_after_the_keys_were_put_they_are_not_put_again(folder):
    died = die(folder, "word", "STAGE", value=0, flush=True)
    assert died["stage"] == 3
    assert died["keys_from"] == died["keys_to"] == died["log_end"]
    assert keys_found(died, BEFORE + SINGLES) == BEFORE + SINGLES
    assert after_the_next_writer(died) == BEFORE + SINGLES


@pytest.mark.parametrize(
    ("what", "times"),
    [("next offset", 1), ("next offset", 2), ("LAST_STORE_TIMESTAMP", 1), ("LOG_END", 1)],
)
def test_killed_between_next_offsets_and_log_end_all_are_set_again(folder, what, times):
    died = die(folder, "word", what, times=times)
    assert died["stage"] == 2
    assert after_the_next_writer(died) == BEFORE + LAST


def test_killed_after_log_end_it_is_finished_again_without_doubles(folder):
    died = die(folder, "word", "STAGE", value=0)
    assert died["stage"] == 2
    assert died["log_end"] == died["end"]
    assert after_the_next_writer(died) == BEFORE + LAST


def test_killed_before_the_acknowledgement_the_message_is_there_untold(folder):
    died = die(folder, "word", "HOLDER_PID", value=0)
    assert died["stage"] == 0
    assert died["log_end"] == died["end"]
    assert len(died["acknowledged"]) == 2
    assert after_the_next_writer(died) == BEFORE + LAST


@pytest.mark.parametrize(
    ("kind", "what", "stage", "there"),
    [
        ("torn map", "/commitlog/", 1, BEFORE),
        ("word", "LOG_END", 2, BEFORE + LAST),
        ("word", "KEYS_FROM", 3, BEFORE + LAST),
    ],
)
def test_killed_while_resolving_the_next_one_does_the_same_again(folder, kind, what, stage, there):
    died = die(folder, kind, what)
    assert died["stage"] == stage
    found = Slim("tests.support.last_instant:die_while_resolving", root=died["root"]).result()
    assert found["deaths"] > 5
    assert {0, stage} <= set(found["stages"]), "some died before stage 0 was said, some after"
    assert after_the_next_writer(died) == there


@pytest.mark.conformance("A10")
@pytest.mark.parametrize(
    ("kind", "what", "stage", "blank"),
    [
        ("map", "/commitlog/", 1, False),
        ("word", "LOG_END", 2, True),
        ("word", "STAGE", 2, True),
    ],
)
def test_killed_in_a_roll_the_blank_record_is_zeroed_or_counts(folder, kind, what, stage, blank):
    value = 0 if what == "STAGE" else None
    died = die(folder, kind, what, value=value, full=True)
    assert died["stage"] == stage
    assert died["end"] - died["start"] == 8
    assert any(log_bytes(died, died["start"], 4096)) == blank
    assert not (Path(died["root"]) / "commitlog" / f"{4096:020d}").exists()
    open_store(Path(died["root"])).close()
    assert shared(Path(died["root"]))["log_end"] == (4096 if blank else died["start"])
    assert after_the_next_writer(died) == [*BEFORE, *FILLING]


@pytest.mark.parametrize(
    ("kind", "what"),
    [("sync", "new-00000000000000004096"), ("rename", f"/commitlog/{4096:020d}")],
)
def test_killed_before_a_new_file_has_its_name_it_is_made_again(folder, kind, what):
    died = die(folder, kind, what, full=True)
    ours = Path(died["root"]) / "rmqctl"
    (left,) = ours.glob(f".new-{4096:020d}.*.tmp")
    assert not (Path(died["root"]) / "commitlog" / f"{4096:020d}").exists()
    assert after_the_next_writer(died, size=900) == [*BEFORE, *FILLING]
    assert (Path(died["root"]) / "commitlog" / f"{4096:020d}").exists()
    assert not list(ours.glob(".*.tmp")), f"{left.name} is left"


def test_killed_after_a_new_file_has_its_name_it_is_gone_or_used(folder):
    died = die(folder, "sync_dir", "/commitlog", full=True)
    assert (Path(died["root"]) / "commitlog" / f"{4096:020d}").exists()
    assert after_the_next_writer(died) == [*BEFORE, *FILLING]


def test_a_dead_batch_that_was_damaged_since_is_left_to_recovery(folder):
    died = die(folder, "word", "LOG_END")
    log = Path(died["root"]) / "commitlog" / f"{0:020d}"
    with log.open("r+b") as file:
        file.seek(died["start"] + 4)
        file.write(b"\0\0\0\0")
    with open_store(Path(died["root"]), clock=Ticking(START_MS + 1_000_000)) as store:
        assert store.recovery is not None
    found = inspect(Path(died["root"]), TINY)
    assert found.problems == []
    assert [record.id for record in found.records] == BEFORE


# -- helpers --------------------------------------------------------------------------------


def die(folder: Path, kind: str, what: str, **more: Any) -> dict[str, Any]:
    died: dict[str, Any] = Slim(
        "tests.support.last_instant:die_in_last_put",
        folder=str(folder),
        kind=kind,
        what=what,
        **more,
    ).result()
    assert died["was_killed"], "the last put has no such instant"
    return died


def log_bytes(died: dict[str, Any], start: int, end: int) -> bytes:
    data = (Path(died["root"]) / "commitlog" / f"{0:020d}").read_bytes()
    return data[start:end]


def keys_found(died: dict[str, Any], ids: list[str]) -> list[str]:
    """Which of these messages a reader finds by their ids, once each."""
    with StoreView.open(Path(died["root"])) as view:
        assert view.has_shared_state
        found = [view.find_unique("A", one) for one in ids]
    return [messages[0].msg_id for messages in found if len(messages) == 1]


def after_the_next_writer(died: dict[str, Any], size: int = 40) -> list[str]:
    """Ids of all messages, in order, after another writer has come and gone; all is well."""
    root = Path(died["root"])
    store = open_store(root, clock=Ticking(START_MS + 1_000_000))
    assert store.recovery is None, "the page of a killed writer is trusted"
    store.put(prepared([Sample("next", "A", size=size)]))
    store.close()
    assert inspect(root, TINY).problems == []
    ids = [record.id for record in Found(root, TINY).records]
    assert ids.pop() == "next"
    return ids
