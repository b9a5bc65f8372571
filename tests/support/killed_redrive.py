"""Killing a redrive before and after each call that changes files, and going on with it.

Runs in a slim interpreter (tests.support.slim): it forks twice for each instant, and only its
children have threads.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from broker.embedded.broker import EmbeddedBroker
from broker.retry.redrive_properties import REDRIVE_DEAD
from rmqctl import app
from storage.configs.dlq_acks import NOTHING_HANDLED, DlqAcksFile
from storage.configs.redrive_runs import RedriveRuns
from storage.configs.topics import PERM_READ, PERM_WRITE
from storage.files.fs import FileSystem
from storage.format.message import Message
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.copies import copy_store
from tests.support.dead_letters import bury
from tests.support.samples import SMALL

LETTERS = 3
_CALLS = ("open", "set_length", "write", "sync", "sync_dir", "rename", "unlink")
_DO = ("--execute", "--yes", "--quiet")


def killed_at_every_call(
    folder: str, shard: int, shards: int, *, second: bool
) -> dict[str, object]:
    """Kill at the instants shard, shard + shards, ... until the redrive survives.

    It is then resumed; of another copy of the store, a new one is begun. ``second``: what is killed
    is the second attempt at a run; the first one could send nothing.
    """
    template = Path(folder) / f"template-{shard}"
    _must(partial(_make, template))
    if second:
        _must(partial(_try_in_vain, template))
    failures: list[str] = []
    for number in count(shard, shards):
        killed = ""
        for resumes in (True, False):
            root = Path(folder) / f"at-{number}-{resumes}"
            copy_store(template, root)
            killed = _in_child(partial(_redrive_until, root, number, second=second))
            assert killed in ("killed", ""), killed
            problem = _in_child(partial(_go_on, root, resumes=resumes))
            if problem:
                how = "resumed" if resumes else "anew"
                failures.append(f"killed at {number}, {how}: {problem}")
            shutil.rmtree(root)
        if not killed or len(failures) > 10:
            break
    return {"instants": number, "failures": failures}


def _must(work: Callable[[], str]) -> None:
    problem = _in_child(work)
    assert not problem, problem


def _make(root: Path) -> str:
    MessageStore.create(root, SMALL)
    bury(root, "g", [Message("t", b"%d" % n) for n in range(LETTERS)])
    return ""


def _try_in_vain(root: Path) -> str:
    for perm, expected in ((PERM_READ, 1), (PERM_READ | PERM_WRITE, 0)):
        with EmbeddedBroker.open(root, store_config=SMALL) as broker:
            topic = broker.topic("t")
            assert topic is not None
            broker.update_topic(topic._replace(perm=perm))
        if expected:
            code = app.main(["dlq", "redrive", "g", "--all", "-S", str(root), *_DO])
            assert code == expected, code
    return ""


def _redrive_until(root: Path, number: int, *, second: bool) -> str:
    """Redrive everything; die at an instant. What it gives says that it lived."""
    left = [number]

    def tick() -> None:
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for name in _CALLS:
        setattr(FileSystem, name, _watched(getattr(FileSystem, name), tick))
    which = ("--resume", "last") if second else ("--all",)
    code = app.main(["dlq", "redrive", "g", *which, "-S", str(root), *_receipts(root), *_DO])
    assert code == 0, code
    return ""


def _receipts(root: Path) -> tuple[str, str]:
    """The option that names the user's file of receipts."""
    return "--receipts", str(root.with_suffix(".jsonl"))


def _watched(call: Callable[..., Any], tick: Callable[[], None]) -> Callable[..., Any]:
    def watched(*args: Any, **kwargs: Any) -> Any:
        tick()
        result = call(*args, **kwargs)
        tick()
        return result

    return watched


def _go_on(root: Path, *, resumes: bool) -> str:
    """Bring the redrive to its end; gives what is wrong then."""
    runs = RedriveRuns(root)
    which = ["--all"]
    if resumes and any(runs.read(name) for name in runs.names()):
        which = ["--resume", "last"]
    again = ["dlq", "redrive", "g", *which, "-S", str(root), *_receipts(root), *_DO]
    code = app.main(again)
    # What a kill stored and did not publish is found by the writer only: it is planned and skipped.
    if code not in ((0, 1, 8) if which == ["--all"] else (0,)):
        return f"exit code {code}"
    with StoreView.open(root, SMALL) as view:
        sent: Counter[str | None] = Counter()
        for topic, queue_id in view.queues():
            low, high = view.queue_bounds(topic, queue_id)
            if topic == "t" and low < high:
                messages = view.get_message(topic, queue_id, low, 32).messages
                sent.update(m.get_property(REDRIVE_DEAD) for m in messages)
        del sent[None]
        if len(sent) != LETTERS or set(sent.values()) != {1}:
            return f"sent {sorted(sent.values())}"
        handled = DlqAcksFile(root, view).read("%DLQ%g").get(0, NOTHING_HANDLED)
        if handled.cursor != LETTERS:
            return f"handled {handled}"
    receipts = [
        receipt["queue_offset"]
        for name in runs.names()
        for receipt in (runs.read(name) or ({}, []))[1]
        if receipt.get("applied")
    ]
    if not resumes:
        return ""
    if sorted(receipts) != list(range(LETTERS)):
        return f"receipts {receipts}"
    lines = Path(_receipts(root)[1]).read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    if {row["queue_offset"] for row in rows if row["applied"]} != set(range(LETTERS)):
        return f"the user's receipts {rows}"
    return ""


def _in_child(work: Callable[[], str]) -> str:
    """Run in a child; gives what it gave, "killed", or what it raised."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            os.dup2(nowhere, 2)
            try:
                said = work()
            except BaseException:  # noqa: BLE001 - the parent reports it
                said = traceback.format_exc(limit=-4)
            os.write(writing, said.encode())
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode()
    _, status = os.waitpid(pid, 0)
    return "killed" if os.WIFSIGNALED(status) else text
