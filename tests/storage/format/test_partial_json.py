"""What is taken out of JSON that was cut is true, and all of it that can be known."""

from typing import Any

import pytest

from storage.format.fastjson import dumps, loads
from storage.format.partial_json import PartialJson, loads_torn

DOCUMENT: dict[str, Any] = {
    "dataVersion": {"counter": 3, "timestamp": 17},
    "offsetTable": {"T@g": {0: 15, 1: 233, 2: 7}, 'b@"c': {3: 1}, "x@y": {}},
    "list": [1, {"a": 2}],
    "flag": True,
}
TEXT = dumps(DOCUMENT)


def assert_part_of(part, whole):
    for name, value in part.items():
        assert name in whole
        if isinstance(value, dict):
            assert_part_of(value, whole[name])
        else:
            assert value == whole[name]


@pytest.mark.parametrize("tail", ["", "\0" * 5, "@#", '"', ":9", "\ufffd"])
def test_whatever_is_read_before_a_cut_is_as_it_was(tail):
    for end in range(len(TEXT)):
        assert_part_of(loads_torn(TEXT[:end] + tail).document, DOCUMENT)


def test_a_whole_document_is_read_as_ever():
    whole: Any = loads(TEXT)
    assert loads_torn(TEXT) == PartialJson(whole, None)
    assert loads_torn(TEXT + "\0" * 100).cut_at is None


def test_every_cut_is_noticed():
    assert all(loads_torn(TEXT[:end]).cut_at is not None for end in range(len(TEXT)))


def test_a_longer_piece_never_tells_less():
    known = 0
    for end in range(len(TEXT)):
        queues: Any = loads_torn(TEXT[:end]).document.get("offsetTable", {})
        count = sum(len(row) for row in queues.values())
        assert count >= known
        known = count
    assert known == 4


def test_a_number_at_the_very_end_may_have_been_longer():
    assert loads_torn('{"offsetTable":{"T@g":{0:15,1:23').document == {
        "offsetTable": {"T@g": {0: 15}}
    }
    assert loads_torn('{"a":1,"b":23\0\0\0').document == {"a": 1}


def test_the_row_that_was_cut_is_named():
    torn = loads_torn('{"t":{"a":{"x":1},"b":{"x":1,"y')
    assert torn.document == {"t": {"a": {"x": 1}, "b": {"x": 1}}}
    assert torn.open == ("t", "b")


@pytest.mark.parametrize("text", ["", "\0\0\0", "   ", "[1,2", '"text', "\ufffd\ufffd"])
def test_what_begins_as_no_object_gives_nothing(text):
    torn = loads_torn(text)
    assert torn.document == {}
    assert torn.cut_at is not None


def test_nesting_without_an_end_is_no_recursion_error():
    assert loads_torn('{"a":' * 5_000).cut_at is not None
