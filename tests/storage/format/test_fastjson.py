"""fastjson's dialect. Texts and answers marked [J] were tried with fastjson 1.2.69 itself."""

import json
import math
import re
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from storage.format.errors import JsonError
from storage.format.fastjson import MAX_DEPTH, dumps, loads
from storage.format.fastjson_reader import JsonReader

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner) | st.dictionaries(texts, inner) | st.dictionaries(st.integers(), inner)
    ),
    max_leaves=20,
)


@given(values)
@pytest.mark.slow
def test_what_is_written_is_read_again(value: Any) -> None:
    assert loads(dumps(value)) == value


@given(values)
@pytest.mark.slow
def test_strict_json_is_read_as_json_reads_it(value: Any) -> None:
    text = json.dumps(value)
    assert loads(text) == json.loads(text)


def test_int_keys_stay_bare_and_on_one_line() -> None:
    value = {"offsetTable": {"%RETRY%g1@g1": {}, "TopicTest@g1": {0: 5, 1: 7, 10: 3000000000}}}
    assert dumps(value) == (
        '{\n\t"offsetTable":{\n\t\t"%RETRY%g1@g1":{},\n\t\t"TopicTest@g1":'
        "{0:5,1:7,10:3000000000\n\t\t}\n\t}\n}"
    )


def test_members_of_members_of_int_keys_are_indented() -> None:  # [J]
    assert dumps({"im": {1: {"x": 1, "y": 2}, 2: {"x": 1}}}) == (
        '{\n\t"im":{1:{\n\t\t\t"x":1,\n\t\t\t"y":2\n\t\t},2:{\n\t\t\t"x":1\n\t\t}\n\t}\n}'
    )


def test_missing_members_are_left_out_and_arrays_stay_on_one_line() -> None:  # [J]
    assert dumps({"n": None, "ints": [1, 2], "empty": [], "map": {}}) == (
        '{\n\t"ints":[1,2],\n\t"empty":[],\n\t"map":{}\n}'
    )
    assert dumps({"n": None}) == "{}"


def test_what_fastjson_escapes_is_escaped() -> None:  # [J]
    escaped = {
        '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
        "\0": "\\u0000", "\v": "\\u000B", "\x1f": "\\u001F", "\x7f": "\\u007F",
        "\x9f": "\\u009F", "\u2028": "\\u2028", "\u2029": "\\u2029",
    }  # fmt: skip
    for char, text in escaped.items():
        assert dumps({char: char}) == f'{{\n\t"{text}":"{text}"\n}}'
    for char in " /<>&'\xa0\u4e2d\U0001f600":
        assert dumps(char) == f'"{char}"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"{a:1,'b':'x\'y',\"c\":2,,}".replace(r"\"", '"'), {"a": 1, "b": "x'y", "c": 2}),
        ("{1:2,3:4,}", {1: 2, 3: 4}),
        ('{"0":2}', {"0": 2}),
        ('{"a":[1,,2,]}', {"a": [1, 2]}),
        ('{"a":1L}', {"a": 1}),
        ('{"a":+1}', {"a": 1}),
        ('{"a":01}', {"a": 1}),
        ('{"a":"1"}', {"a": "1"}),
        (r'{"a":"\x41\0\v\/"}', {"a": "A\0\v/"}),
        (r'{"a":"\ud83d\ude00"}', {"a": "\U0001f600"}),
        ('{"a":NaN,"b":undefined,"c":null}', {"a": None, "b": None, "c": None}),
        ('{/*c*/"a":1}', {"a": 1}),
        ('{//x\n"a":1}', {"a": 1}),
        ('{"a":"\n"}', {"a": "\n"}),
        ('{"a":-5,"a":6}', {"a": 6}),
        ("{-1:5}", {-1: 5}),
        ("{1.5:1}", {"1.5": 1}),
        ("{null:1,true:2}", {"null": 1, "true": 2}),
        ('\ufeff{"a":1}', {"a": 1}),
        ('{,"a":1}', {"a": 1}),
        ('{"a":12345678901234567890}', {"a": 12345678901234567890}),
        ('{"a":1.0E5,"b":1F,"c":2D,"d":3S,"e":4B}', {"a": 1e5, "b": 1.0, "c": 2.0, "d": 3, "e": 4}),
        ("null", None),
    ],
)
def test_what_fastjson_tolerates_is_read(text: str, value: Any) -> None:  # [J]
    assert loads(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'"a\\"\xff"', 'a"\udcff'),
        (b'"\xff\\u0041\xc3"', "\udcffA\udcc3"),
        (b'"\\ud83d\xff"', "\ufffd\udcff"),
        (b'"\\ud83d\\ude00\xff"', "\U0001f600\udcff"),
        (b'"\\udcff\xff"', "\ufffd\udcff"),
    ],
)
def test_bytes_that_are_no_utf8_are_kept_beside_escapes(text: bytes, value: str) -> None:
    assert loads(text.decode("utf-8", "surrogateescape")) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1} x', '{"a" 1}', '{"a":1', "[1", "{a-b:1}", "{%R%g@x:1}", r'{"a":"\q"}',
        '{"a":1;}', '{"a":1"b":2}', '{"a":1 b:2}', "{a b:1}", '{"a":x}', "{} {}", '{"a":.5}',
        "", '{"a":"x', "{", "]", ":", '{"a"', "/*/*", '{"a":1e999}', "9" * 5000 + "x",
        '{"a":1e999D}', '{"a":-1e999F}', "9" * 400 + "D",
    ],
)  # fmt: skip
def test_what_is_no_json_is_refused(text: str) -> None:  # [J] but for the last line
    with pytest.raises(JsonError):
        loads(text)


@given(st.text(st.sampled_from("{}[]:,\"'\\ab01 -/*\n\x00\u4e2d.eEL")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = loads(text)
    except JsonError:
        return
    assert loads(dumps(value)) == without_none(value)


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def test_an_error_says_where() -> None:
    with pytest.raises(JsonError, match="line 2, column 6") as caught:
        loads('{\n "a" 1}')
    assert caught.value.position == 7


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_deep_nesting_is_refused_before_it_hurts(opening: str) -> None:
    with pytest.raises(JsonError, match="deeper"):
        loads(opening * 100_000)
    assert loads("[" * MAX_DEPTH + "]" * MAX_DEPTH) is not None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["0", "7", '"0"', '"7"', '"08"', "-1", "1.5", "1" * 19, '"1', '1"']),
            st.sampled_from([":", " : ", ":\n", "::"]),
            st.sampled_from(["0", "5", "12 ", "-3", "4L", "1e3", "9" * 18, "9" * 19, '"6"']),
        ),
        max_size=4,
    ),
    st.sampled_from([",", " ,\t", ",,"]),
)
def test_objects_of_plain_numbers_are_read_as_any_other(pairs: Any, comma: str) -> None:
    text = "{" + comma.join("".join(pair) for pair in pairs) + "}"
    # With a comment before them they are read token by token.
    assert _read_or_refused(text) == _read_or_refused("{/**/" + text[1:])


def _read_or_refused(text: str) -> Any:
    try:
        value = loads(text)
    except JsonError:
        return JsonError
    return value, [type(part) for pair in value.items() for part in pair]  # type: ignore[union-attr]


def test_many_blanks_before_nonsense_take_no_time() -> None:
    with pytest.raises(JsonError):
        loads(" " * 100_000 + "\xa7")


def test_numbers_that_no_float_holds_are_refused() -> None:
    with pytest.raises(JsonError, match="too large"):
        loads("1e400")
    with pytest.raises(ValueError, match="JSON"):
        dumps(math.inf)


# -- the quick way ----------------------------------------------------------------------------

pieces = st.sampled_from(
    [*'{}[]:,"', "{", "}", '"a"', '"a@b":', "0:", "1 :", " 7", "-1:", "007:", '"0":', '"{1:2}"',
     '"a,1:b"', '"\x7f0":', '"\ud800"', '"\\ud800"', '"\\n"', "'x'", "1.0", "1e999", "-0", "01",
     "NaN", "null", "true", "Infinity", "/*", "*/", "//", "\n", "\t", "\u00a0", "\x00", "1L"]
)  # fmt: skip


def both(text: str) -> None:
    try:
        slow = JsonReader(text).read()
    except JsonError as error:
        with pytest.raises(JsonError, match=re.escape(str(error))):
            loads(text)
    else:
        assert repr(loads(text)) == repr(slow)  # their types and order, too


@given(st.lists(pieces, max_size=14).map("".join))
def test_whatever_is_read_the_quick_way_is_the_same_the_long_way(text: str) -> None:
    both(text)


names = st.text(st.sampled_from("a@%{},:01 \"'\\\x7f\ud800\u4e2d/*"), max_size=6)
tables = st.dictionaries(names, st.dictionaries(st.integers(-2, 2), st.integers()) | names)


@given(tables, st.data())
@pytest.mark.slow
def test_tables_are_the_same_either_way_wherever_they_are_cut(table: Any, data: Any) -> None:
    text = dumps({"offsetTable": table, "dataVersion": {"counter": 1, "timestamp": 2.5}})
    both(text)
    both(text.replace("\\", ""))
    both(text[: data.draw(st.integers(0, len(text)))])


def test_a_large_table_is_not_read_token_by_token() -> None:
    table: Any = {f"topic{n}@group": {0: n, 1: n, 2: n} for n in range(1000)}
    text, calls = dumps({"offsetTable": table}), 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        assert loads(text) == {"offsetTable": table}
    finally:
        sys.setprofile(None)
    assert calls < 3 * len(table)
