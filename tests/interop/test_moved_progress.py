"""A real broker takes the progress that a reset has written, and what it moves itself stays."""

from pathlib import Path

import pytest

from storage.readonly import StoreView
from tests.interop.cluster import Cluster, running_cluster
from tests.support.cli import run
from tests.support.java import Release

pytestmark = pytest.mark.interop

TOPIC, GROUP = "moved", "readers"
COUNT = 40
RESET = ("-g", GROUP, "-t", TOPIC)


def stats(cluster: Cluster) -> dict[int, int]:
    """What the broker says of the group's progress."""
    rows = cluster.consume_stats(GROUP)
    return {row["queueId"]: row["consumerOffset"] for row in rows if row["topic"] == TOPIC}


@pytest.mark.long
@pytest.mark.conformance("G12")
def test_a_java_broker_goes_on_from_a_reset(java49: Release, tmp_path: Path) -> None:
    store = tmp_path / "store"
    init = run("store", "init", store, "--small")
    lines = "".join(f"line {n}\n" for n in range(COUNT)).encode()
    assert run("-S", store, "produce", TOPIC, stdin=lines).code == 0
    numbers = dict(line.split("=") for line in init.lines if not line.startswith("storePath"))
    sizes = {name: int(value) for name, value in numbers.items()}

    with running_cluster(java49, store, tmp_path, sizes) as cluster:
        assert len(cluster.consume(TOPIC, GROUP, COUNT)) == COUNT
        beside = run("-S", store, "offset", "reset", *RESET, "--to-earliest", "--execute", "--yes")
        assert beside.code == 5, beside.err
        shown = run("-S", store, "offset", "reset", *RESET, "--to-earliest", "-o", "json")
        assert sum(row["lag_new"] for row in shown.json()) == COUNT
        cluster.stop()

    with StoreView.open(store) as view:
        bounds = {q: view.queue_bounds(TOPIC, q) for t, q in view.queues() if t == TOPIC}
    wanted = {queue_id: high - 2 for queue_id, (_, high) in bounds.items()}
    for command in (("--shift-by", "-5"), ("--shift-by", "3")):
        moved = run("-S", store, "offset", "reset", *RESET, *command, "--execute", "--yes")
        assert moved.code == 0, moved.err

    with running_cluster(java49, store, tmp_path, sizes) as cluster:
        assert stats(cluster) == wanted
        again = cluster.consume(TOPIC, GROUP, 2 * len(wanted))
        assert {(row["queueId"], row["queueOffset"]) for row in again} == {
            (queue_id, offset)
            for queue_id, (_, high) in bounds.items()
            for offset in range(high - 2, high)
        }
        cluster.stop()

    late = run("-S", store, "offset", "undo", "--last", "--execute", "--yes")
    assert late.code == 6, late.err
    assert "by a Java broker" in late.err
    rows = run("-S", store, "offset", "list", "-g", GROUP, "-t", TOPIC, "-o", "json").json()
    assert {row["lag"] for row in rows} == {0}
