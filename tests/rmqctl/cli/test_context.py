import io
import sys

import pytest

from rmqctl.cli.context import Cli
from rmqctl.errors import Refused
from storage.store import MessageStore


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def environ(here, **more):
    return {
        "XDG_CONFIG_HOME": str(here / "none"),
        "XDG_CONFIG_DIRS": str(here / "none"),
        "XDG_DATA_HOME": str(here / "data"),
        **more,
    }


def test_the_store_is_option_variable_context_folder_or_the_users_own(here):
    assert Cli(environ(here)).store == (here / "data/rmqctl/store", False, "the user's data folder")
    (here / "store").mkdir()
    assert not Cli(environ(here)).store.named  # a folder of that name that is no store
    (here / "store/commitlog").mkdir()
    assert Cli(environ(here)).store[:2] == (here / "store", True)
    (here / "rmqctl.toml").write_text('context = "a"\n[contexts.a]\nstore = "from-context"\n')
    assert Cli(environ(here)).store[:2] == (here / "from-context", True)
    cli = Cli(environ(here, RMQCTL_STORE="from-variable"))
    assert cli.store[:2] == (here / "from-variable", True)
    cli = Cli(environ(here, RMQCTL_STORE="from-variable"))
    cli.remember("store", ("first",))
    cli.remember("store", ("second",))
    assert cli.store == (here / "second", True, "option --store")


def test_a_store_without_a_message_is_one(here):
    MessageStore.create(here / "store")
    assert Cli(environ(here)).store.path == here / "store"


@pytest.mark.parametrize(
    ("variables", "choice", "expected"),
    [
        ({}, None, False),
        ({"FORCE_COLOR": "1"}, None, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, None, False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "never", False),
    ],
)
def test_colour(here, variables, choice, expected):
    cli = Cli(environ(here, **variables))
    if choice:
        cli.remember("color", choice)
    assert cli.colored(io.StringIO()) is expected


def test_no_color_is_color_never(here):
    cli = Cli(environ(here, FORCE_COLOR="1"))
    cli.remember("no_color", True)
    assert not cli.colored(io.StringIO())


@pytest.mark.feature(144)
def test_a_change_without_terminal_needs_yes(here, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    with pytest.raises(Refused, match="--yes"):
        Cli(environ(here)).confirm("Do it?")
    cli = Cli(environ(here))
    cli.remember("yes", True)
    cli.confirm("Do it?")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.feature(144)
@pytest.mark.parametrize(
    ("answer", "agreed"), [("y\n", True), ("YES\n", True), ("\n", False), ("", False)]
)
def test_on_a_terminal_the_user_is_asked(here, monkeypatch, answer, agreed):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    cli = Cli(environ(here))
    if agreed:
        cli.confirm("Do it?")
    else:
        with pytest.raises(Refused, match="not confirmed"):
            cli.confirm("Do it?")
    cli = Cli(environ(here))
    cli.remember("no_input", True)
    with pytest.raises(Refused, match="--yes"):
        cli.confirm("Do it?")


@pytest.mark.parametrize("lends_stdout", [False, True])
@pytest.mark.parametrize("stdout", [Terminal, io.StringIO])
def test_no_bar_on_a_terminal_that_programs_print_to(here, monkeypatch, stdout, lends_stdout):
    monkeypatch.setattr(sys, "stdout", stdout())
    monkeypatch.setattr(sys, "stderr", Terminal())
    progress = Cli(environ(here)).progress("consume", "messages", lends_stdout=lends_stdout)
    assert (progress.style == "none") == (lends_stdout and stdout is Terminal)


def test_the_default_format_is_a_table_on_a_terminal_and_plain_elsewhere(here, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert Cli(environ(here)).view.format == "table"
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    assert Cli(environ(here)).view.format == "plain"
