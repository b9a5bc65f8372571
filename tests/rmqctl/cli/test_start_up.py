"""What a call imports: start-up time is the modules, and modules can be counted."""

import re
import subprocess
import sys

import pytest

from rmqctl.late_modules import OF_PATHLIB, OF_TYPER
from tests.support.cli import ROOT

# Each of these costs 10 to 140 ms; only what uses them may import them.
HEAVY = {
    *("numpy", "pandas", "pyarrow", "pyspark", "rich", "yaml", "asyncio", "pydantic", "isal"),
    *("concurrent.futures", "multiprocessing", "unittest", "zoneinfo", "email", "http"),
}

PROBE = """
import sys, io
from rmqctl.app import main
out, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO())
code = main(sys.argv[1:])
sys.stdout = out
print(code, *sys.modules)
"""

# What the program itself does, from its entry point on.
WHOLE = """
import sys, io
from rmqctl.__main__ import main
out, sys.stdout = sys.stdout, io.TextIOWrapper(io.BytesIO())
try:
    main()
except SystemExit as ended:
    code = ended.code
sys.stdout = out
print(code, *sys.modules)
"""


def modules_of(*args, env=None, probe=PROBE):
    done = subprocess.run(
        [sys.executable, "-c", probe, *args],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "HOME": "/", **(env or {})},
    )
    code, *modules = done.stdout.split()
    assert code == "0", done.stderr
    return set(modules)


@pytest.mark.feature(148)
@pytest.mark.parametrize(
    "args", [["--help"], ["version"], ["version", "-o", "jsonl"]], ids=" ".join
)
def test_nothing_heavy_is_imported(args):
    assert not modules_of(*args) & HEAVY


def commands_in(modules):
    """Modules of commands: command.py, commands.py, NAME_command.py, NAME_commands.py."""
    return {m for m in modules if m.startswith("rmqctl.") and m.endswith(("command", "commands"))}


def test_the_help_of_the_root_imports_no_command_and_no_store():
    modules = modules_of("--help")
    assert not commands_in(modules)
    assert not {m for m in modules if m.startswith(("storage", "broker"))}


def test_a_command_imports_its_own_module_only():
    assert commands_in(modules_of("version")) == {"rmqctl.help.version_command"}


@pytest.mark.slow
def test_the_number_of_modules_does_not_creep_up():
    # A bare interpreter has about 30 and Typer brings 110.
    assert len(modules_of("--help")) <= 230
    assert len(modules_of("version", "-o", "json")) <= 250


def test_rich_is_imported_for_a_table_on_a_terminal_only():
    assert "rich" not in modules_of("version", "-o", "table")


@pytest.mark.slow
def test_sending_a_message_loads_nothing_that_reads_or_parses(store, tmp_path):
    (tmp_path / "line").write_text("one\n")
    loaded = modules_of("-S", str(store), "produce", "t", str(tmp_path / "line"))
    assert "broker.send.send" in loaded
    assert not loaded & {
        *("storage.readonly", "broker.pull.pull", "rmqctl.produce.parsers"),
        *("broker.api.pull", "storage.read.tag_filter", "storage.format.fastjson_reader"),
        *("rmqctl.produce.replay", "rmqctl.produce.timings"),
    }


def sent(store, tmp_path):
    (tmp_path / "line").write_text("one\n")
    return modules_of("-S", str(store), "produce", "t", str(tmp_path / "line"), probe=WHOLE)


def test_what_typer_names_and_never_uses_is_not_imported(store, tmp_path):
    loaded = sent(store, tmp_path)
    assert "typer.main" in loaded
    found = loaded & {*OF_TYPER, *OF_PATHLIB, "ipaddress"}
    assert found <= {"difflib"}  # Typer's parser asks it what "-S" may mean
    assert not loaded & {"bz2", "lzma", "locale", "selectors", "textwrap"}


@pytest.mark.slow
def test_one_message_takes_few_modules(store, tmp_path):
    first = sent(store, tmp_path)  # recovers the new store, and makes the topic
    again = sent(store, tmp_path)
    assert len(again) <= 303
    assert len(first - again) <= 22
    assert not again - first


COMPILED = """
import re
compiled = []
compile = re._compiler.compile
def counting(pattern, flags=0):
    compiled.append(pattern)
    return compile(pattern, flags)
re._compiler.compile = counting
"""


@pytest.mark.slow
def test_one_message_compiles_few_regular_expressions(store, tmp_path):
    line = tmp_path / "line"
    line.write_text("one\n")
    once = ["-S", str(store), "produce", "t", str(line)]
    modules_of(*once)  # makes the topic
    said = COMPILED + WHOLE.replace("print(code, *sys.modules)", "print(code, len(compiled))")
    (count,) = modules_of(*once, probe=said)
    assert int(count) <= 20


ALL_BUT_THE_CONSOLE = """
import sys
from importlib import import_module
from rmqctl.app import main
from rmqctl.cli.tree import TREE, CommandRef
for name, entry in TREE.items():
    for ref in [entry] if isinstance(entry, CommandRef) else entry.verbs.values():
        if name != "console":
            import_module(f"rmqctl.{ref.module}")
main(["doctor", "-o", "json"])
found = {name.partition(".")[0] for name in sys.modules}
assert not found & {"textual", "asyncio"}, sorted(found)
print("done", len(found))
"""


@pytest.mark.slow
def test_no_command_but_the_console_imports_its_library():
    done = subprocess.run(
        [sys.executable, "-c", ALL_BUT_THE_CONSOLE],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin", "HOME": "/"},
    )
    assert "done" in done.stdout, done.stderr


def test_the_library_of_the_console_is_named_in_the_console_only():
    """Also in imports within functions, which run later than the others."""
    named = re.compile(r"^\s*(from|import) (textual|asyncio)\b", re.MULTILINE)
    found = {
        path.relative_to(ROOT).as_posix()
        for package in ("analytics", "broker", "client", "rmqctl", "storage")
        for path in (ROOT / package).rglob("*.py")
        if named.search(path.read_text())
    }
    assert found
    assert {path for path in found if not path.startswith("rmqctl/console/")} == set()
