"""Tab in each shell that is installed, on the line that people type most."""

import os
import shutil
import sys

import pytest

from storage.config import SMALL_STORE
from storage.store import MessageStore
from tests.support.cli import ROOT, run
from tests.support.tab_key import shell

pytestmark = [pytest.mark.slow, pytest.mark.feature(139, 140)]

SCRIPTS = ROOT / "completions"
READY = "ready-to-type> "
STARTS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        f"source {SCRIPTS}/rmqctl.bash; PS1='ready-to-''type> '\n",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        f"autoload -Uz compinit; compinit -u -D; source {SCRIPTS}/_rmqctl; "
        "unsetopt prompt_cr prompt_sp; PS1='ready-to-''type> '\n",
    ),
    "fish": (
        ["fish", "--no-config", "-i"],
        f"source {SCRIPTS}/rmqctl.fish; function fish_prompt; echo -n 'ready-to-''type> '; end\n",
    ),
    "pwsh": (
        ["pwsh", "-NoLogo", "-NoProfile"],
        f". {SCRIPTS}/rmqctl.ps1; function prompt {{ 'ready-to-' + 'type> ' }}\n",
    ),
}


@pytest.fixture
def place(tmp_path):
    """A program on PATH and a store with two topics and a group in the working folder."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program = programs / "rmqctl"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m rmqctl "$@"\n')
    program.chmod(0o755)
    store = tmp_path / "home" / "store"
    MessageStore.create(store, SMALL_STORE)
    for topic in ("orders", "payments"):
        run("-S", store, "topic", "create", topic, "--queues", 2)
        run("-S", store, "produce", topic, "-q", stdin=b"x\n")
    run("-S", store, "consume", "orders", "-g", "billing", "--offset", "start", "-c", 1)
    return tmp_path / "home", {"PATH": f"{programs}:{os.environ['PATH']}"}


INSTALLED = [name for name in STARTS if shutil.which(name)]


def test_some_shell_is_installed():
    assert INSTALLED


@pytest.mark.parametrize("name", INSTALLED)
def test_tab_offers_topics_groups_and_queues_of_the_store(name, place):
    folder, env = place
    command, preparation = STARTS[name]
    with shell(command, folder, env) as terminal:
        terminal.type(preparation)
        terminal.wait_for(READY)
        terminal.type("rmqctl consume pay\t")
        terminal.wait_for("rmqctl consume payments")
        terminal.type("-g bil\t")
        terminal.wait_for("billing")
        terminal.type("\x15rmqctl topic list --columns topic,mess\t")
        terminal.wait_for("--columns topic,messages")
        terminal.type("\x15rmqctl topic list --columns=mess\t")
        terminal.wait_for("--columns=messages")
        terminal.type("\x15rmqctl consume \t\t")
        terminal.wait_for("orders", "payments")


@pytest.fixture
def quoted(place):
    """The folder, with a second store in a folder with a blank, which has a topic of its own."""
    folder, _env = place
    store = folder / "my stores" / "s one"
    store.parent.mkdir()
    MessageStore.create(store, SMALL_STORE)
    for topic in ("refunds", "x|y"):
        (store / "consumequeue" / topic).mkdir(parents=True)
    (folder / "plain").symlink_to(store)
    return place


TYPED = {
    'rmqctl -S "my stores/s one" consume re': "consume refunds ",
    "rmqctl -S 'my stores/s one' consume re": "consume refunds ",
    "rmqctl -S my\\ stores/s\\ one consume re": "consume refunds ",
    'rmqctl --store="my stores/s one" consume re': "consume refunds ",
    "rmqctl -S ~/plain consume re": "consume refunds ",
    "rmqctl -S plain consume x\\|": "consume x\\|y ",
    'rmqctl -S plain consume "re': 'consume "refunds" ',
    "rmqctl -S plain consume 're": "consume 'refunds' ",
    'rmqctl -S plain consume "x|': 'consume "x|y" ',
    "rmqctl -S $PWD/plain consume re": "consume refunds ",
    'rmqctl -S "${HOME}/my stores/s one" consume re': "consume refunds ",
    "echo; rmqctl -S plain $unset consume re": "consume refunds ",
    "rmqctl -S '$PWD/plain' consume re": None,
    'rmqctl -S "$(touch ran)plain" consume re': None,
    "rmqctl -S '`touch ran`' consume $(touch ran) re": None,
}
IN_BASH = {
    "rmqctl -S plain topic list --columns='topic,mess": "--columns='topic,messages' ",
    "RMQCTL_RAW=1 rmqctl -S plain consume re": "consume refunds ",
    "rmqctl -S plain consume $HOM": "consume $HOME/",
}
"""What is completed of a line; None: nothing."""


@pytest.mark.parametrize("name", [name for name in INSTALLED if name in {"bash", "zsh"}])
def test_words_before_the_cursor_may_be_quoted(name, quoted):
    folder, env = quoted
    command, preparation = STARTS[name]
    lines = {**TYPED, **(IN_BASH if name == "bash" else {})}
    with shell(command, folder, env) as terminal:
        terminal.type(preparation)
        terminal.wait_for(READY)
        for typed, shown in lines.items():
            terminal.type(f"\x15{typed}\t@end")
            seen = terminal.wait_for("@end").replace(" \b ", " ")
            assert (shown or typed[-5:]) + "@end" in seen, typed
    assert not (folder / "ran").exists()
