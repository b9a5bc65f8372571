"""Checks of ``rmqctl doctor``: interpreter, system, libraries, terminal, settings.

Nothing is changed or written. Store and file system: ``doctor_store``.
"""

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from rmqctl.cli.context import Cli
from rmqctl.cli.settings import KEYS

from .rows import CheckRow

OK: Final = "ok"
NOTE: Final = "note"
WARNING: Final = "warning"
ERROR: Final = "error"

_OLDEST_PYTHON: Final = (3, 11)
_REQUIRED: Final = ("typer", "rich", "numpy", "isal", "sortedcontainers", "pyyaml")
_OPTIONAL: Final = {
    "lz4": "bodies compressed with LZ4 by other clients cannot be read",
    "zstandard": "bodies compressed with Zstandard by other clients cannot be read",
    "pyspark": "lag report has no Spark engine; pip install 'rmqctl[spark]'",
    "pyarrow": "no Parquet files; pip install 'rmqctl[spark]'",
}
_OLDEST_JAVA: Final = 17
_ELSEWHERE: Final = "macOS is untried, Windows with WSL"
_OPEN_FILES: Final = 1024


def checks(cli: Cli) -> Iterator[CheckRow]:
    """All checks, the basic ones first."""
    from .doctor_store import store_checks

    yield python()
    yield system(platform.system(), platform.release())
    yield program()
    yield from libraries()
    yield compiled()
    yield java(cli.environ.get("JAVA_HOME"))
    yield open_files()
    yield from store_checks(cli)
    yield terminal(cli)
    yield encoding()
    yield console(cli)
    yield from settings(cli)


def python() -> CheckRow:
    """Whether the interpreter is new enough."""
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < _OLDEST_PYTHON:
        return CheckRow("python", ERROR, found, "rmqctl needs Python 3.11 or newer")
    return CheckRow("python", OK, found, "")


def system(name: str, release: str) -> CheckRow:
    """Whether processes can share a store on this operating system."""
    found = f"{name} {release}"
    if name == "Linux":
        wsl = " (Windows Subsystem for Linux)" if "microsoft" in release.lower() else ""
        return CheckRow("system", OK, f"{found}{wsl}; {_ELSEWHERE}", "")
    if name == "Darwin":
        advice = "untried: keep a copy of what matters; docs/platforms.md says what differs"
        return CheckRow("system", WARNING, f"macOS {release}", advice)
    return CheckRow("system", ERROR, found, f"not supported: {_ELSEWHERE}")


def program() -> CheckRow:
    """Whether ``rmqctl`` runs this program; RocketMQ Studio has one of the same name."""
    from rmqctl.parse.meanings import ROOT

    found = shutil.which("rmqctl")
    if found is None:
        advice = "rmqctl is not on PATH: completion and printed commands do not run"
        return CheckRow("program", NOTE, f"{ROOT} (not on PATH)", advice)
    text = Path(found).read_bytes()[:4096]
    if b"rmqctl.__main__" in text or str(ROOT).encode() in text or b"-m rmqctl" in text:
        return CheckRow("program", OK, found, "")
    advice = "another program of this name comes first on PATH; call this one by its path"
    return CheckRow("program", WARNING, found, advice)


def libraries() -> Iterator[CheckRow]:
    """The required and the optional libraries."""
    there, missing = _installed(_REQUIRED)
    if missing:
        advice = "install rmqctl again, in an environment of its own"
        yield CheckRow("libraries", ERROR, f"missing: {', '.join(missing)}", advice)
    else:
        yield CheckRow("libraries", OK, ", ".join(there), "")
    there, missing = _installed(_OPTIONAL)
    if there:
        yield CheckRow("optional", OK, ", ".join(there), "")
    for name in missing:
        yield CheckRow("optional", NOTE, f"no {name}", _OPTIONAL[name])


def _installed(names: Iterable[str]) -> tuple[list[str], list[str]]:
    there, missing = [], []
    for name in names:
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    return there, missing


def compiled() -> CheckRow:
    """Whether the hot loops are compiled."""
    from storage import native

    if native.compiled is not None:
        return CheckRow("compiled", OK, str(native.compiled.__file__), "")
    advice = (
        "batches take 20 times as long, pulls 10 times, single messages and store fsck 5 times; "
        "install a C compiler, then rmqctl again"
    )
    if native.wants_pure():
        advice = "RMQCTL_PURE is set"
    return CheckRow("compiled", NOTE, "pure Python only", advice)


def java(home: str | None) -> CheckRow:
    """Whether there is a Java for Spark; lag report also works without it."""
    path = shutil.which("java", path=f"{home}/bin") if home else None
    path = path or shutil.which("java")
    advice = "only the Spark engine of lag report needs Java"
    if path is None:
        return CheckRow("java", NOTE, "none found", advice)
    try:
        told = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=10, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        return CheckRow("java", NOTE, f"{path} does not run ({type(error).__name__})", advice)
    number = java_version(told)
    found = f"{number or 'unknown version'} ({path})"
    if number is not None and int(number.partition(".")[0]) < _OLDEST_JAVA:
        return CheckRow("java", NOTE, found, f"Spark needs Java {_OLDEST_JAVA}; {advice}")
    return CheckRow("java", OK, found, "")


def java_version(told: str) -> str | None:
    """The version that ``java -version`` prints: ``17.0.9``, or ``8`` for ``1.8.0_392``."""
    _, quote, rest = told.partition('"')
    number = rest.partition('"')[0].removeprefix("1.") if quote else ""
    return number if number[:1].isdigit() else None


def open_files() -> CheckRow:
    """The limit of open files: each mapped file of a store is open for a moment."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _OPEN_FILES:
        return CheckRow("open files", WARNING, f"at most {soft}", f"ulimit -n {min(hard, 65536)}")
    return CheckRow("open files", OK, f"at most {soft}", "")


def terminal(cli: Cli) -> CheckRow:
    """Type, size and color support of the terminal."""
    if not sys.stdout.isatty():
        return CheckRow(
            "terminal", OK, "none on standard output: no color, nothing is truncated", ""
        )
    columns, lines = shutil.get_terminal_size()
    colour = "color" if cli.colored(sys.stdout) else "no color"
    found = f"{cli.environ.get('TERM', 'TERM is not set')}, {columns}x{lines}, {colour}"
    if columns < 80:
        return CheckRow("terminal", NOTE, found, "tables truncate texts; -o plain does not")
    return CheckRow("terminal", OK, found, "")


def encoding() -> CheckRow:
    """Output is UTF-8 in every locale; a terminal may decode it differently."""
    told = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    if "utf" in told.lower():
        return CheckRow("encoding", OK, told, "")
    advice = "output is UTF-8 anyway; export LANG=C.UTF-8 to display it correctly"
    return CheckRow("encoding", NOTE, told or "no locale is set", advice)


def console(cli: Cli) -> CheckRow:
    """What the terminal can show of ``rmqctl console``."""
    from rmqctl.console.terminal import LEAST_HEIGHT, LEAST_WIDTH, check_terminal, no_clipboard
    from rmqctl.console.themes import Depth, depth_of, theme_for
    from rmqctl.errors import UsageProblem

    if not sys.stdout.isatty():
        return CheckRow("console", OK, "needs a terminal on standard output", "")
    try:
        check_terminal()
    except UsageProblem as error:
        return CheckRow("console", NOTE, "not on this terminal", str(error))
    depth = depth_of(cli.environ) if cli.colored(sys.stdout) else Depth.NONE
    colors = f"{depth.value} colors, palette {theme_for(cli.environ)}" if depth else "no color"
    columns, lines = shutil.get_terminal_size()
    utf8 = encoding().status == OK
    copies = "into a file" if no_clipboard(cli.environ) else "by OSC 52"
    found = f"{columns}x{lines}, {colors}, {'UTF-8' if utf8 else 'not UTF-8'}, copies {copies}"
    if columns < LEAST_WIDTH or lines < LEAST_HEIGHT:
        advice = (
            f"the console needs {LEAST_WIDTH}x{LEAST_HEIGHT} cells; 'rmqctl lag watch' does not"
        )
        return CheckRow("console", NOTE, found, advice)
    if not utf8:
        return CheckRow("console", NOTE, found, "'rmqctl console --ascii' draws in ASCII")
    return CheckRow("console", OK, found, "")


def settings(cli: Cli) -> Iterator[CheckRow]:
    """The settings files and variables, and each set value with its origin."""
    from rmqctl.config.settings_files import shown

    for place in cli.settings.places():
        if place.exists:
            yield CheckRow("settings", OK, f"{place.path} ({place.layer})", "")
    names = sorted(name for name in cli.environ if name.startswith("RMQCTL_"))
    if names:
        yield CheckRow("settings", OK, f"variables: {', '.join(names)}", "")
    for name in KEYS:
        found = cli.settings.get(name)
        if found is not None and name != "store":  # the store has a line of its own
            yield CheckRow("settings", OK, f"{name} = {shown(found.value)} ({found.origin})", "")
