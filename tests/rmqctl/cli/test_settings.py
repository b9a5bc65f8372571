from pathlib import Path

import pytest

from rmqctl.cli.settings import Settings
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
