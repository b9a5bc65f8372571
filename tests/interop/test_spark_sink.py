"""A real broker serves what Spark's sink has stored."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from analytics.sink.commit import commit
from analytics.sink.options import read_sink_options
from analytics.sink.rows import RowReader
from analytics.sink.staging import stage
from tests.interop.cluster import running_cluster
from tests.support.cli import run
from tests.support.java import Release

pytestmark = pytest.mark.interop
_ROWS = 400


@pytest.mark.long
def test_a_java_consumer_receives_all_rows(java49: Release, tmp_path: Path) -> None:
    root = tmp_path / "store"
    printed = run("store", "init", root, "--small").lines
    pairs = [line.split("=") for line in printed if not line.startswith("storePath")]
    settings = {name: int(value) for name, value in pairs}
    texts = [f"row {number} \U0001f680" for number in range(_ROWS)]
    batch = pa.record_batch(
        {
            "body": texts,
            "tags": ["even" if number % 2 == 0 else None for number in range(_ROWS)],
            "keys": [[f"k{number % 50}", "all"] for number in range(_ROWS)],
            "properties": pa.array([[("n", str(n))] for n in range(_ROWS)], pa.map_("str", "str")),
            "delay_level": [1 if number % 100 == 0 else None for number in range(_ROWS)],
        }
    )
    options = read_sink_options({"path": str(root), "topic": "spark"}, stream=False)
    part = stage(tmp_path / "staging", 0, RowReader(options, 0).messages(batch))
    assert part is not None
    assert commit(root, "w", 0, [part]) == _ROWS
    with running_cluster(java49, root, tmp_path, settings) as cluster:
        rows = cluster.consume("spark", "readers", _ROWS)
        assert sorted(int(row["properties"]["n"]) for row in rows) == list(range(_ROWS))
        even = cluster.consume("spark", "evens", _ROWS // 2, expression="even")
        assert len(even) == _ROWS // 2
        assert len(cluster.query_by_key("spark", "k7")) == _ROWS // 50
        cluster.stop()
    assert run("-S", root, "store", "fsck").code == 0
