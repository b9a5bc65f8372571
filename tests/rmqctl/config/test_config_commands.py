"""``config`` and ``context``: the next command uses what was set."""

import os

import pytest

from tests.support.cli import run
from tests.support.users import CAP_DAC_OVERRIDE, User, as_user


@pytest.fixture
def file(own_home):
    """The user's settings file."""
    return own_home / "rmqctl/config.toml"


def values(*options, **kwargs):
    rows = run("config", "show", "--origin", "-o", "jsonl", *options, **kwargs).lines
    import json

    return {row["setting"]: (row["value"], row["origin"]) for row in map(json.loads, rows)}


@pytest.mark.feature(128)
def test_what_is_set_holds_for_the_next_command(file, store):
    run("produce", "t", "-q", stdin=b"x\n")
    assert run("config", "set", "output", "json").code == 0
    assert run("config", "set", "tz", "UTC").code == 0
    assert run("topic", "list", "--where", "topic = t").json()[0]["topic"] == "t"
    assert values()["tz"] == ("UTC", str(file))
    assert run("config", "set", "output", "--unset").code == 0
    assert run("topic", "list", "--where", "topic = t").lines[0].startswith("topic\tkind")


def test_comments_of_the_file_stay(file):
    file.parent.mkdir()
    file.write_text('# mine\ntz = "UTC" # why\n')
    assert run("config", "set", "tz", "Asia/Tokyo").code == 0
    assert file.read_text() == '# mine\ntz = "Asia/Tokyo" # why\n'


def test_show_tells_what_is_strongest(file, own_home, tmp_path):
    run("config", "set", "tz", "UTC")
    run("config", "set", "color", "never")
    run("config", "set", "tz", "Asia/Tokyo", "--project")
    said = values("--timeout", "9s", env={"RMQCTL_REASON": "why"})
    assert said["tz"] == ("Asia/Tokyo", str(own_home / "rmqctl.toml"))
    assert said["color"] == ("never", str(file))
    assert said["reason"] == ("why", "variable RMQCTL_REASON")
    assert said["timeout"] == ("9s", "option --timeout")
    assert said["progress"] == ("auto", "built-in")
    assert said["store"][1] == "the user's data folder"


def test_a_warning_says_when_something_stronger_wins(own_home):
    run("config", "set", "tz", "Asia/Tokyo", "--project")
    result = run("config", "set", "tz", "UTC")
    assert f"warning: {own_home / 'rmqctl.toml'} overrides" in result.err


def test_get_prints_the_bare_value_for_scripts(store):
    assert run("config", "get", "store").out == f"{store}\n"
    row = run("config", "get", "store", "-o", "json").json()
    assert (row["setting"], row["origin"]) == ("store", "variable RMQCTL_STORE")
    result = run("config", "get", "tz")
    assert (result.code, result.raw) == (3, b"")
    assert "tz is not set" in result.err


@pytest.mark.feature(145)
@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["set", "outptu", "json"], "no setting 'outptu'; did you mean 'output'?"),
        (["get", "stroe"], "did you mean 'store'?"),
        (["set", "output", "jsn"], "'jsn' is not one of table, wide"),
        (["set", "output", "help"], "'help' is not one of"),
        (["set", "color", "red"], "'red' is not one of auto, always, never"),
        (["set", "raw", "perhaps"], "raw must be true or false"),
        (["set", "timeout", "soon"], "timeout: "),
        (["set", "tz", "Mars/Olympus"], "tz: "),
        (["set", "tz"], "missing argument 'VALUE'"),
        (["set", "tz", "UTC", "--unset"], "VALUE and --unset"),
        (["set", "tz", "UTC", "--user", "--project"], "exclude each other"),
    ],
)
def test_what_can_not_be_set_is_one_sentence(file, args, sentence):
    result = run("config", *args)
    assert (result.code, result.raw) == (2, b"")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert not file.exists()


@pytest.mark.parametrize("layer", ["--user", "--project", "--system"])
def test_a_named_file_excludes_the_other_files(tmp_path, layer):
    named = tmp_path / "named.toml"
    named.write_text("")
    others = tmp_path / "system"
    env = {"XDG_CONFIG_DIRS": str(others)}
    result = run("--config", named, "config", "set", "tz", "UTC", layer, env=env)
    assert (result.code, named.read_text(), others.exists()) == (2, "", False)
    assert f"{layer} and --config {named} exclude each other" in result.err


def test_settings_of_the_system_need_a_folder():
    result = run("config", "set", "tz", "UTC", "--system", env={"XDG_CONFIG_DIRS": ":"})
    assert result.code == 2
    assert "XDG_CONFIG_DIRS names none" in result.err


@pytest.mark.parametrize(
    "given", [("-S", "/a", "store=/b"), ("store=/a", "store=/b"), ("tz=UTC", "tz=CET")]
)
def test_a_context_with_a_setting_given_twice_is_refused(file, given):
    result = run("context", "add", "prod", *given)
    assert result.code == 2
    assert "is given twice; give it once" in result.err
    assert not file.exists()


def test_an_unknown_variable_is_warned_of_with_the_nearest_setting():
    result = run("config", "show", env={"RMQCTL_STROE": "/x"})
    assert "unknown variable RMQCTL_STROE; did you mean 'store'?" in result.err


def test_variables_that_are_no_settings_are_known():
    result = run(
        "config", "show", env={"RMQCTL_PURE": "1", "RMQCTL_POSIX": "1", "RMQCTL_SPARK_JVM": "x"}
    )
    assert (result.code, result.err) == (0, "")
    # Properties of messages have such names, but nothing sets or reads a variable of them.
    result = run("config", "show", env={"RMQCTL_REDRIVES": "1"})
    assert "unknown variable RMQCTL_REDRIVES" in result.err


def test_a_dry_run_writes_nothing(file):
    result = run("config", "set", "tz", "UTC", "-n", "-o", "json")
    assert (result.json()["old"], result.json()["new"]) == (None, "UTC")
    assert not file.exists()


def test_files_are_listed_the_strongest_first(file, own_home):
    run("config", "set", "tz", "UTC")
    rows = run("config", "path", "-o", "json").json()
    assert [(row["layer"], row["exists"], row["settings"]) for row in rows] == [
        ("project", False, None),
        ("user", True, 1),
        ("system", True, 1),  # the same folder in these tests
    ]
    assert rows[0]["path"] == str(own_home / "rmqctl.toml")
    run("config", "set", "raw", "true", "--config", file)
    rows = run("config", "path", "-o", "json", "--config", file).json()
    assert (rows[0]["layer"], rows[0]["settings"]) == ("option", 2)


def test_a_link_to_the_file_stays_one_with_its_permissions(file, tmp_path):
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o600)
    file.parent.mkdir()
    file.symlink_to(real)
    assert run("config", "set", "tz", "UTC").code == 0
    assert file.is_symlink()
    assert real.read_text() == 'tz = "UTC"\n'
    assert real.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
@pytest.mark.feature(141)
def test_a_context_takes_the_commands_to_its_store(store, monkeypatch):
    run("produce", "t", "-q", stdin=b"x\n")
    monkeypatch.delenv("RMQCTL_STORE")
    assert run("context", "add", "prod", "-S", store, "tz=UTC", "no-input=true").code == 0
    assert run("topic", "queues", "t").code == 3
    assert run("topic", "queues", "t", "--context", "prod").code == 0
    assert run("context", "use", "prod").code == 0
    assert run("topic", "queues", "t").code == 0
    row = run("context", "show", "-o", "json").json()
    assert (row["context"], row["in_use"], row["store"]) == ("prod", True, str(store))
    assert row["settings"] == {"store": str(store), "tz": "UTC", "no_input": True}
    assert run("context", "use", "--none").code == 0
    assert run("topic", "queues", "t").code == 3
    assert run("context", "show").code == 3


def test_a_setting_of_a_context_can_be_changed(file):
    run("context", "add", "prod")
    assert run("config", "set", "tz", "UTC", "--context", "prod").code == 0
    assert run("context", "show", "prod", "-o", "json").json()["settings"] == {"tz": "UTC"}
    assert file.read_text() == '[contexts.prod]\ntz = "UTC"\n'
    assert run("config", "set", "tz", "UTC", "--context", "pord").code == 2


def test_a_context_that_goes_is_not_used_any_more():
    run("context", "add", "prod", "tz=UTC")
    run("context", "add", "test")
    run("context", "use", "prod")
    result = run("context", "rm", "prod")
    assert result.code == 0
    assert "no longer uses a context" in result.err
    rows = run("context", "list", "-o", "json").json()
    assert [(row["context"], row["in_use"]) for row in rows] == [("test", False)]


@pytest.mark.parametrize(
    "command", [["context", "use", "--none"], ["config", "set", "context", "--unset"]]
)
def test_a_context_that_is_no_more_can_still_be_taken_back(file, command):
    file.parent.mkdir()
    file.write_text('context = "gone"\n')
    assert run("version").code == 2
    result = run(*command)
    assert (result.code, file.read_text()) == (0, "")
    assert "warning: no context 'gone'" in result.err
    assert run("version").code == 0


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["use", "prdo"], 3, "no context 'prdo'; did you mean 'prod'?"),
        (["show", "x"], 3, "no context 'x' (see 'rmqctl context list')"),
        (["rm", "x"], 3, "no context 'x'"),
        (["add", "prod"], 7, "context prod exists"),
        (["add", "x", "tz"], 2, "'tz' is not SETTING=VALUE"),
        (["add", "x", "zt=UTC"], 2, "no setting 'zt'"),
        (["add", "x", "context=prod"], 2, "is not SETTING=VALUE"),
        (["add", "a\nb"], 2, "is not a valid context name"),
        (["use"], 2, "missing argument 'NAME'"),
    ],
)
def test_contexts_that_can_not_be(args, code, sentence):
    run("context", "add", "prod")
    result = run("context", *args)
    assert (result.code, result.raw) == (code, b"")
    assert sentence in result.err
    assert result.err.count("\n") == 1


WRONG = [
    ("output", "xml", "'xml' is not a format"),
    ("output", "help", "'help' is not a format (one of table, "),
    ("tz", "Nowhere/At/All", "'Nowhere/At/All' is not a time zone"),
    ("color", "red", "'red' is not one of auto, always, never"),
    ("progress", "much", "'much' is not one of auto, plain, none"),
    ("log_format", "xml", "'xml' is not one of text, json"),
    ("timeout", "30", "'30' has no unit"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_an_error_of_a_setting_names_where_it_is_set(file, store, name, value, sentence):
    def refused(**env):
        result = run("topic", "create", "made", "-q", env=env)
        assert result.code == 2
        assert f"--{name.replace('_', '-')}:" not in result.err
        assert not result.raw
        return result.err

    variable = f"RMQCTL_{name.upper()}"
    assert f"rmqctl: variable {variable}: {sentence}" in refused(**{variable: value})
    file.parent.mkdir()
    file.write_text(f'{name} = "{value}"\n')
    assert f"rmqctl: {file}: {name}: {sentence}" in refused()
    file.write_text(f'context = "c"\n[contexts.c]\n{name} = "{value}"\n')
    assert f"rmqctl: context c in {file}: {name}: {sentence}" in refused()
    file.unlink()
    assert run("topic", "list", "--where", "topic = made").out.count("made") == 0


@pytest.mark.parametrize(("name", "value", "sentence"), WRONG)
def test_a_wrong_setting_is_shown_and_put_right(file, name, value, sentence):
    file.parent.mkdir()
    file.write_text(f'{name} = "{value}"\n')
    shown = run("config", "show", "--columns", "setting,value,origin")
    assert f"{name}\t{value}\t{file}" in shown.lines
    assert run("config", "get", name).out == f"{value}\n"
    assert run("context", "add", "c").code == 0
    assert run("context", "use", "c").code == 0
    assert run("context", "rm", "c").code == 0
    right = {"output": "json", "tz": "UTC", "log_format": "json", "timeout": "9s"}
    result = run("config", "set", name, right.get(name, "auto"))
    assert (result.code, result.err) == (0, "")
    assert value not in file.read_text()
    assert run("version").code == 0


def test_a_wrong_option_is_refused_beside_a_wrong_setting(file):
    file.parent.mkdir()
    file.write_text('output = "xml"\n')
    assert "--output: 'yml' is not a format" in run("config", "show", "-o", "yml").err
    assert "--timeout: '3' has no unit" in run("config", "show", "--timeout", "3").err


ME = User(os.geteuid(), os.getegid(), without=(CAP_DAC_OVERRIDE,))
"""This user, and not above permissions."""


@pytest.fixture
def files_of_two(file, tmp_path, monkeypatch):
    """The user's file, and one of the system in a folder in which this user may write nothing."""
    system = tmp_path / "etc/rmqctl/config.toml"
    for path in (file, system):
        path.parent.mkdir(parents=True)
        path.write_text('context = "prod"\ntz = "UTC"\n[contexts.prod]\noutput = "json"\n')
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "etc"))
    system.parent.chmod(0o555)
    yield file, system
    system.parent.chmod(0o755)


def test_a_context_goes_from_the_files_that_can_be_written(files_of_two):
    file, system = files_of_two
    before = system.read_text()
    sentence = f"settings file {system} cannot be written: Permission denied"
    result = as_user(ME, run, "context", "rm", "prod", "-o", "jsonl", "-q")
    assert (result.code, system.read_text(), file.read_text()) == (8, before, 'tz = "UTC"\n')
    assert result.json()["files"] == [str(file)]
    assert result.err == f"rmqctl: context prod is removed from 1 of 2 files: {sentence}\n"
    again = as_user(ME, run, "context", "rm", "prod")
    assert (again.code, again.raw, system.read_text()) == (5, b"", before)
    assert again.err == f"rmqctl: {sentence}\n"


def test_only_a_file_that_was_written_no_longer_uses_the_context(files_of_two):
    file, system = files_of_two
    said = as_user(ME, run, "context", "rm", "prod").err
    assert f"{file} no longer uses a context\n" in said
    assert f"{system} no longer" not in said


def test_a_context_is_added_to_a_file_with_an_empty_table_of_them(file):
    file = file.with_suffix(".yaml")
    file.parent.mkdir()
    file.write_text("tz: UTC\ncontexts:\n")
    assert run("context", "rm", "prod").code == 3
    assert run("context", "add", "prod", "tz=UTC").code == 0
    assert run("context", "show", "prod", "-o", "json").json()["settings"] == {"tz": "UTC"}
