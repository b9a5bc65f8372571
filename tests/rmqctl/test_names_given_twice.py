"""An object, a table or a header of an input that has a name twice is refused, not half read."""

from __future__ import annotations

import json

import pytest

from rmqctl.cli.settings import parse_settings
from rmqctl.dlq.edit import content_of
from rmqctl.dlq.rewrite_options import parse_properties
from rmqctl.errors import UsageProblem
from rmqctl.parse.json_texts import parse_given, parse_json
from rmqctl.parse.yaml_texts import parse_yaml
from storage.format.errors import JsonError
from storage.format.fastjson import loads
from storage.format.strict_json import loads_strict
from tests.rmqctl.test_hostile_files import MULTIPLYING
from tests.support.cli import run

LINES = [
    ('{"body":"a","body":"b"}', "body"),
    ('{"body":"a","tags":"x","tags":"y"}', "tags"),
    ('{"body":"a","properties":{"p":"1","q":"2","p":"3"}}', "p"),
    ('{"body":{"order":1,"order":2}}', "order"),
]


@pytest.mark.parametrize(("line", "name"), LINES)
def test_a_line_of_json_is_refused(store, line, name):
    done = run("produce", "t", "--input", "jsonl", "--queue", 0, stdin=line.encode() + b"\n")
    assert done.code == 2
    assert f"it has the key '{name}' twice" in done.err
    assert run("topic", "queues", "t").code == 3  # nothing was sent


def test_properties_in_a_cell_are_refused(store):
    text = b'body,properties\na,"{""p"":""1"",""p"":""2""}"\n'
    done = run("produce", "t", "--input", "csv", "--queue", 0, stdin=text)
    assert done.code == 2
    assert "it has the key 'p' twice" in done.err


TOPICS = [
    ("topics.json", '[{"topic":"a","perm":6,"perm":2}]', "perm"),
    ("topics.json", '{"topicConfigTable":{"a":{"perm":6},"a":{"perm":2}}}', "a"),
    ("topics.jsonl", '{"topic":"a","perm":6,"perm":2}\n', "perm"),
    ("topics.yaml", "- topic: a\n  perm: 6\n  perm: 2\n", "perm"),
]


@pytest.mark.parametrize(("name", "text", "twice"), TOPICS)
def test_a_file_of_topics_is_refused(store, tmp_path, name, text, twice):
    file = tmp_path / name
    file.write_text(text)
    done = run("topic", "create", "--from-file", file, "--yes")
    assert done.code == 2, done.err
    assert f"it has the key '{twice}' twice" in done.err
    assert "a" not in run("topic", "list").out.split()


OFFSETS = [
    ('[{"group":"g","topic":"t","queue":0,"offset":1,"offset":7}]', "offset"),
    ('{"group":"g","topic":"t","queue":0,"offset":1,"offset":7}\n', "offset"),
    ('{"offsetTable":{"t@g":{0:1,0:7}}}', "0"),
    ('{\n"offsetTable":{\n"t@g":{0:1},\n"t@g":{0:7}\n}\n}', "t@g"),
]


@pytest.mark.parametrize(("text", "twice"), OFFSETS)
def test_a_file_of_offsets_is_refused(store, tmp_path, text, twice):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    file = tmp_path / "offsets.json"
    file.write_text(text)
    done = run("offset", "import", file, "--yes")
    assert done.code == 2, done.err
    assert f"it has the key '{twice}' twice" in done.err
    assert "t@g" not in run("offset", "export").out


def test_a_plan_is_refused(store, tmp_path):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    moving = ["offset", "reset", "-g", "g", "-t", "t", "--to-latest", "--new-group"]
    plan = tmp_path / "plan.json"
    assert run(*moving, "-n", "-o", "json", "--export", plan).code == 0
    rows = plan.read_text()
    if not rows.lstrip().startswith("["):
        rows = json.dumps([{"group": "g", "topic": "t", "queue_id": 0, "old_offset": None}])
    plan.write_text(rows.replace('"topic"', '"group": "g", "topic"', 1))
    done = run(*moving, "--expect", plan, "--yes")
    assert done.code == 2


def test_options_that_name_a_property_twice_are_refused(store):
    done = run("produce", "t", "--queue", 0, "-H", "a=1", "-H", "a=2", stdin=b"x\n")
    assert done.code == 2
    assert "property a is given twice: '1' and '2'" in done.err
    assert run("produce", "t", "--queue", 0, "-H", "a=1", "-H", "a=1", stdin=b"x\n").code == 0
    with pytest.raises(UsageProblem, match="twice"):
        parse_properties(["a=1", "b=1", "a=2"])


@pytest.mark.slow
def test_headers_of_offsets_and_plans_are_refused(store, tmp_path):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    file = tmp_path / "some.csv"
    file.write_text("group,topic,queue,offset,offset\ng,t,0,0,1\n")
    done = run("offset", "import", file, "--yes")
    assert done.code == 2
    assert "the header names offset twice" in done.err
    moving = ["offset", "reset", "-g", "g", "-t", "t", "--to-latest", "--new-group"]
    file.write_text("group,topic,queue_id,old_offset,old_offset\ng,t,0,,0\n")
    done = run(*moving, "--expect", file, "--yes")
    assert done.code == 2
    assert "names 'old_offset' twice" in done.err
    assert "t@g" not in run("offset", "export").out


@pytest.mark.parametrize("text", ['{"flag":1,"body":"a","flag":2}', '{"body_json":{"a":1,"a":2}}'])
def test_an_edited_dead_letter_is_refused(text):
    with pytest.raises(UsageProblem, match="twice"):
        content_of(text, None)


def test_settings_are_refused():
    with pytest.raises(ValueError, match="it has the key 'store' twice"):
        parse_settings("store: a\nstore: b\n", ".yaml")
    with pytest.raises(ValueError, match="twice"):
        parse_settings("contexts:\n  p:\n    store: a\n    store: b\n", ".yaml")
    with pytest.raises(ValueError, match="overwrite"):  # tomllib's own word
        parse_settings('store = "a"\nstore = "b"\n', ".toml")


def test_a_settings_file_is_refused(store, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("output: json\noutput: table\n")
    done = run("--config", file, "topic", "list")
    assert done.code == 2
    assert "it has the key 'output' twice" in done.err


def test_yaml_that_merges_and_keys_of_two_kinds_are_read():
    text = "base: &b {a: 1, c: 3}\nown: {<<: *b, a: 2}\n"
    assert parse_yaml(text)["own"] == {"a": 2, "c": 3}
    assert parse_yaml('{1: a, "1": b}') == {1: "a", "1": "b"}


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {<<: [*a]}", "a: &a {b: {c: *a}}"])
def test_an_alias_that_is_part_of_its_value_is_refused(text):
    with pytest.raises(ValueError, match="an alias is part of its own value"):
        parse_yaml(text)


def test_aliases_are_taken_up_to_what_they_repeat():
    assert len(parse_yaml("a: &a " + "x" * 999 + "\nb: [" + "*a," * 1_048 + "]")["b"]) == 1_048
    with pytest.raises(ValueError, match="its aliases repeat more than 1048576 characters"):
        parse_yaml("a: &a " + "x" * 999 + "\nb: [" + "*a," * 1_049 + "]")


def test_a_settings_file_of_aliases_that_multiply_is_refused(store, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_bytes(MULTIPLYING + b"store: *i\n")
    for words in (("--config", file, "topic", "list"), ("topic", "create", "--from-file", file)):
        done = run(*words)
        assert done.code == 2
        assert "its aliases repeat more than 1048576 characters" in done.err


def test_what_the_readers_do_with_it():
    twice = '{"a":1,"b":2,"a":3}'
    assert parse_json(twice) == {"a": 3, "b": 2}  # the body of a message is the sender's
    assert loads(twice) == {"a": 3, "b": 2}  # as fastjson reads a broker's files
    with pytest.raises(ValueError, match="it has the key 'a' twice"):
        parse_given(twice)
    with pytest.raises(JsonError, match="it has the key 'a' twice"):
        loads(twice, once=True)
    with pytest.raises(JsonError, match="it has the key '0' twice"):
        loads("{0:1,1:2,0:3}", once=True)
    with pytest.raises(JsonError, match="it has the key 'a' twice"):
        loads_strict(twice)
    assert loads("{a:{0:1,1:2},b:{0:1}}", once=True) == {"a": {0: 1, 1: 2}, "b": {0: 1}}


def test_a_previous_report_is_refused(store, tmp_path):
    run("produce", "t", "--queue", 0, stdin=b"a\n")
    file = tmp_path / "report.json"
    file.write_text('{"as_of":1,"as_of":2,"groups":[]}')
    done = run("lag", "report", "--engine", "local", "--compare", file)
    assert done.code == 2, done.err
