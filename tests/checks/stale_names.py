"""Fail when a docstring, a comment or a document names a module, a name or a file that is gone."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rmqctl", "analytics", "client", "broker", "storage", "tests", "benchmarks")
DOTTED = re.compile(rf"(?<![\w./:-])(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+(?![\w(]*/)")
PATHS = re.compile(
    rf"(?<![\w./<>-])(?:{'|'.join(PACKAGES)})(?:/[\w.-]+)+\.(?:py|c|h|pyi|toml|md)\b"
)
FILES = re.compile(r"(?<![\w./<>*-])[a-z_]\w*\.(?:py|c|h)\b")
SUFFIXES = (".py", ".toml", ".md", ".json", ".yaml", ".lock")
OTHERS = frozenset(
    {
        *("client.py", "storage.py", "program.py", "broker.conf", "structmember.h", "malloc.h"),
        *("rmqctl.zip", "rmqctl.prom", "rmqctl/config.toml", "rmqctl.storage", "rmqctl.tests"),
        "broker.start_services",  # a variable named broker
    }
)
"""Files of users, of Python and of RocketMQ, and names that only look like ours."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Lines of a file that may name others: docstrings and comments of Python, all of others."""
    source = path.read_text("utf-8")
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT or (
                token.type == tokenize.STRING and token.string.lstrip("rbRB").startswith('"""')
            ):
                for number, line in enumerate(token.string.splitlines()):
                    yield token.start[0] + number, line
    else:
        yield from enumerate(source.splitlines(), 1)


@cache
def names_of(module: Path) -> frozenset[str]:
    """What a module defines or imports at its top, and members of its classes."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # names that a package loads lazily
    return frozenset(found)


def is_there(dotted: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        module = base.with_suffix(".py")
        if base.is_dir() and length == len(parts):
            return True
        if not module.is_file():
            module = base / "__init__.py"
        if module.is_file():
            rest = parts[length:]
            return not rest or rest[0] in names_of(module) or rest[0] in ("compiled", "_compiled")
    return False


def stale(files: list[Path]) -> Iterator[str]:
    """Sentences about names that lead nowhere."""
    there = {path.name for path in files}
    for path in files:
        if path.suffix not in (".py", ".md", ".c", ".h", ".pyi"):
            continue
        where = path.relative_to(ROOT)
        if where.parts[0] == "CHANGELOG.md" or where.parts[:2] in (
            ("docs", "man"),
            ("tests", "golden"),
        ):
            continue
        for number, line in texts(path):
            for found in PATHS.findall(line):
                if (
                    found not in OTHERS
                    and "NOUN" not in found
                    and not (ROOT / found).exists()
                    and not (ROOT / "tests" / found).exists()
                ):
                    yield f"{where}:{number}: there is no {found}"
            for found in DOTTED.findall(line):
                if found not in OTHERS and not found.endswith(SUFFIXES) and not is_there(found):
                    yield f"{where}:{number}: there is no {found}"
            for found in FILES.findall(line):
                if found not in there and found not in OTHERS:
                    yield f"{where}:{number}: there is no file {found}"


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    found = list(stale([ROOT / name for name in listed if (ROOT / name).is_file()]))
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
