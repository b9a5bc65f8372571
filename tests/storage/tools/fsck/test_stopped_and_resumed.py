"""A check that goes on where another one was stopped reports what one without a stop does."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.configs.journal import Journal
from storage.readonly import StoreView
from storage.tools.fsck import Report, fsck, kept_part
from storage.tools.fsck.kept_part import KeptPart, decode_part
from tests.support import golden
from tests.support.damages import NotHere, damage, kinds

pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")
"""Some kinds of damage take the log's last files away, and readers warn of that."""

NAME = "small-files-4.9"


def stops(root: Path, jobs: int = 1) -> tuple[Report, list[bytes | None]]:
    """The report of a whole check, and what is kept of it at each place where it may be stopped."""
    texts: list[bytes | None] = []
    with StoreView.open(root) as view:
        report = fsck(view, jobs=jobs, keep=lambda _, text: texts.append(text))
    return report, texts


def known(text: bytes | None) -> KeptPart:
    assert text is not None
    found = decode_part(text)
    assert found is not None
    return found


def resumed(root: Path, text: bytes | None, jobs: int = 1) -> Report:
    kept = known(text)
    seen: list[int] = []
    with StoreView.open(root) as view:
        assert kept.holds(view)
        report = fsck(view, jobs=jobs, resume=kept, progress=lambda done, _: seen.append(done))
    assert all(done > kept.position - kept.part.log.start for done in seen)
    return report


def test_of_a_whole_store(tmp_path: Path) -> None:
    root = golden.store(NAME)
    report, texts = stops(root)
    assert len(texts) > 3
    for text in texts:
        assert resumed(root, text) == report
        assert resumed(root, text, jobs=2) == report


@pytest.mark.slow
@pytest.mark.parametrize(
    "step", [pytest.param(6, id="some"), pytest.param(1, marks=pytest.mark.long)]
)
def test_of_a_store_with_each_kind_of_damage(step: int, tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    unlike, done = [], 0
    for kind in list(kinds())[::step]:
        try:
            damaged = damage(root, kind)
        except NotHere:
            continue
        try:
            for jobs in (1, 2):
                report, texts = stops(root, jobs)
                for text in texts[:: max(1, len(texts) - 1) // 2 or 1]:
                    done += 1
                    unlike += [(kind, jobs)] * (resumed(root, text, 3 - jobs) != report)
        finally:
            damaged.undo()
    assert unlike == []
    assert done > 100 // step


def test_a_store_that_was_changed_is_checked_as_a_whole(tmp_path: Path) -> None:
    root = golden.extract(NAME, tmp_path)
    _, texts = stops(root)
    kept = known(texts[-1])
    [first, *_] = sorted((root / "commitlog").iterdir())
    data = first.read_bytes()

    def holds() -> bool:
        with StoreView.open(root) as view:
            return kept.holds(view)

    assert holds()
    Journal(root).append({"what": "alter", "old": 1, "new": 2}, 1_700_000_000_000)
    assert holds(), "a change of a setting"
    Journal(root).append({"what": "queues", "old": 1, "new": 2}, 1_700_000_000_000)
    assert not holds(), "a rebuilt queue"
    _, texts = stops(root)
    kept = known(texts[-1])
    first.unlink()
    first.write_bytes(data)
    assert not holds(), "a restored file"
    first.unlink()
    assert not holds(), "a deleted file"


def test_nothing_is_kept_of_a_store_with_too_many_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_part, "MOST_NUMBERS", 3)
    _, texts = stops(golden.store(NAME))
    assert set(texts) == {None}


def test_another_text_is_none(tmp_path: Path) -> None:
    _, texts = stops(golden.store(NAME))
    text = texts[-1]
    assert text is not None
    for other in (b"", b"{}", b'{"log_offset":32768}\n', b"[1]", text[:-40], b"\xff" + text):
        assert decode_part(other) is None
    for name in (b'"findings"', b'"ranges"', b'"claims"', b'"missing"', b'"basis"', b'"start"'):
        assert decode_part(text.replace(name, b'"other"', 1)) is None
