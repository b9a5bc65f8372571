"""Meanings of names, read from the source: docstrings of members, annotations of fields.

The meaning of a code is written once, where the code is defined. The files are parsed, not
imported, as importing half of the program would be slow.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
"""The folder of the packages, installed or cloned."""


class Meaning(NamedTuple):
    """A name of the source and the docstring below it."""

    owner: str
    """The class; empty for the module's own names."""
    name: str
    value: str
    """The value as in the source; empty if it is not a plain constant."""
    text: str


def meanings(module: str, owner: str = "") -> Iterator[Meaning]:
    """The documented names of a class of a module, of all classes for ``*``, of the module for "".

    A member of an enum without a docstring gets the first line of its class's docstring.
    """
    tree = _parsed(ROOT.joinpath(*module.split(".")).with_suffix(".py"))
    if not owner:
        yield from _members(tree, "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and owner in ("*", node.name):
            yield from _members(node, node.name)


_PARSING: Final = Lock()


@cache
def _parsed(path: Path) -> ast.Module:
    with _PARSING:  # in two threads at once it raises SystemError in CPython 3.11
        return ast.parse(path.read_text("utf-8"), str(path))


def _members(node: ast.Module | ast.ClassDef, owner: str) -> Iterator[Meaning]:
    told = ""
    if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
        told = (ast.get_docstring(node) or "").partition("\n")[0]
    for place, child in enumerate(node.body):
        value: ast.expr | None
        if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name):
            name, value, note = child.targets[0].id, child.value, ""
        elif isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            name, value, note = child.target.id, child.value, _note(child.annotation)
        else:
            continue
        text = _docstring(node.body[place + 1 : place + 2]) or note or told
        if text and not name.startswith("_"):
            constant = str(value.value) if isinstance(value, ast.Constant) else ""
            yield Meaning(owner, name, constant, text.replace("``", ""))


def _docstring(following: list[ast.stmt]) -> str:
    """The string below an assignment, on one line."""
    if following and isinstance(following[0], ast.Expr):
        value = following[0].value
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return _whole(" ".join(value.value.split()))
    return ""


def _whole(text: str) -> str:
    """The text without its last clause, if that refers to the next name: ``..., unless:``."""
    if not text.endswith(":"):
        return text
    return text[: max(text.rfind(","), text.rfind(";"))].rstrip(":") + "."


def _note(annotation: ast.expr) -> str:
    """The text of ``Annotated[int, "text"]`` and of ``Annotated[int, Wide("text")]``."""
    if not isinstance(annotation, ast.Subscript) or ast.unparse(annotation.value) != "Annotated":
        return ""
    if not isinstance(annotation.slice, ast.Tuple):
        return ""
    note = annotation.slice.elts[1]
    if isinstance(note, ast.Call) and note.args:
        note = note.args[0]
    return note.value if isinstance(note, ast.Constant) and isinstance(note.value, str) else ""


def modules_named(*names: str) -> list[Path]:
    """Modules of the command line with one of these names: NAME.py and ANYTHING_NAME.py."""
    return sorted(
        path
        for path in (ROOT / "rmqctl").rglob("*.py")
        if path.stem in names or path.stem.rpartition("_")[2] in names
    )


def printed_rows() -> dict[tuple[str, str], str]:
    """The row type that a command prints, by its module below ``rmqctl`` and its function."""
    found = {}
    for path in modules_named("command", "commands"):
        module = ".".join(path.relative_to(ROOT / "rmqctl").with_suffix("").parts)
        for node in _parsed(path).body:
            if isinstance(node, ast.FunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "prints":
                        found[module, node.name] = ast.unparse(mark.args[0])
    return found
