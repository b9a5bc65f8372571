"""Six consumers in two groups, three producers, SIGKILL for any of them at any moment.

What the run does is in tests.support.chaos, what is checked in tests.support.chaos_verdict.
"""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.chaos import GROUPS, Chaos
from tests.support.chaos_verdict import KILLED, judge
from tests.support.cli import call

logger = logging.getLogger(__name__)


def survive(
    folder: Path, seconds: float, messages: int, pause_s: tuple[float, float], alone_s: float
) -> None:
    chaos = Chaos(folder, seed=4711, per_second=messages / seconds)
    chaos.run(seconds, messages, pause_s)
    verdict = judge(chaos.root, chaos.told, chaos.kills)
    logger.info("%d kills, %d acknowledged\n%s", len(chaos.kills), chaos.told.sent, verdict)
    assert verdict.problems == []
    assert chaos.told.sent >= messages
    assert all(verdict.consumed[group] >= messages for group in GROUPS)
    assert verdict.consumed[f"{GROUPS[0]}: retries"] > messages / 100
    assert any(kill.group == group for kill in chaos.kills for group in GROUPS)
    assert f"{GROUPS[0]}, {KILLED}" in verdict.alone_s
    assert f"{GROUPS[1]}, {KILLED}" in verdict.alone_s
    assert verdict.longest_alone_s < alone_s
    checked = call("store", "fsck", "-S", chaos.root, "-o", "json")
    assert (checked.code, checked.json()["findings"]) == (0, [])


@pytest.mark.crash
@pytest.mark.long
@pytest.mark.conformance("A8", "A19", "C6")
def test_nothing_is_lost_when_processes_die(tmp_path: Path) -> None:
    survive(tmp_path, seconds=4, messages=2_000, pause_s=(0.2, 0.6), alone_s=10)


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.timeout(600)
def test_nothing_is_lost_in_a_minute_of_kills(tmp_path: Path) -> None:
    survive(tmp_path, seconds=60, messages=200_000, pause_s=(0.3, 1.2), alone_s=1.5)
