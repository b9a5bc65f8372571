"""docs/spark.md does what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession as Sql

from analytics.spark.session import SparkSession
from tests.support.cli import ROOT, run

GUIDE = ROOT / "docs" / "spark.md"


def partials_before_a_commit(table: Callable[[str], Any], store: Path) -> Callable[[str], Any]:
    """The guide's function, with a group that reads on as soon as unread messages are counted."""

    def counted(name: str) -> Any:
        found = table(name)
        if name == "lag_partials":
            found = found.localCheckpoint()
            assert run("-S", store, "consume", "orders", "-g", "shop", "-c", 1).code == 0
        return found

    return counted


@pytest.mark.long
def test_the_blocks_of_the_guide_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    assert run("store", "init", store, "--small").code == 0
    lines = b"".join(b"order %d\n" % number for number in range(10))
    assert run("-S", store, "produce", "orders", "--tag", "new", stdin=lines).code == 0
    consumed = run("-S", store, "consume", "orders", "-g", "shop", "-c", 4, "--from-where", "first")
    assert consumed.code == 0
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 8
    shown = []
    with SparkSession("local[2]") as session:
        names: dict[str, Any] = {"spark": Sql(session.context)}
        for block in blocks:
            if '"lag_partials"' in block:
                names["table"] = partials_before_a_commit(names["table"], store)
            exec(compile(block, str(GUIDE), "exec"), names)
            shown.append(capsys.readouterr().out)
        assert names["spark"].read.parquet("archive").count() == 10
    copied = run("-S", store, "consume", "copied", "-e")
    assert sorted(copied.lines) == sorted(f"order {number}" for number in range(1000))
    lag, narrow, joined, units, partials, *_ = shown
    assert len(re.findall(r"shop\|orders", lag)) >= 1
    assert "orders|" in narrow
    assert "order " in narrow
    assert re.search(r"orders\| *10\|", units)
    assert re.search(r"shop\| *new\| *6\|", joined)
    assert sum(int(n) for n in re.findall(r"\| *(\d+)\| *\d+\|$", partials, re.MULTILINE)) == 6


def test_every_option_is_named_in_the_guide() -> None:
    from analytics.datasource.query import options, tables

    text = GUIDE.read_text("utf-8")
    for name in (*options.OPTIONS, *tables.TABLES):
        assert f"`{name}`" in text, name


def test_every_column_of_every_table_is_named_in_the_guide() -> None:
    from analytics.datasource.query import tables

    text = GUIDE.read_text("utf-8")
    for name in tables.TABLES:
        (line,) = re.findall(rf"^\* `{name}`: (.*(?:\n  .*)*)", text, re.MULTILINE)
        named = re.findall(r"`([a-z_]+)`", line)
        assert named == list(tables.TABLES[name])[1:], name


def test_every_column_and_option_of_the_sink_is_named_in_the_guide() -> None:
    from analytics.sink import options, rows

    writing = GUIDE.read_text("utf-8").partition("## Writing")[2]
    for name in (*options._KNOWN, *rows._TYPES):
        assert f"`{name}`" in writing, name
