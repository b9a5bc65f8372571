"""A home folder that no one knows: a container runs under any number, often without HOME."""

import pytest

from rmqctl.cli.paths import base_folder, expanded
from tests.support.cli import run
from tests.support.users import User, as_user, needs_root, shared_folder

NO_USER = "~no-such-user/s"


def test_an_unknown_home_stays_as_it_is_typed():
    assert str(expanded(NO_USER)) == NO_USER
    assert str(expanded("a/~")) == "a/~"
    assert expanded("~/s").is_absolute()


def test_a_base_folder_is_that_of_its_variable_or_below_the_home():
    assert str(base_folder({"XDG_DATA_HOME": "/d"}, "XDG_DATA_HOME", ".local/share")) == "/d"
    assert base_folder({}, "XDG_DATA_HOME", ".local/share") == expanded("~/.local/share")


@pytest.mark.parametrize(
    "words",
    [
        ["topic", "list", "-S", NO_USER],
        ["topic", "list", "--config", NO_USER],
        ["lag", "report", "--engine", "local", "-S", NO_USER],
        ["lag", "show", "--compare", NO_USER],
        ["store", "init", "-n", NO_USER],
        ["store", "restore", NO_USER, "x"],
        ["store", "diff", NO_USER, NO_USER],
        ["store", "dump", NO_USER],
        ["store", "snapshot", "--verify", NO_USER],
        ["offset", "diff", NO_USER, NO_USER],
    ],
    ids=" ".join,
)
def test_a_path_below_an_unknown_home_is_answered_in_a_sentence(words, tmp_path):
    assert run("store", "init", tmp_path / "s").code == 0
    result = run(*words, env={"RMQCTL_STORE": str(tmp_path / "s")}, cwd=tmp_path)
    assert "internal error" not in result.err
    assert result.code in (0, 2, 3, 4), result.err


@needs_root
def test_a_user_without_name_and_home_reads_a_store(monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with shared_folder() as folder:
        assert run("store", "init", folder / "s").code == 0
        monkeypatch.chdir(folder)
        code, err = as_user(User(54_321, 54_321), listed, folder / "s")
    assert code == 0, err


def listed(root):
    result = run("topic", "list", "-S", root)
    return result.code, result.err
