"""Keys, a tag or a delay that only the properties of a row have are never dropped silently."""

import json

import pytest

from tests.support.cli import run

PRODUCE = ["produce", "u", "--input"]
IMPORT = ["message", "import", "-", "u", "--as"]


def rows(topic="u"):
    result = run("consume", topic, "-e", "-o", "json")
    return result.json() if result.code == 0 else []


def as_input(form, row):
    """A line of JSON, or a header and a line of CSV."""
    if form == "jsonl":
        return json.dumps(row).encode()
    cells = [value if isinstance(value, str) else json.dumps(value) for value in row.values()]
    quoted = ['"' + cell.replace('"', '""') + '"' for cell in cells]
    return f"{','.join(row)}\n{','.join(quoted)}\n".encode()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            {"body": "x", "properties": {"KEYS": "k"}},
            "its property KEYS is 'k', and it has no keys: write it as keys",
        ),
        (
            {"body": "x", "keys": "k", "properties": {"KEYS": "k l"}},
            "its property KEYS is 'k l', and its keys are 'k': remove the property",
        ),
        (
            {"body": "x", "headers": {"TAGS": "t"}},
            "its property TAGS is 't', and it has no tags: write it as tags",
        ),
        (
            {"body": "x", "tags": "u", "properties": {"TAGS": "t"}},
            "its property TAGS is 't', and its tags are 'u': remove the property",
        ),
        (
            {"body": "x", "properties": {"DELAY": "3"}},
            "its property DELAY is '3' and would be left out: remove it; --delay-level of",
        ),
        ({"body": "x", "properties": {"DELAY": "soon"}}, "its property DELAY is 'soon'"),
    ],
)
@pytest.mark.parametrize("command", [PRODUCE, IMPORT], ids=["produce", "import"])
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_a_row_that_would_lose_them_is_refused(store, command, form, row, reason):
    result = run(*command, form, stdin=as_input(form, row))
    line = 1 if form == "jsonl" else 2
    assert (result.code, f"line {line}: {reason}" in result.err) == (2, True), result.err
    assert rows() == []


@pytest.mark.parametrize("command", [PRODUCE, IMPORT], ids=["produce", "import"])
@pytest.mark.parametrize("count", [1, 40])  # objects, columns
def test_rows_that_name_them_twice_alike_are_taken(store, command, count):
    properties = {"KEYS": "k l", "TAGS": "t", "DELAY": "0", "UNIQ_KEY": "7", "WAIT": "true"}
    row = {"body": "x", "keys": ["k", "l"], "tags": "t", "properties": properties}
    result = run(*command, "jsonl", stdin=(json.dumps(row) + "\n").encode() * count)
    assert result.code == 0, result.err
    assert [(one["keys"], one["tags"]) for one in rows()] == [(["k", "l"], "t")] * count


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_of_messages_that_wait_for_their_delay_can_be_imported(store, form):
    run("produce", "t", "--delay-level", 18, "-k", "a b", "--tag", "new", "-q", stdin=b"later\n")
    exported = run("message", "export", "SCHEDULE_TOPIC_XXXX", "--as", form).raw
    assert b"DELAY" in exported
    result = run(*IMPORT, form, stdin=exported)
    assert result.code == 0, result.err
    [row] = rows()
    assert (row["body"], row["keys"], row["tags"]) == ("later", ["a", "b"], "new")


def test_an_import_that_keeps_the_properties_refuses_only_fields_that_differ(store):
    run("produce", "t", "-k", "a", "--tag", "new", "-H", "x=y", "-q", stdin=b"1\n")
    [row] = run("message", "export", "t", "-o", "json").json()
    keep = [*IMPORT, "jsonl", "--keep-times"]
    result = run(*keep, stdin=json.dumps({**row, "tags": "old"}).encode())
    reason = "its property TAGS is 'new', and its tags are 'old'"
    assert (result.code, reason in result.err) == (2, True), result.err
    del row["keys"], row["tags"]
    row["properties"]["DELAY"] = "3"
    assert run(*keep, stdin=json.dumps(row).encode()).code == 0
    [kept] = rows()
    assert (kept["keys"], kept["tags"], kept["properties"]["DELAY"]) == (["a"], "new", "3")


@pytest.mark.parametrize(
    ("form", "given"),
    [("jsonl", "x"), ("jsonl", -1), ("jsonl", 1.5), ("jsonl", True), ("csv", "x"), ("csv", "-1")],
)
@pytest.mark.parametrize("options", [[], ["--keep-times"]], ids=["anew", "as they were"])
@pytest.mark.parametrize("count", [1, 40])  # objects, columns
def test_an_import_refuses_what_is_no_queue_number(store, form, given, options, count):
    run("produce", "t", "-q", stdin=b"1\n")
    [row] = run("message", "export", "t", "-o", "json").json()
    good, bad = ({**row, "queue_id": queue} for queue in (0, given))
    if form == "jsonl":
        lines = [json.dumps(one).encode() for one in [good] * (count - 1) + [bad]]
    else:
        header, line = as_input("csv", good).splitlines()
        lines = [header, *[line] * (count - 1), as_input("csv", bad).splitlines()[1]]
    result = run(*IMPORT, form, *options, stdin=b"\n".join(lines))
    number = len(lines)
    assert f"line {number}: its queue_id is {given!r}, not a queue number" in result.err
    assert result.code == (2 if count == 1 else 8)
    assert len(rows()) == count - 1


def test_an_import_takes_a_row_without_a_queue_number(store):
    lines = b'{"body":"a","queue_id":null}\n{"body":"b"}\n'
    assert run(*IMPORT, "jsonl", stdin=lines).code == 0
    assert run(*IMPORT, "csv", stdin=b"body,queue_id\nc,\n").code == 0
    assert sorted(row["body"] for row in rows()) == ["a", "b", "c"]
