"""The matrix of guarantees: no cell without a test, and no missing test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MATRIX = ROOT / "docs" / "guarantees.md"

_CELL = re.compile(r"[^|]*\[([a-g][1-5])\]")
_SHOWN = re.compile(
    r"^\* \[(\w\d)\] [^`]*(?:`\w+`[^`]*)*?\s+`(tests/[\w/]+\.py)`\s+`(test_\w+)`$", re.MULTILINE
)
_HEADS = {
    "a": "crash",
    "b": "exception, None",
    "c": "timeout",
    "d": "rebalance",
    "e": "retry",
    "f": "order",
    "g": "duplicates",
}


@cache
def named_in(file: Path) -> frozenset[str]:
    return frozenset(
        node.name for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)
    )


@pytest.mark.conformance("I5")
def test_each_cell_of_the_matrix_has_a_test():
    text = MATRIX.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and "[" in line]
    assert len(rows) == 7
    for row, (letter, head) in zip(rows, _HEADS.items(), strict=True):
        first, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        assert first == head
        named = [match[1] for match in map(_CELL.fullmatch, cells) if match]
        assert named == [f"{letter}{n}" for n in range(1, 6)]
    shown = _SHOWN.findall(text)
    assert [name for name, _, _ in shown] == [f"{x}{n}" for x in _HEADS for n in range(1, 6)]


@pytest.mark.parametrize(("cell", "file", "test"), _SHOWN.findall(MATRIX.read_text("utf-8")))
def test_the_test_of_a_cell_exists(cell, file, test):
    assert test in named_in(ROOT / file), cell
