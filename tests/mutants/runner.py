"""Runs the tests of a module against its mutants, each in a process of its own.

One process imports the project and collects the tests once. For each mutant it forks a child that
puts the mutant's code into the function and runs the tests, until one fails. What takes effect at
import (constants, defaults, classes) is made before a child imports anything.

The tests see Python's forms (``RMQCTL_PURE``): where a rule has a compiled form, too, the tests
that hold both equal find a mutant of the reference.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib.abc
import importlib.util
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

import hypothesis
import numpy  # noqa: F401 - heavy: imported once, before the forks
import pytest
from _pytest.main import pytest_runtestloop as runs_all_tests

from tests.mutants.mutations import Mutant, mutants_of

ROOT: Final = Path(__file__).resolve().parents[2]
_MARKS: Final = "not (long or crash or interop or spark)"
_EXAMPLES: Final = 50
"""Of each property, the same ones in every run."""
_WAITING: Final = 12
"""Tests that take so many times their processor time wait for something that does not come."""
_IMPORTING_S: Final = 20


class Outcome(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


class Verdict(NamedTuple):
    """The outcome of the mutant at a place of the module's list."""

    mutant: int
    outcome: Outcome


class BaselineFailed(Exception):
    """The tests of a module fail without any mutant."""


def run_module(
    path: str, tests: Sequence[str], seconds: int, chosen: Sequence[int], end: float
) -> Iterator[Verdict]:
    """Run the tests of a module (``storage/retention.py``) against its mutants at these places.

    A mutant is killed, too, if the tests take more than ``seconds`` of processor time. Ends early
    at ``end`` (time.monotonic). Raises BaselineFailed where the tests fail without a mutant.
    """
    source = (ROOT / path).read_bytes()
    tree = ast.parse(source, path)
    mutants = mutants_of(tree)
    temp = tempfile.mkdtemp(
        prefix="rmqctl-mutants-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None
    )
    work = _Work(path, list(tests), seconds, end, tree, mutants, f"{temp}/tests")
    at_import = [at for at in chosen if mutants[at].function is None]
    passed = False
    try:
        for line in _lines_of(lambda out: _in_warm_process(work, chosen, out)):
            answer = json.loads(line)
            if answer["outcome"] == "cold":
                at_import.append(answer["mutant"])
            elif answer["outcome"] == "failed":
                raise BaselineFailed(answer["test"])
            elif answer["outcome"] == "passed":
                passed = True
            else:
                yield Verdict(answer["mutant"], Outcome(answer["outcome"]))
        if not passed:
            raise BaselineFailed(f"pytest did not run the tests of {path}")
        for at in at_import:
            if time.monotonic() > end:
                break
            child = _fork(functools.partial(_run_cold, work, at), seconds + _IMPORTING_S)
            yield Verdict(at, child.outcome)
    finally:
        shutil.rmtree(temp, ignore_errors=True)


class _Work(NamedTuple):
    path: str
    tests: list[str]
    seconds: int
    end: float
    tree: ast.Module
    mutants: list[Mutant]
    basetemp: str

    @property
    def arguments(self) -> list[str]:
        return [
            *("-x", "-q", "-s", "-p", "no:cacheprovider", "-p", "no:terminalreporter"),
            "--assert=plain",  # else pytest imports our modules by itself, to rewrite them
            *("-m", _MARKS, "--rootdir", str(ROOT), "--basetemp", self.basetemp),
            *(str(ROOT / test) for test in self.tests),
        ]

    def compiled(self, at: int | None) -> CodeType:
        """The code of the module with a mutant."""
        if at is not None:
            self.mutants[at].make()
            ast.fix_missing_locations(self.tree)
        code = compile(self.tree, str(ROOT / self.path), "exec", dont_inherit=True)
        if at is not None:
            self.mutants[at].undo()
        return code


class _Profile:
    """The same examples of Hypothesis in every run."""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        hypothesis.settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            database=None,
            max_examples=_EXAMPLES,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        )
        hypothesis.settings.load_profile("mutants")


class _Loop(_Profile):
    """Instead of running the tests once: once without and once with each mutant, in children."""

    def __init__(self, work: _Work, chosen: Sequence[int], out: Callable[..., None]) -> None:
        self._work = work
        self._chosen = chosen
        self._out = out
        self._failed: str | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._failed is None:
            self._failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._out(outcome="failed", test=f"{report.nodeid}: {report.longreprtext}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            self._out(outcome="failed", test="no test was collected")
            return True
        work = self._work
        plain = _fork(lambda out: self._run(session, out), work.seconds)
        if plain.outcome is not Outcome.SURVIVED:
            self._out(outcome="failed", test=plain.failed or f"more than {work.seconds} s")
            return True
        self._out(outcome="passed")
        functions, caches = _functions_of(ROOT / work.path)
        original = _codes_in(work.compiled(None))
        for at in self._chosen:
            name = work.mutants[at].function
            if name is None:
                continue
            if time.monotonic() > work.end:
                break
            code = _codes_in(work.compiled(at)).get(name)
            if code is not None and code == original[name]:
                # The compiler makes the same of both.
                self._out(mutant=at, outcome="survived")
                continue
            found = functions.get(name, [])
            if (
                code is None
                or not found
                or any(function.__code__.co_freevars != code.co_freevars for function in found)
            ):
                self._out(mutant=at, outcome="cold")
                continue

            def run(out: _Out, found: list[FunctionType] = found, code: CodeType = code) -> None:
                for function in found:
                    function.__code__ = code
                for cache in caches:
                    cache.cache_clear()
                self._run(session, out)

            child = _fork(run, work.seconds)
            self._out(mutant=at, outcome=child.outcome)
            # What kills one mutant of a function kills others, too.
            session.items.sort(key=lambda item: item.nodeid != child.failed)
        return True

    def _run(self, session: pytest.Session, out: _Out) -> None:
        """In a child: all tests, until one fails."""
        try:
            runs_all_tests(session)
        except BaseException as error:  # noqa: BLE001 - also what ends the session
            self._failed = self._failed or repr(error)
        out(failed=self._failed if session.testsfailed or self._failed else None)


_Out = Callable[..., None]


class _Child(NamedTuple):
    outcome: Outcome
    failed: str | None


def _fork(action: Callable[[_Out], None], cpu_seconds: int) -> _Child:
    """Run ``action`` in a child of its own process group; it gives the test that failed."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            os.close(read_end)
            resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            action(_writer(write_end))
        finally:
            os._exit(0)
    os.close(write_end)
    line, in_time = _line_within(read_end, _WAITING * cpu_seconds)
    os.close(read_end)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if line:
        failed = json.loads(line)["failed"]
        return _Child(Outcome.SURVIVED if failed is None else Outcome.KILLED, failed)
    by_time = not in_time or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU)
    return _Child(Outcome.TIMED_OUT if by_time else Outcome.KILLED, None)


def _line_within(read_end: int, seconds: float) -> tuple[bytes, bool]:
    """A line, or what there is at the end of the other side; False if neither came in time."""
    deadline = time.monotonic() + seconds
    data = b""
    while not data.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            return b"", False
        if not (more := os.read(read_end, 1 << 16)):
            return b"", True
        data += more
    return data, True


def _writer(descriptor: int) -> _Out:
    def out(**answer: Any) -> None:
        os.write(descriptor, json.dumps(answer).encode() + b"\n")

    return out


def _lines_of(action: Callable[[_Out], None]) -> Iterator[bytes]:
    """Run ``action`` in a child; what it writes, line by line."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            action(_writer(write_end))
        except BaseException:
            sys.excepthook(*sys.exc_info())
            raise
        finally:
            os._exit(0)
    os.close(write_end)
    try:
        with os.fdopen(read_end, "rb") as lines:
            yield from lines
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


def _in_warm_process(work: _Work, chosen: Sequence[int], out: _Out) -> None:
    os.environ["RMQCTL_PURE"] = "1"
    pytest.main(work.arguments, plugins=[_Loop(work, chosen, out)])


def _run_cold(work: _Work, at: int, out: _Out) -> None:
    """In a child that has imported nothing of the project: with a mutant of what import makes."""
    os.environ["RMQCTL_PURE"] = "1"
    sys.meta_path.insert(0, _MutantFinder(work.path, work.compiled(at)))
    code = pytest.main(work.arguments, plugins=[_Profile()])
    out(failed=None if code == pytest.ExitCode.OK else str(code))


class _MutantFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from code that was compiled already."""

    def __init__(self, path: str, code: CodeType) -> None:
        self._name = path.removesuffix(".py").replace("/", ".")
        self._file = str(ROOT / path)
        self._code = code

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._file, loader=self)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code, vars(module))


def _key_of(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _functions_of(path: Path) -> tuple[dict[tuple[str, int], list[FunctionType]], list[Any]]:
    """The functions whose code is from a file, and all caches of results."""
    functions: dict[tuple[str, int], list[FunctionType]] = {}
    caches = []
    for thing in gc.get_objects():
        if type(thing) is FunctionType:
            code = thing.__code__
            if code.co_filename == str(path):
                functions.setdefault(_key_of(code), []).append(thing)
        elif type(thing) is functools._lru_cache_wrapper:
            caches.append(thing)
    return functions, caches


def _codes_in(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """Code objects: functions of the module and of its classes."""
    found = {}
    for part in code.co_consts:
        if isinstance(part, CodeType):
            found[_key_of(part)] = part
            if "<locals>" not in part.co_qualname and not part.co_flags & 0x1:
                found.update(_codes_in(part))  # a class
    return found
