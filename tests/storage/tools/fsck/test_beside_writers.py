"""fsck while other processes write, come and go: nothing that is only on its way is reported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage.config import StoreConfig
from storage.readonly import StoreView
from storage.tools.fsck import Code, fsck
from tests.support.hand_made import TINY, HandMade
from tests.support.samples import (
    SMALL,
    TINY as TINY_WRITER,
    Sample,
    new_store,
    open_store,
    prepared,
)

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from tests.support.samples import SMALL, Sample, open_store, prepared
import time
root, name, seconds = Path(sys.argv[2]), sys.argv[3], float(sys.argv[4])
until = time.monotonic() + seconds
number = 0
while time.monotonic() < until:
    with open_store(root, SMALL) as store:  # comes and goes
        for _ in range(20):
            count = 1 + number % 60
            size = 30 + number % 200
            batch = [Sample(f"{name}-{number + i}", "T", i % 3, size, "Tag", (f"k{i}",))
                     for i in range(count)]
            store.put(prepared(batch))
            number += count
"""


@pytest.mark.slow
def test_a_store_that_is_being_written_is_healthy_all_the_time(tmp_path: Path) -> None:
    root = new_store(tmp_path / "store", SMALL)
    repository = Path(__file__).resolve().parents[4]
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, repository, root, name, "2"])
        for name in ("a", "b")
    ]
    rounds = records = 0
    while any(writer.poll() is None for writer in writers):
        with StoreView.open(root) as view:
            report = fsck(view)
        wrong = [f for f in report.findings if f.code is not Code.NOT_CLOSED]
        assert wrong == []
        assert report.checked.records >= records
        records = report.checked.records
        rounds += 1
    assert [writer.returncode for writer in writers] == [0, 0]
    assert rounds >= 3
    assert records > 0
    with StoreView.open(root) as view:
        assert fsck(view).findings == []


@pytest.mark.slow
@pytest.mark.parametrize("config", [TINY_WRITER, SMALL], ids=["tiny files", "small files"])
def test_what_our_writer_leaves_is_healthy(tmp_path: Path, config: StoreConfig) -> None:
    root = new_store(tmp_path / "store", config)
    with open_store(root, config) as store:
        for number in range(40):
            samples = [Sample(f"id-{number}-{i}", "T", i % 2, 40, "Tag", ("k",)) for i in range(3)]
            store.put(prepared(samples))
            with StoreView.open(root) as view:
                findings = fsck(view).findings
            assert [f.code for f in findings] == [Code.NOT_CLOSED]
    with StoreView.open(root) as view:
        report = fsck(view)
    assert report.findings == []
    assert (report.checked.records, report.checked.units) == (120, 120)
    assert report.checked.index_entries == 240


def test_progress_outside_its_queue_is_worth_knowing(tmp_path: Path) -> None:
    made = HandMade(TINY)
    for _ in range(3):
        made.put("T")
    root = made.write(tmp_path)
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(
        '{"offsetTable":{"T@ahead":{0:9},"T@fine":{0:3},"Gone@g":{0:1},"T@g":{7:2}}}'
    )
    with StoreView.open(root) as view:
        report = fsck(view)
    assert report.healthy
    assert report.checked.offsets == 4
    codes = sorted(f.code for f in report.findings)
    assert codes == sorted(
        [Code.OFFSET_BEHIND_END, Code.OFFSET_WITHOUT_QUEUE, Code.OFFSET_WITHOUT_QUEUE]
    )


@pytest.mark.parametrize(
    ("content", "bak", "code"),
    [
        ("{oops", None, Code.CONFIG_UNREADABLE),
        ("{oops", '{"offsetTable":{}}', Code.CONFIG_FROM_BAK),
        ("{oops", "{oops", Code.CONFIG_UNREADABLE),
    ],
)
def test_settings_that_can_not_be_read_are_told(
    tmp_path: Path, content: str, bak: str | None, code: Code
) -> None:
    made = HandMade(TINY)
    made.put("T")
    root = made.write(tmp_path)
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text(content)
    if bak is not None:
        (root / "config" / "consumerOffset.json.bak").write_text(bak)
    with StoreView.open(root) as view:
        report = fsck(view)
    assert code in {f.code for f in report.findings}
    assert report.ok == (code is Code.CONFIG_FROM_BAK)
