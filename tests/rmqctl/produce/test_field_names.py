"""Unknown fields of an input are never dropped silently."""

import json

import pytest

from rmqctl import exit_codes
from tests.support.cli import run


def sent(form, text, *options):
    result = run("produce", "t", "--input", form, *options, stdin=text.encode())
    return result, run("consume", "t", "-e", "-o", "json").json() if result.code == 0 else []


@pytest.mark.parametrize("name", ["delay_level", "delayLevel", "topc", "ttl", "timestamp", "Body2"])
def test_an_unknown_member_is_refused(store, name):
    line = json.dumps({"body": "x", name: 3})
    result, _ = sent("jsonl", line)
    assert result.code == 2
    assert repr(name) in result.err
    assert "which is not a field of a message" in result.err
    assert run("topic", "list", "--where", "topic = t", "-o", "json").json() == []


@pytest.mark.parametrize(
    ("name", "meant"),
    [("delay_level", "--delay-level"), ("propertys", "properties"), ("Tag", "tags")]
    + [("queueid", "queue_id"), ("bodybase64", "body_base64"), ("partition", "queue_id")],
)
def test_the_nearest_name_is_told(store, name, meant):
    assert f"did you mean '{meant}'?" in sent("jsonl", json.dumps({"body": "x", name: "1"}))[0].err
    assert f"did you mean '{meant}'?" in sent("csv", f"body,{name}\nx,1\n")[0].err


@pytest.mark.parametrize(
    "line",
    [
        {"value": "x", "key": "order-1", "tag": "new", "headers": {"a": "b"}},
        {"payload": "x", "key": ["order-1"], "tags": "new", "headers": ["a", "b"]},
        {"body": "x", "keys": "order-1", "tag": "new", "headers": [{"key": "a", "value": "b"}]},
    ],
)
def test_names_of_other_tools_are_taken_for_what_they_mean(store, line):
    result, rows = sent("jsonl", json.dumps(line))
    assert result.code == 0, result.err
    (row,) = rows
    assert (row["body"], row["keys"], row["tags"]) == ("x", ["order-1"], "new")
    assert row["properties"]["a"] == "b"


def test_a_field_that_is_said_twice_is_refused(store):
    result, _ = sent("jsonl", '{"body":"x","key":"a","keys":["b"]}')
    assert result.code == 2
    assert "'key' and 'keys', which are the same field" in result.err
    assert sent("jsonl", '{"value":"x","payload":"y"}')[0].code == 2
    assert sent("csv", "body,key,keys\nx,a,b\n")[0].code == 2


def test_unknown_fields_can_be_left_aside_on_purpose(store):
    result, rows = sent("jsonl", '{"body":"x","delay_level":3,"why":1}', "--ignore-unknown")
    assert (result.code, rows[0]["body"]) == (0, "x")
    result, rows = sent("csv", "body,delay_level,city\ny,3,Ulm\n", "--ignore-unknown")
    assert (result.code, rows[1]["properties"]["city"]) == (0, "Ulm")
    assert "delay_level" not in rows[1]["properties"]
    assert sent("text", "x", "--ignore-unknown")[0].code == 2


def test_columns_of_csv_with_names_of_other_tools_are_fields(store):
    result, rows = sent("csv", "key,tag,body\norder-1,new,x\n")
    assert (result.code, result.err.count("become properties")) == (0, 0)
    assert (rows[0]["keys"], rows[0]["tags"]) == (["order-1"], "new")


def test_columns_that_become_properties_are_told_once(store):
    result, rows = sent("csv", "body,city,sum\nx,Ulm,3\ny,Bonn,4\n")
    assert result.err.count("columns that are not fields become properties: city, sum") == 1
    assert [row["properties"]["city"] for row in rows] == ["Ulm", "Bonn"]


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_our_exports_write_comes_back_without_a_word(store, form, tmp_path):
    run("produce", "t", "-k", "a", "--tag", "b", "-H", "city=Ulm", "-q", stdin=b"x\n")
    text = run("consume", "t", "-e", "-o", form).out
    assert run("produce", "u", "--input", form, "-o", "json", stdin=text.encode()).err == ""
    file = tmp_path / f"t.{form}"
    assert run("message", "export", "-t", "t", "--save", file).code == 0
    result = run("message", "import", file, "--map-topic", "t=v", "-o", "json")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("more", [[], ["--keep-times"]])
def test_an_import_refuses_unknown_fields_too(store, tmp_path, more):
    run("produce", "t", "-q", stdin=b"x\n")
    row = json.loads(run("message", "export", "-t", "t", "-o", "jsonl").lines[0])
    file = tmp_path / "t.jsonl"
    file.write_text(json.dumps({**row, "delay_level": 3}))
    result = run("message", "import", file, "--map-topic", "t=u", *more)
    assert result.code == 2
    assert "'delay_level', which is not a field of a message" in result.err
    assert run("message", "import", file, "--map-topic", "t=u", "--ignore-unknown").code == 0


@pytest.mark.parametrize(
    "text",
    ["grup,topic,queue,offset\ng,t,0,1\n", '[{"grup":"g","topic":"t","queue":0,"offset":1}]'],
)
def test_a_file_of_offsets_refuses_unknown_fields(store, text):
    run("produce", "t", "-q", stdin=b"x\n")
    result = run("offset", "import", "-", "-g", "h", "--new-group", "-n", stdin=text.encode())
    assert result.code == 2
    assert "did you mean 'group'?" in result.err


def test_a_file_of_offsets_may_come_by_standard_input(store):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"x\ny\n")
    text = b"topic,queue,offset\nt,0,1\n"
    assert run("offset", "import", "-", "-g", "g", "--new-group", "-y", stdin=text).code == 0
    (row,) = run("offset", "list", "-g", "g", "-o", "json").json()
    assert row["committed_offset"] == 1


@pytest.mark.parametrize("skips", [[], ["--skip-invalid"]])
@pytest.mark.parametrize(
    "command",
    ["produce t --input jsonl", "message import -", "message import - --keep-times"],
)
def test_the_exit_code_of_an_input_with_no_good_row_is_explained(store, command, skips):
    result = run(*command.split(), *skips, stdin=b'{"bogus":1}\n')
    assert result.code == exit_codes.USAGE
    assert "no row of the input can be sent" in " ".join(run("explain", 2).out.split())
