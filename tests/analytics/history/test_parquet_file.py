"""Files of kept reports, as Arrow reads them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from analytics.history.reading import opened_parquet
from tests.support.kept_reports import OLD, files, run
from tests.support.slim import ROOT

NATIVE = {"arrow().OSFile(path)", "path"}
"""What Arrow opens by itself."""


def test_a_file_that_is_read_is_held_by_no_thread_of_arrow(tmp_path: Path) -> None:
    """A thread that lets a Python file go while the interpreter ends aborts the process."""
    run(tmp_path, OLD, {"a": 1})
    (path,) = (tmp_path / "stores").rglob("*.parquet")
    with path.open("rb") as file:
        before = sys.getrefcount(file)
        opened = opened_parquet(file, path)
        assert sys.getrefcount(file) == before
        assert opened.read().num_rows == opened.metadata.num_rows == 1
    assert len(files(tmp_path)) > 1


@pytest.mark.slow
def test_every_parquet_file_is_opened_by_arrow_itself() -> None:
    found = {}
    for room in ("rmqctl", "analytics"):
        for path in (ROOT / room).rglob("*.py"):
            text = path.read_text("utf-8")
            if "ParquetFile" not in text and "read_table" not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                match node:
                    case ast.Call(func=ast.Attribute(attr="ParquetFile" | "read_table")):
                        found[path.name, node.lineno] = ast.unparse(node.args[0])
    assert len(found) > 1
    assert set(found.values()) <= NATIVE
