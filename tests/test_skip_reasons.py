"""Each skip in the tests has a reason that does not fail the run where the test is skipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.skip_reasons import ALLOWED

TESTS = Path(__file__).parent
PLACES = {"skip": 0, "skipif": None, "importorskip": None}
"""How a test is skipped, and where the call may have its reason beside ``reason=``."""
COMPUTED = {"conftest.py"}
"""Files that also have reasons in variables."""


def text_of(node: ast.expr) -> str | None:
    """A literal text; what a text with fields puts in is one word. None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(value) or "x" for value in node.values)
    return None


def skips(path: Path, source: str) -> Iterator[tuple[int, str | None]]:
    """Line and reason of each skip; None if it has none, or it is no literal."""
    for node in ast.walk(ast.parse(source, str(path))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr not in PLACES or isinstance(node.func.value, ast.Constant):
            continue
        place = PLACES[node.func.attr]
        found = [word.value for word in node.keywords if word.arg == "reason"]
        found += node.args[place : place + 1] if place is not None else []
        yield node.lineno, text_of(found[0]) if found else None


def refused(path: Path, source: str) -> list[str]:
    return [
        f"{path}:{line}: {reason}"
        for line, reason in skips(path, source)
        if not (reason and ALLOWED.match(reason)) and not (reason is None and path.name in COMPUTED)
    ]


def test_every_reason_of_a_skip_is_accepted() -> None:
    paths = [path for path in sorted(TESTS.rglob("*.py")) if "skip" in path.read_text("utf-8")]
    assert len(paths) > 30
    found = [line for path in paths for line in refused(path, path.read_text("utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("pytest.skip('needs root: x')", 0),
        ("pytest.skip(reason='needs root')", 0),
        ("pytest.skip(f'needs {program} on PATH')", 0),
        ("pytest.mark.skipif(x, reason='needs cc on PATH')", 0),
        ("pytest.skip('cc is not installed')", 1),
        ("pytest.skip(f'{program} is not installed')", 1),
        ("pytest.skip(reason)", 1),
        ("pytest.mark.skip(reason='later')", 1),
        ("pytest.mark.skipif(x)", 1),
        ("pytest.importorskip('pyarrow')", 1),
        ("pytest.importorskip('pyarrow', reason='needs pyarrow')", 1),
    ],
)
def test_reasons_are_found(source: str, count: int) -> None:
    assert len(refused(Path("test_x.py"), source)) == count
