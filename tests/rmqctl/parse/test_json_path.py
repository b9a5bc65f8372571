"""Conditions of --json-path: one grammar with and, or, not, and the filters of RFC 9535."""

import json

import pytest

from rmqctl.output.fields import fields_of
from rmqctl.output.where import Where
from rmqctl.parse.condition_forms import JSON_FORMS, WHERE_FORMS
from rmqctl.parse.json_path import JsonCondition, JsonFilter, parse_json_path
from tests.support.cli import run

BODY = json.dumps(
    {
        "country": "DE",
        "sum": 42,
        "code": "042",
        "open": None,
        "paid": True,
        "first name": "Ada L",
        "@timestamp": "2026-01-31T10:00:00Z",
        "limit": 42.0,
        "items": [{"sku": "x7", "price": 5}, {"sku": "y8", "price": 50}],
        "who": {"mail": "a@b.example", "not": 1},
    }
).encode()


@pytest.mark.parametrize(
    "text",
    [
        'country = "DE" and sum > 3',
        "country = DE && sum > 3",
        "country=DE and(sum>3)",
        "country = FR or sum >= 42",
        "country = FR || sum <= 42",
        "country = FR and sum > 3 or paid",
        "not country = FR",
        "!(country == 'FR')",
        "not missing",
        "not missing = 1",
        "not open",
        "open = null",
        "country in (FR, DE)",
        "country in ['FR', 'DE']".replace("'", '"'),
        "sum in (41, 42.0)",
        "country not in (FR, 'I T')",
        "country matches ^D",
        "country ~ '^D(E|F)$' and sum",
        "country !~ x and country not matches y",
        "country =~ ^(D|E)+$",
        "country exists and missing not exists",
        '"first name" = "Ada L"',
        "['first name'] ~ Ada",
        "$['first name'] == 'Ada\\u0020L'",
        "@timestamp >= '2026-01-31'",
        "sum = 42.0",
        "sum = '42'",
        "sum > '41'",
        "code = 042",
        '@.country == "DE" && @.sum > 3',
        "$.country == 'DE' && !($.sum < 3)",
        "$.sum == @.limit",
        "41 < @.sum && 'DE' == @.country",
        "items[-1].sku = y8",
        "items[0:1].sku = x7",
        "items[1:].price > 9",
        "items[?@.sku == 'y8' && @.price > 9]",
        "$.items[?(@.sku in (x7, y8) and @.price < 9)].price = 5",
        "..price > 49",
        "$..mail = a@b.example",
        "who.* = a@b.example",
        "who.not = 1",
        "length(items) = 2 and length(country) == 2",
        "count($..sku) = 2",
        "match(@.country, 'D.') && search(@.country, 'E') && !match(@.country, 'D')",
        "country <> FR",
    ],
)
def test_conditions_that_hold(text):
    assert parse_json_path(text)(BODY)


@pytest.mark.parametrize(
    "text",
    [
        'country = "DE" and sum > 42',
        "not country",
        "missing != 1",
        "items[?@.sku == 'x7' && @.price > 9]",
        "open = 'null'",
        "paid = 'true'",
        "country > 3",
        "country not in (DE)",
        "missing not in (1)",
        "length(sum) > 0",
    ],
)
def test_conditions_that_do_not_hold(text):
    assert not parse_json_path(text)(BODY)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("country = DE sum > 3", "unexpected 'sum' at character 14"),
        ("country = DE and", "expected a path at the end"),
        ("(country = DE", "missing ) at the end"),
        ("country = DE)", "unexpected ')' at character 13"),
        ("country = ", "expected a value at the end"),
        ("country in DE", "expected ( and a list of values at character 12"),
        ("country in (DE", "expected , or ) at the end"),
        ("country = 'DE", "without its closing ' at character 11"),
        ("sum > many", "'many' is not a number at character 7 (quote it"),
        ("a[x]", "expected an index, a quoted name, * or ? at character 3"),
        ("a..b..c", "a second .. in a path at character 5"),
        ("a[?$.b]", "expected @"),
        ("a == @.b[*]", "expected a path without *"),
        ("a[::0]", "a step of 0"),
        ("a[?@" * 11 + "]" * 11, "more than 10 filters"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_position(text, reason):
    with pytest.raises(ValueError, match=r"at character|at the end") as caught:
        parse_json_path(text)
    assert reason in str(caught.value)


def test_every_form_that_is_explained_is_read():
    from rmqctl.admin.dead_letters.rows import DeadLetterRow
    from rmqctl.admin.lag.rows import LagRow
    from rmqctl.admin.offsets.inspection_rows import OffsetRow
    from rmqctl.admin.store.check_rows import StoreInfoRow
    from rmqctl.output.message_rows import MessageRow

    for example, _ in JSON_FORMS:
        parse_json_path(example)
    rows = [
        fields_of(kind) for kind in (LagRow, MessageRow, DeadLetterRow, StoreInfoRow, OffsetRow)
    ]
    for example, _ in WHERE_FORMS:
        name = example.split()[0].partition(".")[0]
        having = [fields for fields in rows if name in {field.name for field in fields}]
        assert having, f"{example}: the rows of no command have {name}"
        for fields in having:
            Where(example, fields, 1_767_225_600_000).parse()


def mistakes(*texts, bodies=(BODY,)):
    finder = JsonFilter([JsonCondition(text) for text in texts])
    for body in bodies:
        finder(body)
    return finder.mistakes()


def test_a_filter_that_cannot_match_names_why():
    assert mistakes("contry = DE") == [
        "no message that was read has the field contry; did you mean 'country'?"
    ]
    assert mistakes("code > 3 and sum > 3") == ["the field code is never a number"]
    assert mistakes("items[*].prize > 3") == [
        "no message that was read has the field items[*].prize"
    ]
    assert mistakes("a = 1", bodies=[b"no json"]) == ["no message that was read has a JSON body"]


@pytest.mark.parametrize("text", ["country = FR", "not contry", "contry or sum"])
def test_no_reason_is_given_where_the_fields_exist_or_a_message_matched(text):
    assert mistakes(text) == []
    assert mistakes(text, bodies=[]) == []


@pytest.fixture
def orders(store):
    bodies = [b'{"country":"DE","sum":%d}' % number for number in range(3)]
    assert run("produce", "t", "-q", stdin=b"\n".join(bodies)).code == 0
    return store


@pytest.mark.feature(34)
def test_the_option_given_twice_means_both(orders):
    found = run("consume", "t", "-e", "--json-path", "sum > 0", "--json-path", "sum < 2")
    assert found.lines == ['{"country":"DE","sum":1}']


@pytest.mark.parametrize("command", [("consume", "t", "-e"), ("message", "search")])
def test_a_field_that_no_message_has_is_said(orders, command):
    result = run(*command, "--json-path", "contry = DE")
    assert result.code == 0
    assert "--json-path: no message that was read has the field contry" in result.err


def test_a_condition_of_rows_has_lists_and_words(orders):
    result = run("topic", "list", "--where", "topic in (t, x) and topic matches ^t", "-o", "jsonl")
    assert [json.loads(line)["topic"] for line in result.lines] == ["t"]
    result = run("topic", "list", "--where", "topic = t queues > 1")
    assert (result.code, result.out) == (2, "")
    assert "unexpected 'queues' at character 11" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("term", ["where", "json-path"])
def test_both_languages_are_explained(term):
    result = run("explain", term)
    assert result.code == 0
    assert result.lines[0] == f"{term} (form)"


def test_a_process_that_ends_within_its_first_body_has_seen_no_mistake(monkeypatch):
    """As a killed process of a search, whose facts its parent reads."""

    def end(_: bytes) -> object:
        raise KeyboardInterrupt

    finder = JsonFilter([JsonCondition("a = 1")])
    monkeypatch.setattr("rmqctl.parse.json_texts.parse_json", end)
    with pytest.raises(KeyboardInterrupt):
        finder(b'{"a": 1}')
    assert finder.mistakes() == []
