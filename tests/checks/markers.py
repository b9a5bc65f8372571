"""Which tests carry a marker: read off the source, nothing is imported.

`@pytest.mark.NAME(...)` of a test function or of its class, of a whole file (`pytestmark = ...`),
or of a `Test... = Machine.TestCase` assignment, through a call around it.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Tests = dict[str, list[tuple[str, str]]]
"""File (below the folder) and name of the tests of each row, in the order of the files."""


def marked_tests(folder: Path, marker: str) -> Tests:
    """The tests below ``folder`` by the arguments of their marker, as texts."""
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(folder.rglob("test_*.py")):
        file = path.relative_to(folder).as_posix()
        for name, rows in marked_in(ast.parse(path.read_text("utf-8"), str(path)), marker):
            for row in dict.fromkeys(rows):
                found[row].append((file, name))
    return dict(found)


def links(tests: list[tuple[str, str]]) -> list[str]:
    """A line of Markdown for each file: a link to it and the names of its tests."""
    by_file: dict[str, list[str]] = defaultdict(list)
    for file, name in tests:
        by_file[file].append(f"`{name}`")
    return [f"[{file}](../tests/{file}): {', '.join(names)}" for file, names in by_file.items()]


def marked_in(module: ast.Module, marker: str) -> Iterator[tuple[str, list[str]]]:
    """Name and rows of each test of a file, none if it has no such marker."""
    everywhere: list[str] = []
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            everywhere = _rows_in(node.value, marker)
    yield from _functions(module, everywhere, marker)
    for node in module.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _functions(node, [*everywhere, *_decorations(node, marker)], marker)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("Test"):
            yield ast.unparse(node.targets[0]), [*everywhere, *_rows_in(node.value, marker)]


def _functions(
    node: ast.Module | ast.ClassDef, everywhere: list[str], marker: str
) -> Iterator[tuple[str, list[str]]]:
    for child in node.body:
        if isinstance(child, ast.FunctionDef) and child.name.startswith("test_"):
            yield child.name, [*everywhere, *_decorations(child, marker)]


def _decorations(node: ast.FunctionDef | ast.ClassDef, marker: str) -> list[str]:
    return [row for mark in node.decorator_list for row in _rows_in(mark, marker)]


def _rows_in(expression: ast.expr, marker: str) -> list[str]:
    """The rows of all `pytest.mark.NAME(...)` within an expression."""
    return [
        str(argument.value)
        for node in ast.walk(expression)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{marker}"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    ]
