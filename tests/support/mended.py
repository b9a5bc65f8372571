"""A golden store, damaged and repaired, and everything that must be true of it then."""

from __future__ import annotations

import shutil
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from storage.coordination.exclusive import alone
from storage.files.fs import FileSystem
from storage.readonly import StoreView
from storage.tools.fsck import Finding, Severity, fsck
from storage.tools.fsck.findings import AS_SENT
from storage.tools.repair.execution import carry_out_plan
from storage.tools.repair.plan import make_plan
from storage.tools.repair.steps import Action, Plan
from tests.support.damages import Damaged, damage

Key = tuple[str, int, int]
"""Topic, queue id, queue offset."""


class Held(NamedTuple):
    """What a reader gets at one offset of a queue."""

    commitlog_offset: int
    body: bytes
    properties: bytes


def held(root: Path) -> dict[Key, Held]:
    """Everything that readers of all queues get."""
    found: dict[Key, Held] = {}
    with StoreView.open(root) as view:
        for topic, queue_id in view.queues():
            at, end = view.queue_bounds(topic, queue_id)
            while at < end:
                result = view.get_message(topic, queue_id, at, 1024)
                for message in result.messages:
                    place = (topic, queue_id, message.queue_offset)
                    found[place] = Held(
                        message.commitlog_offset, message.stored_body, message.property_bytes
                    )
                if result.next_begin_offset <= at:
                    break
                at = result.next_begin_offset
    return found


@cache
def _held_before(store: Path) -> dict[Key, Held]:
    return held(store)


def copy_of(store: Path, into: Path) -> Path:
    """A copy with its holes and times."""
    root = into / store.name
    shutil.rmtree(root, ignore_errors=True)
    into.mkdir(exist_ok=True)
    subprocess.run(["cp", "-a", "--sparse=always", store, root], check=True)
    return root


def repair(root: Path, fs: FileSystem | None = None) -> Plan:
    """Plan and carry out everything."""
    now_ms = time.time_ns() // 1_000_000
    with StoreView.open(root) as view:
        plan = make_plan(view, fsck(view), now_ms)
        config = view.config
    with alone(root):
        done = list(carry_out_plan(root, config, plan, now_ms, fs))
    assert done == plan.executable or sorted(done) == sorted(plan.executable)
    return plan


def wrong(root: Path) -> list[Finding]:
    """Errors and warnings of a check, but for what producers sent: nothing mends that."""
    with StoreView.open(root) as view:
        found = fsck(view).findings
    return [f for f in found if f.severity is not Severity.INFO and f.code not in AS_SENT]


def damage_and_repair(store: Path, kind: str, into: Path) -> tuple[Path, Damaged, list[str]]:
    """Do one kind of damage to a copy, repair it; gives the copy, and all that is wrong then.

    NotHere if the store has nothing for that kind.
    """
    before = _held_before(store)
    root = copy_of(store, into)
    done = damage(root, kind)
    damaged = held(root)
    plan = repair(root)
    problems = [f"left: {finding}" for finding in wrong(root) if not _is_left(plan, finding)]
    after = held(root)
    problems += [
        f"was readable: {place}"
        for place, message in damaged.items()
        if place not in after and before.get(place) == message
    ]
    for place, message in before.items():
        found = after.get(place)
        if message.commitlog_offset in done.lost or message == found:
            continue
        mended = "properties" in kind or _has_damaged_properties(message)
        if found is None or not mended or found.body != message.body:
            problems.append(f"whole, but not handed out as it was: {place} {found}")
    return root, done, problems


def _has_damaged_properties(message: Held) -> bool:
    """Whether the golden store itself has a message whose properties a crash has cut off."""
    return message.properties.endswith(b"\0")


def _is_left(plan: Plan, finding: Finding) -> bool:
    """Whether the plan says that repair does not mend it."""
    return any(
        step.action is Action.NONE and step.file == finding.file and step.why == finding.code
        for step in plan.steps
    )
