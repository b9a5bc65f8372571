"""The nightly file and the notebook gather, and what they gather can be read by other programs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import ROOT, run
from tests.support.kept_reports import DAY_MS, run as keep

pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def gathered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store, and what two nights have gathered: one of it, one of the file."""
    folder = tmp_path_factory.mktemp("night")
    store = folder / "store"
    assert run("store", "init", store, "--small", "-q").code == 0
    lines = b"".join(b"order %d\n" % number for number in range(10))
    assert run("-S", store, "produce", "orders", "-q", stdin=lines).code == 0
    words = ("orders", "-g", "shop", "-c", "4", "--from-where", "first", "-q")
    assert run("-S", store, "consume", *words).code == 0
    now_ms = time.time_ns() // 1_000_000
    for hours in (25, 26):
        keep(folder / "gathered", now_ms - DAY_MS - hours * 3_600_000, {"old": 3, "b": None})
    return folder


def nightly(folder: Path, *words: str) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / "nightly.py"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout.splitlines()


@pytest.fixture(scope="module")
def night(gathered: Path) -> list[str]:
    """What the first night prints."""
    code, lines = nightly(gathered, "gathered", "store")
    assert code == 0
    return lines


def test_the_file_keeps_joins_and_shows(gathered: Path, night: list[str]) -> None:
    kept, joined, *days = night
    assert re.fullmatch(r"kept the reports of 1 stores in \d files", kept)
    assert re.match(r"joined \d+ files of past days into \d+$", joined)
    assert days[-1].endswith("lag 6 of 1 groups in 1 stores")
    assert days[-2].endswith("lag 6 of 2 groups in 2 stores")
    code, lines = nightly(gathered, "gathered", "store", "nowhere")
    assert code == 8
    assert any(line.startswith("nowhere: not read: ") for line in lines)


def test_pyarrow_and_pandas_read_it(gathered: Path, night: list[str]) -> None:
    import pandas as pd
    from pyarrow import dataset

    table = dataset.dataset(str(gathered / "gathered" / "groups"), partitioning="hive").to_table()
    frame = pd.read_parquet(gathered / "gathered" / "groups")
    assert len(frame) == table.num_rows
    shop = frame[frame.group == "shop"]
    assert set(shop.lag) == {6}
    assert shop.oldest_unread_time.dt.tz is not None
    assert frame[(frame.broker == "b")].lag.isna().all()


def test_duckdb_reads_it(gathered: Path, night: list[str]) -> None:
    import duckdb

    files = f"{gathered}/gathered/groups/*/*.parquet"
    with duckdb.connect() as database:
        rows = database.execute(
            f"select distinct lag, typeof(as_of_time), typeof(date) from '{files}' "
            "where \"group\" = 'shop'"
        ).fetchall()
        unknown = database.execute(
            f"select count(*) from '{files}' where broker = 'b' and lag is null"
        ).fetchall()
    assert rows == [(6, "TIMESTAMP WITH TIME ZONE", "DATE")]
    assert unknown[0][0] > 0


@pytest.mark.long
@pytest.mark.spark
def test_the_notebook_runs_cell_by_cell_and_spark_reads_what_was_gathered(
    gathered: Path,
    night: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from analytics.spark.session import SparkSession

    notebook = json.loads((EXAMPLES / "nightly.ipynb").read_text("utf-8"))
    assert (notebook["nbformat"], {"id" in cell for cell in notebook["cells"]}) == (4, {True})
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    assert not any(cell.get("outputs") for cell in notebook["cells"])
    monkeypatch.chdir(gathered)
    names: dict[str, Any] = {}
    with SparkSession("local[2]"):
        for number, cell in enumerate(cells):
            exec(compile(cell, f"cell {number}", "exec"), names)
        shown = capsys.readouterr().out
        for _ in range(2):  # a second time: the days are replaced
            volume = names["spark"].read.parquet("gathered/volume")
            assert volume.agg({"messages": "sum"}).collect()[0][0] == 10
            exec(compile(cells[2], "again", "exec"), names)
    assert re.search(r"shop\|orders\| +6\|", shown)
    assert re.search(r"billing\|orders\| +3\|", shown)
