"""fsck while another process deletes old files or topics: what is gone is not missing."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import Code, Finding, Part, Report, fsck
from storage.tools.fsck.deletions import Deletions
from storage.tools.fsck.findings import Checked
from storage.tools.fsck.spot_check import check_samples
from tests.support.samples import Sample, Ticking, new_store, open_store, prepared

HOUR_MS = 3_600_000
MESSAGES = 400


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    later = Ticking(int(time.time() * 1000) + HOUR_MS)  # its files are old at once
    with open_store(new_store(tmp_path / "store"), clock=later) as store:
        put(store, 0, MESSAGES)
        yield store


def put(store: MessageStore, first: int, count: int) -> None:
    for number in range(first, first + count):
        topic, queue_id = "AB"[number % 2], number // 2 % 2
        store.put(prepared([Sample(f"m{number}", topic, queue_id, keys=(f"k{number}",))]))


def delete_old_files(store: MessageStore) -> None:
    while store.clean(manual=True, reserved_ms=0).log_files:
        pass


def delete_some_files(store: MessageStore) -> None:
    assert store.clean(manual=True, reserved_ms=0).log_files


def delete_topic(store: MessageStore) -> None:
    assert store.delete_queues("A") == 2


def make_topic_anew(store: MessageStore) -> None:
    delete_topic(store)
    put(store, MESSAGES, 10)


def delete_both(store: MessageStore) -> None:
    delete_some_files(store)
    delete_topic(store)


ACTS = [delete_some_files, delete_old_files, delete_topic, make_topic_anew, delete_both]


def checked(
    root: Path, at: int, act: Callable[[], object], jobs: int = 1, only: Collection[Part] = ()
) -> Report:
    """A check during which ``act`` is done after so many steps through the log."""
    steps = 0

    def progress(_: int, __: int) -> None:
        nonlocal steps
        steps += 1
        if steps == at:
            act()

    with StoreView.open(root) as view:
        report = fsck(view, progress=progress, jobs=jobs, only=only or None)
    assert steps >= at
    return report


@pytest.mark.parametrize("only", [(), (Part.QUEUE,), (Part.QUEUE, Part.INDEX)])
@pytest.mark.parametrize("at", [1, 8])
@pytest.mark.parametrize("act", ACTS)
def test_what_goes_during_the_check_is_not_reported(
    store: MessageStore, act: Callable[[MessageStore], None], at: int, only: Collection[Part]
) -> None:
    assert len(list((store.root / "commitlog").iterdir())) > 12
    report = checked(store.root, at, lambda: act(store), only=only)
    expected = [] if only else [Code.NOT_CLOSED]
    assert [finding.code for finding in report.findings] == expected
    with StoreView.open(store.root) as view:
        assert [finding.code for finding in fsck(view).findings] == [Code.NOT_CLOSED]


@pytest.mark.parametrize("act", [delete_some_files, delete_topic])
def test_with_several_processes_neither(
    store: MessageStore, act: Callable[[MessageStore], None]
) -> None:
    report = checked(store.root, 1, lambda: act(store), jobs=2)
    assert [finding.code for finding in report.findings] == [Code.NOT_CLOSED]


@pytest.mark.parametrize("act", [delete_some_files, delete_topic, delete_both])
def test_damage_of_what_stays_is_reported_all_the_same(
    store: MessageStore, act: Callable[[MessageStore], None]
) -> None:
    log = sorted((store.root / "commitlog").iterdir())
    log[-3].unlink()
    queue = sorted((store.root / "consumequeue/B/1").iterdir())
    queue[-2].unlink()
    report = checked(store.root, 2, lambda: act(store))
    found = [(finding.code, finding.file) for finding in report.findings]
    assert (Code.LOG_FILE_MISSING, f"commitlog/{log[-3].name}") in found
    assert (Code.QUEUE_FILE_MISSING, f"consumequeue/B/1/{queue[-2].name}") in found


@pytest.mark.parametrize("act", ACTS)
def test_the_quick_check_reports_nothing_of_it(
    store: MessageStore, act: Callable[[MessageStore], None]
) -> None:
    found: list[Finding] = []
    with StoreView.open(store.root) as view:
        deletions = Deletions(view)
        queues = {key: view.queue_bounds(*key).max_offset for key in view.queues()}
        deletions.next_offsets = queues
        log_min, log_end = view.log_min_offset(), view.log_max_offset()
        files = view.files.apart()
        act(store)
        check_samples(
            files,
            queues,
            found.append,
            Checked(),
            log_min=log_min,
            log_end=log_end,
            deletions=deletions,
        )
    assert found == []


def test_which_files_have_gone(store: MessageStore) -> None:
    old = f"{0:020d}"
    with StoreView.open(store.root) as view:
        deletions = Deletions(view)
        deletions.next_offsets = {key: view.queue_bounds(*key).max_offset for key in view.queues()}
        assert not deletions.has_gone(f"commitlog/{old}")
        delete_some_files(store)
        assert deletions.has_gone(f"commitlog/{old}")
        assert deletions.has_gone(f"consumequeue/A/0/{old}")
        newest = sorted((store.root / "consumequeue/A/0").iterdir())[-1].name
        assert not deletions.has_gone(f"consumequeue/A/0/{newest}")
        delete_topic(store)
        assert deletions.has_gone(f"consumequeue/A/0/{newest}")
        assert not deletions.has_gone("commitlog/a-name")
