import tomllib

import pytest

from rmqctl.cli.settings import parse_settings
from rmqctl.config.settings_text import changed, with_context, without_context
from rmqctl.errors import Refused

TEXT = """\
# mine
tz = "UTC" # "quoted" and more
'output' = 'a # b'   # yes

# of prod
[contexts.prod]   # the big one
store = "/data"  # here

# the other
["contexts"."le#ss"]
raw = true
"""


def test_only_the_one_line_changes_and_its_comment_stays():
    new = changed(TEXT, ".toml", None, "tz", "Asia/Tokyo")
    assert new == TEXT.replace('"UTC"', '"Asia/Tokyo"')


def test_a_sharp_in_a_value_is_no_comment():
    new = changed(TEXT, ".toml", None, "output", "json")
    assert new.splitlines()[2] == 'output = "json"   # yes'


def test_a_new_setting_goes_behind_the_last_one_of_its_table():
    lines = changed(TEXT, ".toml", None, "raw", True).splitlines()
    assert lines[2:5] == ["'output' = 'a # b'   # yes", "raw = true", ""]
    lines = changed(TEXT, ".toml", "prod", "tz", "UTC").splitlines()
    assert lines[6:9] == ['store = "/data"  # here', 'tz = "UTC"', ""]


def test_a_table_is_found_however_its_name_is_written():
    new = changed(TEXT, ".toml", "le#ss", "raw", False)
    assert new == TEXT.replace("raw = true", "raw = false")


def test_a_setting_that_is_taken_out_leaves_the_rest():
    assert changed(TEXT, ".toml", None, "tz", None) == TEXT.replace(TEXT.splitlines()[1] + "\n", "")
    assert changed(TEXT, ".toml", None, "color", None) == TEXT


def test_a_context_goes_with_its_settings_and_the_others_stay():
    new = without_context(TEXT, ".toml", "prod")
    assert list(tomllib.loads(new)["contexts"]) == ["le#ss"]
    assert "# the other" in new
    assert "big one" not in new


@pytest.mark.parametrize("name", ["a", "a.b", "\u00e4", 'say "x"', "[x]", "a\x7f", "#"])
def test_a_context_of_any_name_comes_and_goes(name):
    new = with_context(TEXT, ".toml", name)
    assert tomllib.loads(new)["contexts"][name] == {}
    new = changed(new, ".toml", name, "reason", 'it "is" \\ so\t# \x7f')
    assert tomllib.loads(new)["contexts"][name] == {"reason": 'it "is" \\ so\t# \x7f'}
    assert tomllib.loads(without_context(new, ".toml", name)) == tomllib.loads(TEXT)


@pytest.mark.parametrize(
    "text",
    ['tz = """\nx = 1\n[a]\n"""\n', "contexts = {prod = {tz = 'A'}}\n", "contexts.prod.tz = 'B'"],
)
def test_what_lines_do_not_tell_is_refused_and_not_harmed(text):
    with pytest.raises(Refused, match="edit it by hand"):
        changed(text, ".toml", "prod" if "prod" in text else None, "tz", "UTC")


def test_a_file_without_an_end_of_line_or_with_nothing_in_it():
    assert changed("", ".toml", None, "tz", "UTC") == 'tz = "UTC"\n'
    assert changed("raw = true", ".toml", None, "tz", "UTC") == 'raw = true\ntz = "UTC"\n'
    assert changed("# only", ".toml", "p", "tz", "U") == '# only\n\n[contexts.p]\ntz = "U"\n'


def test_a_setting_is_found_though_it_is_written_with_a_dash():
    new = changed("no-input = true # why\n", ".toml", None, "no_input", False)
    assert new == "no-input = false # why\n"


YAML = "tz: UTC # mine\noutput: 'a # b'\n"


def test_yaml_keeps_its_comments_too():
    new = changed(YAML, ".yaml", None, "tz", "Asia/Tokyo")
    assert new == YAML.replace("UTC", '"Asia/Tokyo"')
    assert changed(YAML, ".yaml", None, "raw", True) == YAML + "raw: true\n"
    assert changed(YAML, ".yaml", None, "tz", None) == YAML.split("\n", 1)[1]


def test_contexts_of_yaml_change_where_no_comment_can_be_lost():
    plain = "tz: UTC\ncontexts:\n  prod: {store: /data}\n"
    new = changed(plain, ".yaml", "prod", "tz", "B")
    assert parse_settings(new, ".yaml") == {
        "tz": "UTC",
        "contexts": {"prod": {"store": "/data", "tz": "B"}},
    }
    assert parse_settings(without_context(new, ".yaml", "prod"), ".yaml") == {
        "tz": "UTC",
        "contexts": {},
    }
    assert parse_settings(with_context("", ".yaml", "x"), ".yaml") == {"contexts": {"x": {}}}
    with pytest.raises(Refused, match="comments"):
        with_context(YAML, ".yaml", "x")


def test_yaml_with_no_contexts_in_its_table_takes_some():
    empty = "tz: UTC\ncontexts:\n"
    wanted = {"tz": "UTC", "contexts": {"x": {"tz": "B"}}}
    assert parse_settings(changed(empty, ".yaml", "x", "tz", "B"), ".yaml") == wanted
    with_one = with_context(empty, ".yaml", "x")
    assert parse_settings(with_one, ".yaml") == {"tz": "UTC", "contexts": {"x": {}}}
    assert without_context(empty, ".yaml", "x") == empty
    assert changed(empty, ".yaml", None, "tz", "B") == 'tz: "B"\ncontexts:\n'


@pytest.mark.parametrize("text", ["{tz: UTC}", "tz: >\n  U\n  C\n"])
def test_yaml_in_other_forms_is_refused(text):
    with pytest.raises(Refused, match="edit it by hand"):
        changed(text, ".yaml", None, "tz", "B")
