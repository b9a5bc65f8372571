"""Whatever a word of the command line is, the answer is a sentence with a documented exit code."""

from __future__ import annotations

import os
import random
import shutil
import time
from pathlib import Path

import pytest

from tests.support import golden
from tests.support.cli import Result, run
from tests.support.copies import age_files, copy_store
from tests.support.hostile_values import HostileCall, hostile_calls
from tests.support.rich_store import TOPIC, Rich, make_rich_store

KNOWN_CODES = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 124})
SHARDS = 18


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A store with something of everything, made once; a pristine copy lies beside it."""
    place = tmp_path_factory.mktemp("hostile")
    made = make_rich_store(place / "now" / "s", time.time_ns() // 1_000_000 - 600_000)
    exported = run("consume", TOPIC, "-e", "-o", "jsonl", "-S", made.root)
    (place / "now" / "exported.jsonl").write_bytes(exported.raw)
    snapshot = place / "now" / "snapshot"
    assert run("store", "snapshot", "--save", snapshot, "--copy", "-S", made.root).code == 0
    made.words["snapshot"] = str(snapshot)
    made.words["other"] = str(golden.extract("basic-4.9", place / "now"))
    made.words["new"] = str(place / "now" / "new")
    age_files(place / "now")
    copy_store(place / "now", place / "kept")
    return made


def what_is_wrong(hostile: HostileCall, rich: Rich) -> str | None:
    start = time.monotonic()
    try:
        result: Result = run(*hostile.words(rich.words), stdin=hostile.call.stdin)
    except BaseException as error:  # noqa: BLE001 - whatever escapes is what this looks for
        return f"{type(error).__name__} escaped: {error}"
    took = time.monotonic() - start
    for name, found in {
        "internal error": "internal error" in result.err or "Traceback" in result.err,
        "an escape sequence on standard error": "\x1b" in result.err,
        f"exit code {result.code}": result.code not in KNOWN_CODES,
        f"{len(result.err)} characters of error": len(result.err) > 4000,
        f"{took:.0f} s": took > 20,
    }.items():
        if found:
            return f"{name}: {result.err[:300]}"
    return None


def faults(calls: list[HostileCall], rich: Rich, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("RMQCTL_STORE", str(rich.root))
    place, home = rich.root.parent, Path.cwd()
    found = []
    for hostile in calls:
        wrong = what_is_wrong(hostile, rich)
        if wrong:
            found.append(f"{hostile}: {wrong}")
        if hostile.call.changes:
            os.chdir("/")
            shutil.rmtree(place)
            copy_store(place.parent / "kept", place)
            os.chdir(home)
    return found


@pytest.mark.slow
def test_some_hostile_calls_are_answered_in_a_sentence(rich, monkeypatch):
    calls = [hostile for hostile in hostile_calls() if not hostile.call.changes]
    chosen = random.Random(32).sample(calls, 15)
    assert faults(chosen, rich, monkeypatch) == []


@pytest.mark.long
@pytest.mark.parametrize("shard", range(SHARDS))
def test_every_hostile_call_is_answered_in_a_sentence(rich, monkeypatch, shard):
    chance = random.Random(32)
    calls = [h for h in hostile_calls() if not h.call.changes or chance.random() < 0.1]
    chance.shuffle(calls)
    assert faults(calls[shard::SHARDS], rich, monkeypatch) == []
