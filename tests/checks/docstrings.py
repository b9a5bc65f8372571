"""Fail when a public function of storage/ or broker/ raises an error that no docstring names.

That there is a docstring at all is ruff's business (D1). What is raised here is what a function
itself raises by name; its docstring, its class's or its module's names it, or sends the reader
to the method that does ("See Broker.send."). Also: files of our packages have at most 600 lines.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("storage", "broker")
ALL_PACKAGES = (*PACKAGES, "rmqctl", "client", "analytics")
MOST_LINES = 600
# Mistakes in the program: no caller handles them.
UNTOLD = {"AttributeError", "AssertionError", "RuntimeError", "TypeError", "StopIteration"}
ELSEWHERE = re.compile(r"[Ss]ee [A-Z]\w+\.\w+")
SUBCLASSES = {"FileNotFoundError": "OSError"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def raised_by(function: Function) -> set[str]:
    """Names of the errors that the function itself raises."""
    names: set[str] = set()
    nodes: list[ast.AST] = list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", "")
            if name.endswith("Error"):
                names.add(name)
        nodes += ast.iter_child_nodes(node)
    return names - UNTOLD


def words(text: str) -> set[str]:
    """The words of a text."""
    return set(re.findall(r"\w+", text))


def untold(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """Line and name of each public function, and an error that no docstring of it names."""

    def look(node: ast.Module | ast.ClassDef, told: str) -> Iterator[tuple[int, str, str]]:
        told += ast.get_docstring(node) or ""
        for child in node.body:
            name = getattr(child, "name", "_")
            if name.startswith("_") and name != "__init__":
                continue
            if isinstance(child, ast.ClassDef):
                yield from look(child, told)
            elif isinstance(child, Function):
                own = ast.get_docstring(child) or ""
                if not ELSEWHERE.search(own):
                    for error in sorted(raised_by(child)):
                        if not {error, SUBCLASSES.get(error, error)} & words(told + own):
                            yield child.lineno, name, error

    return look(tree, "")


def findings(root: Path) -> Iterator[str]:
    """One sentence for each error."""
    for package in ALL_PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            text = path.read_text("utf-8")
            place = path.relative_to(root)
            lines = text.count("\n")
            if lines > MOST_LINES:
                yield f"{place}: {lines} lines, at most {MOST_LINES}; take something out"
            if package in PACKAGES:
                for line, name, error in untold(ast.parse(text, str(path))):
                    yield f"{place}:{line}: the docstring of {name} does not name {error}"


def main() -> int:
    found = list(findings(ROOT))
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
