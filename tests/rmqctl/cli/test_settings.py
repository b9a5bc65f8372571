import os
from pathlib import Path

import pytest

from rmqctl.cli.settings import KEYS, Place, Settings, parse_settings
from rmqctl.errors import UsageProblem


@pytest.fixture
def place(tmp_path):
    """A home, a system folder and a working folder two levels below a project."""
    for name in ("home/rmqctl", "system/rmqctl", "project/sub/deep"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def settings(place: Path, options=None, warnings=None, **environ):
    environ = {
        "XDG_CONFIG_HOME": str(place / "home"),
        "XDG_CONFIG_DIRS": str(place / "system"),
        **environ,
    }
    warn = (warnings if warnings is not None else []).append
    return Settings(options or {}, environ, place / "project/sub/deep", warn)


def write_all(place):
    (place / "system/rmqctl/config.toml").write_text('tz = "UTC"\noutput = "csv"\n')
    (place / "home/rmqctl/config.yaml").write_text("tz: Europe/Berlin\noutput: yaml\n")
    (place / "project/rmqctl.toml").write_text('tz = "+08:00"\n')


def test_each_layer_beats_the_one_below(place):
    write_all(place)
    assert settings(place, {"tz": "A"}, RMQCTL_TZ="B").get("tz") == ("A", "option --tz")
    assert settings(place, RMQCTL_TZ="B").get("tz") == ("B", "variable RMQCTL_TZ")
    assert settings(place).get("tz") == ("+08:00", str(place / "project/rmqctl.toml"))
    (place / "project/rmqctl.toml").unlink()
    assert settings(place).get("tz") == ("Europe/Berlin", str(place / "home/rmqctl/config.yaml"))
    (place / "home/rmqctl/config.yaml").unlink()
    assert settings(place).get("tz") == ("UTC", str(place / "system/rmqctl/config.toml"))
    (place / "system/rmqctl/config.toml").unlink()
    assert settings(place).get("tz") is None


def test_a_file_that_does_not_set_it_lets_the_next_one_speak(place):
    write_all(place)
    assert settings(place).get("output").value == "yaml"


@pytest.mark.feature(141)
def test_a_context_stands_between_variables_and_files(place):
    write_all(place)
    (place / "home/rmqctl/config.yaml").write_text("contexts: {prod: {tz: Asia/Tokyo}}\n")
    assert settings(place, {"context": "prod"}).get("tz").value == "Asia/Tokyo"
    assert "context prod" in settings(place, {"context": "prod"}).get("tz").origin
    assert settings(place, RMQCTL_CONTEXT="prod", RMQCTL_TZ="B").get("tz").value == "B"
    typed = settings(place, {"context": "prod"}, RMQCTL_TZ="B").get("tz")
    assert typed.value == "Asia/Tokyo", "what is typed beats the environment"
    assert settings(place, RMQCTL_CONTEXT="prod").get("tz").value == "Asia/Tokyo"
    (place / "system/rmqctl/config.toml").write_text('context = "prod"\n')
    assert settings(place).get("tz").value == "Asia/Tokyo"


def test_an_unknown_context_lists_the_known(place):
    (place / "project/rmqctl.toml").write_text("[contexts.prod]\ntz = 'UTC'\n")
    with pytest.raises(UsageProblem, match="no context 'pord' .known: prod"):
        settings(place, {"context": "pord"}).get("tz")


def test_unknown_keys_warn_with_the_nearest(place):
    warnings: list[str] = []
    (place / "project/rmqctl.toml").write_text('outptu = "json"\nfoo = 1\n')
    assert settings(place, warnings=warnings).get("output") is None
    assert "unknown setting 'outptu'" in warnings[0]
    assert "did you mean 'output'" in warnings[0]
    assert warnings[1].endswith("rmqctl.toml")
    assert len(warnings) == 2


def test_paths_in_a_file_are_relative_to_it(place):
    (place / "project/.rmqctl.yaml").write_text("store: data/store\n")
    assert settings(place).get("store").value == str(place / "project/data/store")


def test_a_file_named_on_the_command_line_replaces_project_and_user(place):
    write_all(place)
    (place / "other.toml").write_text("raw = true\n")
    named = settings(place, {"config": str(place / "other.toml")})
    assert named.get("raw").value is True
    assert named.get("tz").value == "UTC"
    with pytest.raises(UsageProblem, match="no settings file"):
        settings(place, {"config": str(place / "none.toml")}).get("tz")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rmqctl.toml", "tz = "),
        ("rmqctl.toml", "raw = 'yes'"),
        ("rmqctl.toml", "contexts = 3"),
        ("rmqctl.toml", "[tz]\nx = 1"),
        (".rmqctl.yaml", "a: b: c"),
        (".rmqctl.yaml", "- a"),
        (".rmqctl.yml", "\x00"),
    ],
)
def test_a_malformed_file_is_one_sentence_with_its_name(place, name, text):
    (place / "project" / name).write_text(text)
    with pytest.raises(UsageProblem, match=name) as caught:
        settings(place).get("tz")
    assert "\n" not in str(caught.value)


def test_variables_are_read_as_their_kind(place):
    assert settings(place, RMQCTL_RAW="1").get("raw").value is True
    assert settings(place, RMQCTL_RAW="no").get("raw").value is False
    assert settings(place, RMQCTL_RAW="").get("raw") is None
    with pytest.raises(UsageProblem, match="RMQCTL_RAW must be true or false"):
        settings(place, RMQCTL_RAW="perhaps").get("raw")


@pytest.mark.parametrize("text", ["1", "true", "yes", "on", " ON "])
def test_each_word_for_true_is_read(place, text):
    assert settings(place, RMQCTL_QUIET=text).get("quiet").value is True


@pytest.mark.parametrize("text", ["0", "false", "no", "off", " OFF "])
def test_each_word_for_false_is_read(place, text):
    assert settings(place, RMQCTL_QUIET=text).get("quiet").value is False


def test_some_settings_are_variables_only(place):
    (place / "project/rmqctl.toml").write_text("debug = true\n")
    warnings: list[str] = []
    assert settings(place, warnings=warnings).get("debug") is None
    assert "unknown setting 'debug'" in warnings[0]
    assert settings(place, RMQCTL_DEBUG="yes").get("debug") == (True, "variable RMQCTL_DEBUG")
    assert settings(place, RMQCTL_DRY_RUN="no").get("dry_run").value is False
    assert settings(place, RMQCTL_OTHER="x").get("other") is None


def test_colour_has_the_variables_of_other_programs(place):
    assert settings(place, NO_COLOR="1").get("color") == ("never", "variable NO_COLOR")
    assert settings(place, FORCE_COLOR="1").get("color") == ("always", "variable FORCE_COLOR")
    assert settings(place, NO_COLOR="", FORCE_COLOR="").get("color") is None
    both = settings(place, NO_COLOR="1", RMQCTL_COLOR="auto")
    assert both.get("color") == ("auto", "variable RMQCTL_COLOR")
    assert settings(place, NO_COLOR="1").get("tz") is None


def test_an_option_is_named_as_it_is_typed(place):
    assert settings(place, {"no_input": False}).get("no_input") == (False, "option --no-input")
    assert settings(place, {"no_input": None}).get("no_input") is None


@pytest.fixture
def other(place):
    """A file with a time zone, a context in use and its table, beside those of ``write_all``."""
    write_all(place)
    path = place / "other.toml"
    path.write_text('context = "c"\ntz = "F"\noutput = "json"\n[contexts.c]\ntz = "C"\n')
    return path


def test_a_typed_file_and_the_context_that_it_names_beat_variables(place, other):
    named = settings(place, {"config": str(other)}, RMQCTL_TZ="V", RMQCTL_OUTPUT="tsv")
    assert named.get("tz") == ("C", f"context c in {other}")
    assert named.get("output") == ("json", str(other))
    assert named.get("context") == ("c", str(other))
    assert named.context_name() == "c"


def test_a_typed_context_beats_a_typed_file(place, other):
    other.write_text('tz = "F"\noutput = "json"\n[contexts.d]\ntz = "D"\n')
    typed = settings(place, {"config": str(other), "context": "d"}, RMQCTL_TZ="V")
    assert typed.get("tz").value == "D"
    assert typed.get("output").value == "json"


def test_a_context_of_the_environment_is_below_a_typed_file_and_variables(place, other):
    other.write_text('tz = "F"\n[contexts.d]\ntz = "D"\noutput = "csv"\n')
    given = settings(place, {"config": str(other)}, RMQCTL_CONTEXT="d", RMQCTL_OUTPUT="tsv")
    assert given.get("tz") == ("F", str(other))
    assert given.get("output") == ("tsv", "variable RMQCTL_OUTPUT")
    assert given.get("context") == ("d", "variable RMQCTL_CONTEXT")
    assert settings(place, {"config": str(other)}, RMQCTL_CONTEXT="d").get("output").value == "csv"


def test_a_file_of_the_environment_is_below_variables(place, other):
    given = settings(place, RMQCTL_CONFIG=str(other), RMQCTL_TZ="V")
    assert given.get("tz").value == "V"
    assert given.get("output").value == "json"
    assert settings(place, RMQCTL_CONFIG=str(other)).get("tz").value == "C"


def test_a_context_of_a_file_is_used_until_a_stronger_one_is_named(place):
    (place / "system/rmqctl/config.toml").write_text('context = "a"\n[contexts.a]\ntz = "A"\n')
    (place / "home/rmqctl/config.toml").write_text('context = "b"\n[contexts.b]\ntz = "B"\n')
    assert settings(place).get("context") == ("b", str(place / "home/rmqctl/config.toml"))
    assert settings(place).get("tz").value == "B"
    assert settings(place, RMQCTL_CONTEXT="a").get("tz").value == "A"
    assert settings(place, {"context": "a"}, RMQCTL_CONTEXT="b").get("context").value == "a"


def test_without_a_context_there_is_no_layer_of_one(place):
    assert settings(place).context_name() is None
    assert settings(place).context_layers() == []
    assert settings(place).get("context") is None


def test_an_unknown_context_without_any_file_says_so(place):
    with pytest.raises(UsageProblem, match="no context 'x' .no settings file defines any"):
        settings(place, RMQCTL_CONTEXT="x").get("tz")


def test_an_unknown_context_of_a_file_is_a_warning_where_settings_are_corrected(place):
    (place / "project/rmqctl.toml").write_text('context = "gone"\ntz = "T"\n')
    with pytest.raises(UsageProblem, match="no context 'gone'"):
        settings(place).get("tz")
    warnings: list[str] = []
    correcting = settings(place, warnings=warnings)
    correcting.corrects = True
    assert correcting.get("tz").value == "T"
    assert correcting.get("output") is None
    assert len(warnings) == 1
    assert warnings[0].startswith("no context 'gone'")
    typed = settings(place, {"context": "typed"})
    typed.corrects = True
    with pytest.raises(UsageProblem, match="no context 'typed'"):
        typed.get("tz")


def test_a_context_of_elsewhere_does_not_refuse_a_typed_file(place):
    (place / "other.toml").write_text('tz = "F"\n')
    warnings: list[str] = []
    named = settings(
        place, {"config": str(place / "other.toml")}, warnings, RMQCTL_CONTEXT="elsewhere"
    )
    assert named.get("tz").value == "F"
    assert named.get("output") is None
    assert [one.partition(" (")[0] for one in warnings] == ["no context 'elsewhere'"]


def test_the_places_of_files_are_listed_with_those_that_are_missing(place):
    found = settings(place).places()
    assert found == [
        Place("project", place / "project/sub/deep/rmqctl.toml", False),
        Place("user", place / "home/rmqctl/config.toml", False),
        Place("system", place / "system/rmqctl/config.toml", False),
    ]
    write_all(place)
    found = settings(place, XDG_CONFIG_DIRS=f"{place}/none::{place}/system").places()
    assert found == [
        Place("project", place / "project/rmqctl.toml", True),
        Place("user", place / "home/rmqctl/config.yaml", True),
        Place("system", place / "none/rmqctl/config.toml", False),
        Place("system", place / "system/rmqctl/config.toml", True),
    ]
    assert settings(place, XDG_CONFIG_DIRS="").places()[2].path.is_relative_to("/etc/xdg/rmqctl")
    named = settings(place, {"config": str(place / "project/rmqctl.toml")}).places()
    assert named[0] == Place("option", place / "project/rmqctl.toml", True)
    assert [one.layer for one in named] == ["option", "system"]


def test_the_nearest_project_file_counts_and_toml_comes_first(place):
    (place / "project/.rmqctl.yml").write_text("tz: D\n")
    assert settings(place).get("tz").value == "D"
    (place / "project/.rmqctl.yaml").write_text("tz: C\n")
    assert settings(place).get("tz").value == "C"
    (place / "project/rmqctl.toml").write_text("tz = 'B'\n")
    assert settings(place).get("tz").value == "B"
    (place / "project/sub/.rmqctl.yaml").write_text("tz: A\n")
    assert settings(place).get("tz").value == "A"
    (place / "home/rmqctl/config.yml").write_text("output: csv\n")
    assert settings(place).get("output").value == "csv"


def test_names_have_dashes_or_underscores_and_numbers_are_texts(place):
    (place / "project/rmqctl.toml").write_text("no-input = true\ntimeout = 5\n")
    assert settings(place).get("no_input").value is True
    assert settings(place).get("timeout").value == "5"


@pytest.mark.parametrize("name", KEYS)
def test_a_setting_without_a_value_is_not_set(place, name):
    (place / "home/rmqctl/config.yaml").write_text(f"{name}:\n")
    assert settings(place).get(name) is None
    (place / "home/rmqctl/config.yaml").write_text(f"contexts: {{c: {{{name}: }}}}\n")
    assert settings(place, RMQCTL_CONTEXT="c").layers()[0].contexts == {"c": {}}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("raw = 1", "raw must be true or false, not 1"),
        ("tz = ['a']", "tz must be a text, not ['a']"),
        ("tz = false", "tz must be a text, not False"),
        ("[contexts.a]\nreason = true", "reason must be a text, not True"),
        ("contexts = 3", "contexts must hold tables, such as [contexts.NAME]"),
        ("[contexts]\na = 1", "contexts must hold tables, such as [contexts.NAME]"),
        ("[contexts.a]\nraw = 'x'", "raw must be true or false, not 'x'"),
    ],
)
def test_a_value_of_a_wrong_kind_is_named_with_its_file(place, text, sentence):
    path = place / "project/rmqctl.toml"
    path.write_text(text + "\n")
    with pytest.raises(UsageProblem) as caught:
        settings(place).get("tz")
    assert str(caught.value) == f"{path}: {sentence}"


def test_a_file_has_a_bound(place, monkeypatch):
    monkeypatch.setattr("rmqctl.cli.settings._LARGEST", 8)
    path = place / "project/rmqctl.toml"
    path.write_text("tz = 'A'")
    assert settings(place).get("tz").value == "A"
    path.write_text("tz = 'AB'")
    with pytest.raises(UsageProblem, match="is malformed: it has more than 8 bytes"):
        settings(place).get("tz")


def test_a_file_that_cannot_be_read_is_named(place):
    (place / "project/rmqctl.toml").write_text("tz = 'A'")
    (place / "project/rmqctl.toml").chmod(0)
    read = settings(place)
    if os.access(place / "project/rmqctl.toml", os.R_OK):
        assert read.get("tz").value == "A"  # root reads everything
    else:
        with pytest.raises(UsageProblem, match="rmqctl.toml cannot be read: Permission denied"):
            read.get("tz")


def test_files_are_read_once(place):
    write_all(place)
    read = settings(place)
    assert read.get("tz").value == "+08:00"
    (place / "project/rmqctl.toml").write_text("tz = 'later'\n")
    assert read.get("tz").value == "+08:00"


def test_texts_of_settings():
    assert parse_settings("", ".yaml") == {}
    assert parse_settings("a: 1", ".yml") == {"a": 1}
    assert parse_settings("a = 1", ".toml") == {"a": 1}
    with pytest.raises(ValueError, match="it must be a table of settings"):
        parse_settings("- a", ".yaml")
    with pytest.raises(ValueError, match="it is nested too deep"):
        parse_settings("a = " + "[" * 5000, ".toml")


def test_the_settings_of_files_and_their_kinds():
    texts = {"store", "context", "output", "tz", "color", "progress", "timeout", "reason"}
    texts |= {"console_write", "console_copy", "log_format"}
    switches = {"raw", "quiet", "verbose", "no_input", "no_headers", "otel"}
    kinds = {name: kind for name, (kind, _) in KEYS.items()}
    assert kinds == dict.fromkeys(texts, str) | dict.fromkeys(switches, bool)
