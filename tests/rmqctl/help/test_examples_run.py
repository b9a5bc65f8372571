"""Every example of a help text and every line of a cheat sheet runs on a store with its names.

There is no terminal and no input, so a change stays with its plan (7). Examples that go on until
they are ended are parsed (test_man.py, test_cheat.py), and not run.
"""

import shlex

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl import Message
from rmqctl.cli import lazy
from rmqctl.cli.help_text import parts_of
from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.help.cheats import SHEETS
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from tests.support.cli import run
from tests.support.dead_letters import give_back
from tests.support.old_history import extract_history
from tests.support.rich_store import SIZES
from tests.support.shell_lines import calls_in

pytestmark = pytest.mark.slow

CODES = {
    "message trace": 3,  # no client of this store traces
    "dlq redrive readers --resume last": 3,  # nothing was interrupted
    "dlq redrive billing --resume last": 3,
    "dlq ack readers --undo": 3,
    "offset undo 12": 6,  # the group was moved again since
    "store dump 165": 3,  # no record begins there
}
"""Exit codes of examples that find nothing to do here, by the beginnings of their lines."""
OWN_CODES = ("doctor", "lag check")
"""Commands whose exit code is their answer."""


def goes_on(call):
    """Whether a call goes on until it is ended, or takes seconds."""
    line = " ".join(call)
    reads_on = call[0] == "consume" or line.startswith("store tail")
    return (
        "console" in call
        or line.startswith(("bench", "broker start", "lag watch"))
        or (reads_on and "-e" not in call)
        or not {"--rate", "--interval", "--speed", "parquet", "--from-partials"}.isdisjoint(call)
    )


def example_lines():
    """The lines of all examples and cheats."""
    for name, entry in TREE.items():
        leaves = (
            {name: entry}
            if isinstance(entry, CommandRef)
            else {f"{name} {verb}": leaf for verb, leaf in entry.verbs.items()}
        )
        for path, leaf in leaves.items():
            command = lazy.build(path.split()[-1], leaf)
            for part in parts_of(command.help or ""):
                if not isinstance(part, str):
                    for example in part:
                        yield " ".join(line.removesuffix("\\") for line in example.lines)
    for sheet in SHEETS.values():
        yield from sheet.lines.values()


def examples():
    """All calls in them, each once."""
    lines = (shlex.join(call) for line in example_lines() for call in calls_in(line))
    return [shlex.split(line) for line in dict.fromkeys(lines)]


def make_place(place):
    """Files and stores that examples name; gives the ids of messages."""
    work, root = place / "work", place / "disk"
    work.mkdir(parents=True)
    store = work / "store"
    words = make_store(store)
    for name in ("access.log", "cat.png", "dog.png"):
        (work / name).write_text("x\n")
    (work / "p.csv").write_text("id,name\n1,ann\n")
    (work / "topics.csv").write_text("topic\nmade\n")
    for name in ("saved.csv", "plan.csv", "backup.csv"):
        (work / name).write_text("readers,orders,0,1\n")
    for name in ("bill", "bill.sh"):
        (work / name).write_text("#!/bin/sh\nexec cat > /dev/null\n")
        (work / name).chmod(0o755)
    for name, words_of in {
        "orders.jsonl": ("message", "export", "orders", "--save"),
        "orders.raw": ("message", "export", "orders", "--as", "raw", "--save"),
        "now.json": ("lag", "report", "--engine", "local", "-o", "json", "--save"),
    }.items():
        assert run(*words_of, work / name, "-S", store, "-q").code == 0
    extract_history(work).rename(work / "history")
    backup = root / "backup" / "monday"
    backup.parent.mkdir(parents=True)
    assert run("store", "snapshot", "--save", backup, "-S", store, "-q").code == 0
    assert run("store", "init", work / "new", "--small", "-q").code == 0
    for name in ("disk/data/store", "disk/data/prod/store", "disk/mnt/disk/store", "copy", "old"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).symlink_to(store)
    (root / "disks" / "1").mkdir(parents=True)
    (root / "disks" / "1" / "store").symlink_to(store)
    (work / "old").symlink_to(store)
    (root / "var" / "lib").mkdir(parents=True)
    (root / "var" / "log").mkdir(parents=True)
    (root / "var" / "log" / "access.log").write_text("x\n")
    assert run("lag", "record", root / "var" / "lib" / "lag.jsonl", "-S", store).code == 0
    settings = place / "config" / "rmqctl" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'context = "prod"\nstore = "{store}"\n[contexts.prod]\ntz = "UTC"\n')
    return words


def make_store(root):
    """Topics, groups, progress, dead letters, retries and a journal; gives ids."""
    create_store(root, SIZES)
    with EmbeddedBroker.open(root) as broker:
        for topic in ("orders", "greetings", "a", "access"):
            broker.update_topic(TopicConfig(topic, 4, 4))
        for group in ("readers", "readers2", "billing", "audit"):
            broker.update_group(SubscriptionGroupConfig(group))
        sent = [
            broker.send(
                Message("orders", b'{"sum": 101}', keys="order-4711", tags="paid"), number % 4
            )
            for number in range(80)
        ]
        stored = broker.view.get_message("orders", 0, 0, 20).messages
        for group in ("readers", "billing"):
            for message in stored[:19]:
                give_back(broker, group, message)
            give_back(broker, group, stored[19], level=18)
        for number in range(20):
            for group in ("readers", "readers2", "billing", "audit"):
                note = {"command": "offset reset", "user": "ann", "host": "h"}
                broker.progress.move(
                    group, {("orders", queue): number % 3 for queue in range(4)}, note
                )
    return {"id": sent[0].msg_id, "dead": stored[0].msg_id, "waits": stored[19].msg_id}


def in_place(call, place, words):
    """A call with the paths and ids of the place."""
    command = [word for word in call if not word.startswith("-")][:2]
    kind = {"dlq": "dead", "retry": "waits"}.get(command[0], "id")
    found = []
    for word in call:
        if word in ("7F000001000ABC...", "7F0000010BDE18B4AAC2000000000000"):
            word = words[kind]
        elif word.startswith(("/", "'/")):
            word = f"{place}/disk{word}"
        elif word == "FILE":
            word = f"commitlog/{0:020d}"
        elif word == "SNAPSHOT":
            word = f"{place}/disk/backup/monday"
        elif word.endswith("/0000..."):
            word = word.replace("0000...", f"{0:020d}")
        found.append(word)
    if call[:2] == ["lag", "report"] and "--engine" not in call:
        found += ["--engine", "local"]
    return found


def test_there_are_examples_of_every_command():
    assert len(examples()) > 300


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.long)])
def test_every_example_does_what_it_says_on_a_store_with_its_names(tmp_path, monkeypatch, every):
    place = tmp_path / "now"
    words = make_place(place)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(place))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    settings = place / "config" / "rmqctl" / "config.toml"
    text, bad = settings.read_text(), []
    for call in examples()[::every]:
        if goes_on(call):
            continue
        typed = b"topic\nmade\n" if call[-2:] == ["--from-file", "-"] else b""
        result = run(*in_place(call, place, words), stdin=typed, cwd=place / "work")
        line = " ".join(call)
        wanted = {code for begin, code in CODES.items() if line.startswith(begin)} or {0, 7}
        if result.code not in wanted and not line.startswith(OWN_CODES):
            bad.append((line, result.code, result.err[-300:]))
        if call[0] in ("config", "context"):
            settings.write_text(text)
            (place / "work" / "rmqctl.toml").unlink(missing_ok=True)
    assert not bad, "\n".join(map(str, bad))
