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
