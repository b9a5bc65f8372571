"""What was deleted with its topic is no message of the topic that is made anew."""

import json

import pytest

import storage.native
from tests.support.cli import run


@pytest.fixture
def made_anew(store):
    """Topic T was deleted and has one new message; ``kept`` was there all the time. Gives the rows
    of the two deleted messages."""
    run("produce", "T", "-k", "K", "-Q", 0, stdin=b"old 1\nold 2\n")
    run("produce", "kept", "-Q", 0, stdin=b"word\n")
    old = run("message", "search", "old", "-o", "json").json()
    assert len(old) == 2
    assert run("topic", "delete", "T", "-y", "--confirm", "T").code == 0
    run("topic", "create", "T")
    run("produce", "T", "-k", "K", "-Q", 0, stdin=b"new\n")
    return old


def bodies(*args):
    result = run(*args, "-o", "jsonl")
    assert result.code == 0, result.err
    return [json.loads(line)["body"] for line in result.lines]


@pytest.mark.parametrize("compiled", [True, False])
def test_neither_a_search_nor_an_export_has_it(made_anew, monkeypatch, compiled):
    if not compiled:
        monkeypatch.setattr(storage.native, "compiled", None)
    assert bodies("message", "export", "T") == ["new"]
    assert bodies("message", "export") == ["word", "new"]
    assert bodies("message", "export", "T", "kept", "-Q", 0) == ["word", "new"]
    assert bodies("message", "search", "o") == ["word"]
    assert bodies("message", "search", "--regex", "^(old|new)", "-t", "T") == ["new"]
    assert bodies("message", "search", "e", "--around", 1, "-t", "T") == ["new"]


def test_no_count_has_it(made_anew):
    (row,) = run("message", "stats", "T", "--by", "topic", "-o", "json").json()
    assert row["messages"] == 1
    assert run("message", "search", "old", "--count-only", "-o", "json").json()["hits"] == 0


def test_neither_its_key_nor_its_unique_id_leads_to_it_but_its_place_does(made_anew):
    for scan in ([], ["--scan"]):
        assert bodies("message", "query", "T", "-k", "K", *scan) == ["new"]
    first = made_anew[0]
    assert run("message", "get", first["msg_id"]).code == 3
    assert bodies("message", "get", first["offset_msg_id"]) == ["old 1"]


def test_an_export_of_a_deleted_store_brings_nothing_back(store, tmp_path):
    run("produce", "T", "-Q", 0, stdin=b"old\n")
    run("topic", "delete", "T", "-y", "--confirm", "T")
    assert bodies("message", "export") == []
    assert bodies("message", "search", "old") == []
