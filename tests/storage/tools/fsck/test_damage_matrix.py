"""Each kind of damage to each store of a real broker: fsck names the cause and offset, no more.

The short run does them to a store with small files of every kind, and some to one of 5.3; the
long run does them all to all stores.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.tools.fsck import Code, Finding, Severity, fsck
from storage.tools.fsck.findings import AS_SENT
from tests.support import golden
from tests.support.anatomy import Anatomy
from tests.support.damages import Damaged, Lack, NotHere, Said, damage, kinds

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""Some kinds of damage take the log's last files away, and readers warn of that."""

# A gap or a run of missing units is cut again where a second damage meets it.
_CUT_ANEW = {Code.QUEUE_GAP, Code.UNIT_MISSING}


def said(root: Path) -> dict[Said, Finding]:
    with StoreView.open(root) as view:
        return {Said(f.code, f.file, f.position): f for f in fsck(view).findings}


def is_cut_anew(finding: Said, before: dict[Said, Finding]) -> bool:
    """Whether the undamaged store has something to say of the same queue, or lacks keys too."""
    if finding.code is Code.INDEX_KEY_MISSING:  # one line for all, at the first of them
        return any(known.code is finding.code for known in before)
    folder = finding.file.rpartition("/")[0]
    return finding.code in _CUT_ANEW and any(
        known.file.startswith(folder) and known.code is not Code.FOREIGN_FILE for known in before
    )


@pytest.mark.feature(111, 112)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(name, 1, marks=() if name == "small-files-4.9" else pytest.mark.long)
        for name in golden.names()
    ]
    + [pytest.param("retention-5.3", 4, id="some kinds, retention-5.3")],
)
def test_each_damage_is_told_once_with_its_place(name: str, step: int, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    before = said(root)
    wrong, done = [], 0
    for kind in list(kinds())[::-step]:  # from the last one: only 5.3 has it
        try:
            damaged = damage(root, kind)
        except NotHere as reason:
            wrong += [] if lacks(root, reason.lack) else [f"{kind}: but not: {reason}"]
            continue
        try:
            after = said(root)
        finally:
            damaged.undo()
        done += 1
        wrong += complaints(damaged, before, after)
    assert wrong == []
    assert done > 30 // step
    assert said(root) == before


def complaints(
    damaged: Damaged, before: dict[Said, Finding], after: dict[Said, Finding]
) -> list[str]:
    """What fsck should have said and did not, and what it should not have said."""
    assert bool(damaged.says) != bool(damaged.why_unseen)
    found = [f"{damaged.kind}: not told: {missing}" for missing in damaged.says - set(after)]
    found += [
        f"{damaged.kind}: no command mends {after[finding]}"
        for finding in damaged.says & set(after)
        if finding.code not in AS_SENT
        and after[finding].severity is not Severity.INFO
        and "rmqctl store " not in after[finding].fix
    ]
    more = [
        finding
        for finding in set(after) - set(before) - damaged.says
        if finding.code not in damaged.follows and not is_cut_anew(finding, before)
    ]
    return found + [f"{damaged.kind}: told, too: {after[finding]}" for finding in more]


@pytest.mark.parametrize("kind", [k for k in kinds() if "delayOffset" not in k][::7])
def test_a_damage_can_be_undone(kind: str, tmp_path: Path) -> None:
    root = golden.extract("small-files-4.9", tmp_path)
    before = contents(root)
    damaged = damage(root, kind)
    assert contents(root) != before
    damaged.undo()
    assert contents(root) == before


def contents(root: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def lacks(root: Path, lack: Lack) -> bool:
    """Whether the files really have nothing for this kind of damage."""
    store = Anatomy(root)
    queues = [list(folder.iterdir()) for folder in (root / "consumequeue").glob("*/*")]
    match lack:
        case Lack.ONE_LOG_FILE:
            return len(list((root / "commitlog").iterdir())) <= 3
        case Lack.NO_PLAIN_RECORD:
            return (
                not store.plain
                or all(file.end < 3 * 4096 for file in store.sound_log)
                or (len(store.records) < 100)
            )
        case Lack.NO_QUEUE:
            return not store.sound_queues or all(
                len(files[-1].units) * 20 == store.config.mapped_file_size_consume_queue
                for files in store.sound_queues.values()
            )
        case Lack.NO_QUEUE_FILES:
            full = store.config.mapped_file_size_consume_queue // 20
            return max(map(len, queues), default=0) < 3 or all(
                len(files[-1].units) < full for files in store.sound_queues.values()
            )
        case Lack.NO_INDEX | Lack.ONE_INDEX_FILE:
            there = {record.offset for record in store.records}
            return len(store.index) < 3 or not any(
                entry[1] in there for entry in store.index[-1].entries[1:]
            )
        case Lack.NO_CHECKPOINT:
            return not (root / "checkpoint").exists()
        case Lack.NO_CONFIG:
            texts = [
                path.read_text() if path.exists() else '"table":{}'
                for path in map((root / "config").joinpath, _SETTINGS)
            ]
            return any('able":{}' in "".join(text.split()) for text in texts)
        case Lack.NOT_CLOSED:
            return (root / "abort").exists()
        case Lack.NO_PROGRESS:
            path = root / "config" / "consumerOffset.json"
            return not path.exists() or b"@" not in path.read_bytes()
        case Lack.NO_DELETED:
            return (root / "commitlog" / f"{0:020}").exists()
        case Lack.TAIL_DAMAGED:
            return bool(golden.manifest(root.name).get("facts", {}).get("damage"))


_SETTINGS = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")
