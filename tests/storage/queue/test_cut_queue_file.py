"""A queue file that was cut inside a unit, on a store that no writer has open."""

from __future__ import annotations

from pathlib import Path

from storage.readonly import StoreView
from tests.support import golden


def test_units_that_a_cut_took_are_rebuilt_from_the_log(tmp_path: Path) -> None:
    root = golden.extract("unclean-4.9", tmp_path)
    with StoreView.open(golden.store("unclean-4.9")) as view:
        expected = {queue: view.max_offset_in_queue(*queue) for queue in view.queues()}
    cut = 0
    for queue in root.glob("consumequeue/GoldenLoad*/*"):
        for path in sorted(queue.iterdir())[:-1]:
            cut += 1
            with path.open("r+b") as file:
                file.truncate(path.stat().st_size // 40 * 20 + 7)
    assert cut
    with StoreView.open(root) as view:
        assert {queue: view.max_offset_in_queue(*queue) for queue in view.queues()} == expected
