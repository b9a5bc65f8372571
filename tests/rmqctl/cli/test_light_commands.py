"""Commands that read a store import no more than they need: start-up time is the modules."""

import re

import pytest

from tests.support.cli import ROOT, run, start
from tests.support.examples import one_in

HEAVY = {"numpy", "rich", "yaml", "asyncio", "concurrent.futures", "multiprocessing"}
FOR_OTHERS = {"hashlib", "storage.store", "storage.append.append", "broker.send.send"}
"""What those need that change a store."""
LOOKS = [
    *(["topic", "list"], ["topic", "queues"], ["topic", "describe", "t"], ["offset", "list"]),
    *(
        ["message", "get", "-t", "t", "-Q", "0", "-O", "0"],
        ["store", "info"],
        ["store", "dump", "0"],
    ),
    *(["explain", "4"], ["cheat", "reset"], ["man", "topic", "list"], ["mqadmin"], ["doctor"]),
    *(["offset", "inspect"], ["offset", "inspect", "-o", "json"], ["offset", "export"]),
    *(["offset", "history"], ["audit", "list"], ["offset", "orphans"]),
    *(["lag", "show"], ["message", "query", "-k", "k", "-t", "t"], ["dlq", "list"]),
]
PACKAGES = {
    ".".join(path.parent.relative_to(ROOT).parts)
    for package in ("rmqctl", "analytics", "client", "broker", "storage")
    for path in (ROOT / package).rglob("__init__.py")
}
"""They hold a docstring each, and are not counted."""


def modules_of(*args, env=None):
    with start(*args, python=["-X", "importtime"], env=env) as process:
        _, err = process.communicate(b"")
    assert process.returncode == 0, err[-500:]
    return set(re.findall(r"\| +([\w.]+)\n", err.decode()))


@pytest.mark.feature(148)
@pytest.mark.parametrize("args", one_in(2, LOOKS), ids=" ".join)
@pytest.mark.slow
def test_nothing_heavy_is_imported(store, args):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    modules = modules_of(*args)
    assert "rmqctl.cli.context" in modules
    assert not modules & (HEAVY | FOR_OTHERS)
    assert len(modules - PACKAGES) <= 276


@pytest.mark.slow
@pytest.mark.parametrize("args", [["topic", "create", "u"], ["store", "init", "new"]], ids=" ".join)
def test_changing_settings_imports_nothing_heavy(store, args):
    modules = modules_of(*args)
    assert not modules & HEAVY
    assert len(modules) <= 340


@pytest.mark.slow
def test_changing_topics_imports_no_writer(store):
    assert not modules_of("topic", "create", "u") & {
        "storage.append.append",
        "storage.recovery.store",
    }


@pytest.mark.slow
def test_moving_progress_imports_no_recovery_no_services_and_no_client(store):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    for args in (
        [
            "offset",
            "reset",
            "-g",
            "g",
            "-t",
            "t",
            "--to-latest",
            "--new-group",
            "--execute",
            "--yes",
        ],
        ["offset", "undo", "--last", "--execute", "--yes"],
        ["resetOffsetByTime", "-g", "g", "-t", "t", "-s", "now", "--new-group", "--yes"],
    ):
        modules = modules_of(*args)
        assert not modules & HEAVY
        assert not modules & {
            *("storage.recovery.store", "client", "broker.members.manager"),
            *("broker.schedule.schedule", "broker.embedded.timed_services"),
        }


@pytest.mark.parametrize(
    "args",
    [["produce", "t"], ["consume", "t", "-e"], ["consume", "t", "-e", "-g", "g", "--no-commit"]],
    ids=" ".join,
)
@pytest.mark.slow
def test_who_joins_no_group_imports_no_client(store, args):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    modules = modules_of(*args)
    unwanted = {"client", "broker.members.manager", "broker.schedule.schedule", "sortedcontainers"}
    assert [name for name in modules if name in unwanted or name.startswith("client.")] == []


@pytest.mark.slow
def test_one_message_is_sent_without_logs(store):
    modules = modules_of("produce", "t")
    assert [name for name in modules if name in {"logging", "broker.pull.pull"}] == []


@pytest.mark.slow
def test_a_member_imports_no_more_than_it_needs(store, tmp_path):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    # One that stays for longer runs services, too: on a slow machine also this one.
    patient = "import rmqctl.cli.services\nrmqctl.cli.services.AFTER_S = 60\n"
    (tmp_path / "sitecustomize.py").write_text(patient)
    modules = modules_of("consume", "t", "-g", "g", "-e", env={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert "client.push.push_consumer" in modules
    unwanted = HEAVY | {
        "client.producer.producer",
        "broker.schedule.schedule",
        "client.trace.trace",
        "typer.rich_utils",
    }
    assert [name for name in modules if name in unwanted] == []
