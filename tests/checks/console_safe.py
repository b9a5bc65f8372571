"""Fail when rmqctl/console draws in a way in which a name could command the terminal or end it.

Banned are Textual's widgets that take markup or show a table, Rich's text and markup, and printing.
Textual is imported by two modules only. A character that is not ASCII stands in shapes.py, which
has its ASCII form, too.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "rmqctl" / "console"
TEXTUAL = {"app.py", "driver.py"}
SHAPES = {"shapes.py"}
BANNED = {
    "DataTable": "draws rows with markup, and all of them; a Pane draws those that are seen",
    "Static": "takes markup; draw lines of spans",
    "Label": "takes markup; draw lines of spans",
    "notify": "takes markup; set the notice of the app",
    "from_markup": "is markup; draw lines of spans",
    "markup": "is markup; draw lines of spans",
    "print": "writes to the terminal; draw lines of spans",
}


def findings(path: Path) -> Iterator[tuple[int, str]]:
    """Line and sentence of each fault."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        line: int = getattr(node, "lineno", 0)
        for name in _names(node):
            if name in BANNED:
                yield line, f"{name} {BANNED[name]}"
        for module in _modules(node):
            top, _, rest = module.partition(".")
            if top == "rich":
                yield line, "rich is not used to draw"
            if top == "textual" and (path.name not in TEXTUAL or rest.startswith("widgets")):
                yield line, f"{module} is imported by app.py and driver.py only"
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and not value.isascii() and path.name not in SHAPES:
            yield line, f"{value!a} is to be a name of shapes.py"


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        # A condition's notify takes no text; the last line prints once the console has ended.
        named = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        free = (node.func.attr == "notify" and not node.args) or named == "LAST_LINE"
        return [] if free else [node.func.attr]
    if isinstance(node, ast.keyword) and node.arg:
        return [node.arg]
    if isinstance(node, ast.ImportFrom):
        return [alias.name for alias in node.names]
    return []


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module]
    return []


def main() -> int:
    """Print each fault; the exit code."""
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {sentence}"
        for path in sorted(FOLDER.rglob("*.py"))
        for line, sentence in findings(path)
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
