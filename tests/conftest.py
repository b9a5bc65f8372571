"""What every test shares: fast tests first, and no skip without a reason that was checked."""

import gc
import re
import shutil
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from storage.platform import LINUX
from tests.support.broken_off import starts_broken_off
from tests.support.once import made_once
from tests.support.skip_reasons import ALLOWED

# From cheap to dear; a test ranks by its dearest marker.
_RANKS = {"slow": 1, "crash": 2, "spark": 3, "interop": 4, "long": 5}

# Cheap tests come first. Then those that wait for other programs: at the end of a run, when workers
# have few tests left, no processor waits with them. Within a rank the order is that of files.
_ORDER = ("", "interop", "spark", "crash", "slow", "long")
_PLACES = {_RANKS.get(name, 0): place for place, name in enumerate(_ORDER)}

# How long an example takes says how busy the machine is just then.
settings.register_profile("rmqctl", deadline=None)
settings.register_profile("short", deadline=None, max_examples=20)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("rmqctl")

_DEAR_MODULE = re.compile(
    rf"^pytestmark = \[?\s*pytest\.mark\.({'|'.join(_RANKS)})\b", re.MULTILINE
)
"""A test module in which every test is marked as dear; ``--quick`` does not import it."""

_THREAD_SECONDS = 10
"""How long a thread may take to end after the tests of its module."""

_LONG_SECONDS = 1800
"""On a busy machine; the others have what pyproject.toml says."""

_unexplained: list[str] = []


@pytest.fixture(params=[False, True], ids=["refused", "interrupted"])
def broken_starts(request: pytest.FixtureRequest) -> Callable[..., AbstractContextManager[None]]:
    """``starts_broken_off``, in either way."""
    return partial(starts_broken_off, runs=request.param)


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Callable[[Path], Any]], Any]:
    """``made_once`` for all workers of this run: give a name, and what makes the result."""
    folder = tmp_path_factory.getbasetemp()
    if folder.name.startswith("popen-"):  # a worker's own folder
        folder = folder.parent
    folder /= "once"
    folder.mkdir(exist_ok=True)
    return partial(made_once, folder)


@pytest.fixture(scope="module")
def frozen_objects() -> None:
    """A module that collects garbage again and again looks at its own objects only."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def no_thread_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a module of which a thread still runs some seconds after it: later tests cannot fork.

    Threads of fixtures of the session may stay, and Spark's.
    """
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + _THREAD_SECONDS
    left = [thread for thread in threading.enumerate() if thread not in before and _ours(thread)]
    for thread in left:
        thread.join(max(0, deadline - time.monotonic()))
    names = [thread.name for thread in left if thread.is_alive()]
    assert not names, f"threads of {request.node.name} still run: {', '.join(names)}"


def _ours(thread: threading.Thread) -> bool:
    """Whether Python started it, for code that is not Spark's."""
    target = getattr(thread, "_target", None) or type(thread)
    package = target.__module__.partition(".")[0]
    is_dummy = isinstance(thread, threading._DummyThread)
    return not is_dummy and package not in {"py4j", "pyspark", "socketserver"}


def _missing_for_interop() -> str | None:
    if shutil.which("javac") is None or shutil.which("java") is None:
        return "needs a JDK (java and javac on PATH)"
    if shutil.which("mvn") is None:
        return "needs Maven (mvn on PATH)"
    return None


def _dearest(marks: Iterable[pytest.Mark]) -> int:
    return max((_RANKS.get(mark.name, 0) for mark in marks), default=0)


def _rank(item: pytest.Item) -> int:
    return _dearest(item.iter_markers())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="no slow tests, one sample of each, ten examples: what a commit needs",
    )


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a shell's `&`: children would ignore it
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--quick"):
        settings.load_profile("quick")
    elif "not long" in config.getoption("markexpr"):
        settings.load_profile("short")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--quick") or collection_path.suffix != ".py":
        return None
    return bool(_DEAR_MODULE.search(collection_path.read_text("utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Generator[None]:
    """With ``--quick``: the first sample of a test that is not dear, before more are made."""
    yield
    if metafunc.config.getoption("--quick"):
        calls = metafunc._calls
        calls[:] = sorted(calls, key=lambda call: _dearest(call.marks))[:1]


def _only_quick(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is marked as dear."""
    config.hook.pytest_deselected(items=[item for item in items if _rank(item)])
    items[:] = [item for item in items if not _rank(item)]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        _only_quick(config, items)
    missing = _missing_for_interop()
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(_LONG_SECONDS))
        if missing and item.get_closest_marker("interop"):
            item.add_marker(pytest.mark.skip(reason=missing))
        if item.get_closest_marker("spark") and shutil.which("java") is None:
            item.add_marker(pytest.mark.skip(reason="needs Java (java on PATH)"))
    items.sort(key=lambda item: _PLACES[_rank(item)])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Tests and modules stay to the end: no search for garbage goes through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if not ALLOWED.match(reason) or ("RMQCTL_POSIX" in reason and LINUX):
            _unexplained.append(f"{report.nodeid}: {reason}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _unexplained:
        terminalreporter.write_line(f"skipped without an accepted reason: {line}", red=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unexplained and session.exitstatus in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
