"""Fail when pyproject.toml declares a dependency that nothing uses.

A run-time dependency is used when one of our packages imports it; a peer of the benchmarks when a
test or benchmark does; a development tool when one of these imports it, a Makefile target runs it,
or it builds the wheel. What is declared ahead of its use stands in `[tool.rmqctl.declared-ahead]`
with the reason, and has to leave that list when it comes into use.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("rmqctl", "storage", "broker", "client", "analytics")
MODULES = {
    "pyyaml": "yaml",
    "persist-queue": "persistqueue",
    "google-re2": "re2",
    "opentelemetry-api": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
}  # where the module is not named like the distribution
COMMANDS = {
    "import-linter": "lint-imports",
    "cyclonedx-bom": "cyclonedx-py",
}  # where the command is not
OPTIONS = {"pytest-xdist": "-m pytest .*--dist "}  # where a plugin is an option of a command


def normalized(requirement: str) -> str:
    """The distribution's name of a requirement, in lower case with dashes."""
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    if found is None:
        raise ValueError(f"not a requirement: {requirement!r}")
    return re.sub(r"[-_.]+", "-", found.group()).lower()


def imported_modules(folders: Iterable[Path]) -> set[str]:
    """The top-level names that the Python files below ``folders`` import, wherever they do."""
    names: set[str] = set()
    for folder in folders:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
                if isinstance(node, ast.Import):
                    names.update(alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    names.add(node.module.partition(".")[0])
                elif isinstance(node, ast.Call) and _is_import_module(node):
                    first = node.args[0]
                    if isinstance(first, ast.Constant) and isinstance(first.value, str):
                        names.add(first.value.partition(".")[0])
    return names


def _is_import_module(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in {"import_module", "__import__", "importorskip", "find_spec"} and bool(node.args)


def findings(root: Path) -> Iterator[str]:
    """One sentence for each declared dependency that stands where it should not."""
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))
    project = settings["project"]
    extras = project.get("optional-dependencies", {})
    ahead = dict(settings["tool"]["rmqctl"]["declared-ahead"])
    ours = imported_modules(root / package for package in PACKAGES)
    tests = imported_modules([root / "tests", root / "benchmarks", root / "docs"]) | ours
    makefile = (root / "Makefile").read_text("utf-8")

    run_time = [*project["dependencies"], *extras.get("spark", []), *extras.get("otel", [])]
    for name in map(normalized, run_time):
        used = MODULES.get(name, name.replace("-", "_")) in ours
        yield from _judge(name, used, ahead, "none of our packages imports it")
    for name in map(normalized, extras.get("bench", [])):
        used = MODULES.get(name, name.replace("-", "_")) in tests
        yield from _judge(name, used, ahead, "no benchmark imports it")
    for name in map(normalized, [*extras.get("dev", []), *extras.get("release", [])]):
        stubs_of = name.removeprefix("types-")
        plugin_of = name.removeprefix("pytest-")
        command = re.escape(COMMANDS.get(name, name))
        used = (
            MODULES.get(name, name.replace("-", "_")) in tests
            or name in map(normalized, settings["build-system"]["requires"])
            or re.search(rf"(\$\(BIN\)/|-m ){command}\b", makefile) is not None
            or (name in OPTIONS and re.search(OPTIONS[name], makefile) is not None)
            or (stubs_of != name and stubs_of in map(normalized, run_time))
            or (plugin_of != name and plugin_of in settings["tool"]["pytest"]["ini_options"])
        )
        yield from _judge(name, used, ahead, "no test, benchmark, target or setting uses it")
    for name in ahead:
        yield f"{name} is on the declared-ahead list but not declared: take it off the list"


def _judge(name: str, used: bool, ahead: dict[str, str], unused: str) -> Iterator[str]:
    reason = ahead.pop(name, None)
    if used and reason is not None:
        yield f"{name} has come into use: take it off the declared-ahead list"
    if not used and reason is None:
        yield f"{name} is declared but {unused}"


def main() -> int:
    found = list(findings(ROOT))
    for line in found:
        print(f"declared dependencies: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
