"""The layers, as far as they can be read off the source; `make check` has import-linter's rest."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("rmqctl", "storage", "broker", "client", "analytics")
MOST_LINES = 600


def files(*packages: str) -> Iterator[Path]:
    for package in packages:
        yield from sorted((ROOT / package).rglob("*.py"))


def sources(*packages: str) -> Iterator[tuple[Path, ast.Module]]:
    for path in files(*packages):
        yield path, parsed(path)


@cache
def text_of(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(text_of(path), str(path))


def names_called(tree: ast.Module) -> set[str]:
    return {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }


@pytest.mark.slow
def test_only_the_terminal_prints_or_exits():
    guilty = [
        str(path.relative_to(ROOT))
        for path in files("storage", "broker", "client", "analytics")
        if re.search(r"\b(?:print|exit|input)\b", text_of(path))  # to parse all takes seconds
        and names_called(parsed(path)) & {"print", "exit", "input"}
    ]
    assert not guilty


@pytest.mark.slow
def test_the_formats_are_pure():
    """No file, no clock, no thread, no process: bytes in, values out."""
    impure = {"os", "time", "mmap", "fcntl", "threading", "socket", "random", "subprocess", "io"}
    guilty = []
    for path, tree in sources("storage/format"):
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            guilty += [f"{path.name}: {n}" for n in names if n.split(".")[0] in impure]
        if "open" in names_called(tree):
            guilty.append(f"{path.name}: open")
    # The counter of unique ids is shared by the threads of a producer: a lock, not a thread.
    assert guilty in ([], ["message_id.py: threading"])


@pytest.mark.parametrize(
    "package", ["storage", "storage.format", "storage.format.message", "broker"]
)
def test_importing_the_lower_packages_is_cheap(package):
    """Spark's workers and every call of the program pay for it."""
    heavy = ("numpy", "isal", "sortedcontainers", "concurrent", "multiprocessing", "asyncio")
    code = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not [m for m in done.stdout.split() if m.split(".")[0] in heavy]


@pytest.mark.slow
def test_files_stay_small():
    long = {
        str(path.relative_to(ROOT)): count
        for path in files(*PACKAGES)
        if (count := len(path.read_text("utf-8").splitlines())) > MOST_LINES
    }
    assert not long


@pytest.mark.slow
def test_sources_are_ascii():
    """Signs that look alike and text that renders right to left have no place in code."""
    guilty = [
        str(path.relative_to(ROOT))
        for path in files(*PACKAGES, "tests")
        if not path.read_bytes().isascii()
    ]
    assert not guilty


def test_no_package_hides_ours_in_the_tests():
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_c_files_include_what_lies_below_them() -> None:
    own = {
        "storage": {path.name for path in (ROOT / "storage/native").rglob("*.h")},
        "client": {path.name for path in (ROOT / "client/native").rglob("*.h")},
        "rmqctl": {path.name for path in (ROOT / "rmqctl/native").rglob("*.h")},
    }
    lowest = own["storage"]
    for package, below in (("storage", set()), ("client", lowest), ("rmqctl", lowest)):
        for path in (ROOT / package / "native").rglob("*.[ch]"):
            included = set(re.findall(r'(?m)^#include "(.+)"', path.read_text("utf-8")))
            included -= {"structmember.h"}  # Python's
            assert included <= own[package] | below, path


def run_statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Statements and those in them, without what is there for types only."""
    for node in body:
        yield node
        only_types = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for name in ("orelse",) if only_types else ("body", "orelse", "finalbody"):
            yield from run_statements(getattr(node, name, ()))
        yield from run_statements(getattr(node, "handlers", ()))
        yield from run_statements(getattr(node, "cases", ()))


def imports_of(path: Path, package: str) -> Iterator[str]:
    """Modules that a module imports when it runs, as dotted names; not those for types only."""
    for node in run_statements(ast.parse(text_of(path)).body):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join(
                [*(above if node.level else []), *([node.module] if node.module else [])]
            )
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


@pytest.mark.slow
def test_folders_import_each_other_in_one_direction_only() -> None:
    """Deferred imports count, too: a room and the rooms below it can be read without the others."""
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    below: dict[str, set[str]] = {}
    for folder in folders - set(PACKAGES):
        for path in ROOT.joinpath(*folder.split(".")).glob("*.py"):
            for module in imports_of(path, folder):
                parts = module.split(".")
                owner = next(
                    (name for n in (4, 3, 2) if (name := ".".join(parts[:n])) in folders), None
                )
                if owner is not None and owner != folder:
                    below.setdefault(folder, set()).add(owner)
    graph = TopologicalSorter(below)
    graph.prepare()  # raises CycleError, which names the folders
