"""A damaged length makes a file of terabytes that takes no room: repair reads what it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.tools.repair.steps import Action
from tests.support.hand_made import TINY, HandMade
from tests.support.linux_forms import needs_linux_forms
from tests.support.mended import held, repair, wrong

pytestmark = needs_linux_forms  # elsewhere holes are read

SIZE = 4096
CONFIG = TINY.with_(
    mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000, max_index_num=400
)
HUGE = 1 << 42
FILES = (
    f"commitlog/{0:020}",
    f"commitlog/{SIZE:020}",
    f"consumequeue/T/0/{0:020}",
    "index/*",
)


def made_store(folder: Path) -> Path:
    made = HandMade(CONFIG)
    for number in range(60):
        made.put("T", number % 2, b"body %d" % number, keys=("all",))
    return made.write(folder)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", FILES)
def test_a_huge_file_is_cut_or_made_anew(name: str, tmp_path: Path) -> None:
    root = made_store(tmp_path / "s")
    before = held(root)
    (path,) = root.glob(name)
    with path.open("r+b") as file:
        file.truncate(HUGE)
    assert repair(root).steps
    assert wrong(root) == []
    assert held(root) == before
    sizes = [path.stat().st_size for path in (root / "rmqctl" / "quarantine").rglob("*")]
    assert max(sizes) > HUGE - 2 * SIZE, "what was there is kept"


@pytest.mark.timeout(60)
def test_a_huge_log_file_in_a_wrong_place_goes_to_its_own(tmp_path: Path) -> None:
    root = made_store(tmp_path / "s")
    before = held(root)
    log = root / "commitlog"
    last = max(log.iterdir())
    astray = last.rename(last.with_name(f"{int(last.name) + 3 * SIZE:020}"))
    with astray.open("r+b") as file:
        file.truncate(HUGE)
    plan = repair(root)
    assert Action.BRING_BACK in {step.action for step in plan.steps}
    assert wrong(root) == []
    assert held(root) == before
