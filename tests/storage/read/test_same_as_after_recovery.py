"""What a reader shows of a store that was not closed is what a writer's recovery makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support import golden, golden_samples

# Without `abort` a reader trusts the queues, as RocketMQ does; a writer looks and rebuilds them.
REBUILT_BY_WRITERS_ONLY = {
    "torn-clean-queue-missing-4.9": ("GoldenLoadC", 3),
    "torn-clean-queue-missing-5.3": ("GoldenLoadC", 0),
}


def everything(view: StoreView) -> dict[tuple[str, int], Any]:
    found: dict[tuple[str, int], Any] = {}
    for topic, queue_id in view.queues():
        bounds = view.queue_bounds(topic, queue_id)
        results = [view.get_message(topic, queue_id, offset, 1) for offset in range(*bounds)]
        messages = [(m.commitlog_offset, m.stored_body) for r in results for m in r.messages]
        found[topic, queue_id] = (tuple(bounds), messages)
    return found


@golden_samples.SOME
@pytest.mark.slow
def test_reading_before_and_after_recovery_gives_the_same(name: str, tmp_path: Path) -> None:
    root = golden.extract(name, tmp_path)
    with StoreView.open(root) as view:
        config = view.config
        before, end = everything(view), view.log_max_offset()
    with MessageStore.open(root, config) as store:
        assert store.log_end == end
        after = everything(store.view)
    only_after = REBUILT_BY_WRITERS_ONLY.get(name)
    assert only_after is None or (only_after in after and only_after not in before)
    assert before == {queue: facts for queue, facts in after.items() if queue != only_after}
    with StoreView.open(root) as view:
        assert everything(view) == after
