"""Commands that look at a store import no more than they need: start-up time is the modules."""

import re

import pytest

from tests.support.cli import run, start

HEAVY = {"numpy", "rich", "yaml", "asyncio", "concurrent.futures", "multiprocessing"}
LIGHT = [
    *(["topic", "list"], ["topic", "queues"], ["topic", "describe", "t"], ["offset", "list"]),
    *(
        ["message", "get", "-t", "t", "-Q", "0", "-O", "0"],
        ["store", "info"],
        ["store", "dump", "0"],
    ),
    *(["topic", "create", "u"], ["store", "init", "new"]),
]


def modules_of(*args):
    with start(*args, python=["-X", "importtime"]) as process:
        _, err = process.communicate(b"")
    assert process.returncode == 0, err[-500:]
    return set(re.findall(r"\| +([\w.]+)\n", err.decode()))


@pytest.mark.parametrize("args", LIGHT, ids=" ".join)
def test_nothing_heavy_is_imported(store, args):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    modules = modules_of(*args)
    assert "rmqctl.context" in modules
    assert not modules & HEAVY
    assert len(modules) <= 330


def test_changing_topics_imports_no_writer(store):
    assert not modules_of("topic", "create", "u") & {
        "storage.writing.append",
        "storage.recovery.store",
    }
