"""The comparison with other tools: its rows are whole, and its check finds errors."""

import ast

import pytest

from tests.checks import compared
from tests.checks.compared import Row, Told
from tests.checks.markers import marked_in

ROWS = {
    "Produce": [Row("1", "Send", ("yes",) * 7, 1, ""), Row("2", "More", ("no",) * 7, 2, "note")]
}
TESTS = {"1": [("a/test_a.py", "test_it_sends")]}
NOTHING = Told({}, {})


def test_164_rows_in_order_have_their_peers_and_a_mark():
    rows, told = compared.read_rows()
    every = [row for section in rows.values() for row in section]
    assert [row.row_id for row in every] == [str(number) for number in range(1, 165)]
    assert all(len(row.peers) == len(row.tools) for row in every)
    assert {cell for row in every for cell in row.peers} == {"yes", "partial", "no", "-"}
    assert "-" not in {cell for row in every if row.tools == compared.PEERS for cell in row.peers}
    assert [sum(row.wanted == mark for row in every) for mark in (1, 2, 3)] == [118, 38, 8]
    assert not told.absent.keys() & told.partly.keys()


def test_a_row_without_test_and_word_is_missing():
    assert list(compared.missing(ROWS, NOTHING, TESTS)) == ["no test shows 2 (More)"]
    assert list(compared.missing(ROWS, Told({"2": "not yet"}, {}), TESTS)) == []


@pytest.mark.parametrize(
    ("told", "tests", "sentence"),
    [
        (NOTHING, {"3": [("f", "test_x")]}, "3 is no row, but a marker of test_x"),
        (Told({"1": "no"}, {}), TESTS, "1 is said to be absent, but test_it_sends shows it"),
        (Told({}, {"9": "no"}), {}, "9 is no row, but something is said of it"),
    ],
)
def test_a_contradiction_is_found(told, tests, sentence):
    assert sentence in compared.mistakes(ROWS, told, tests)


def test_once_complete_a_missing_row_is_a_mistake(monkeypatch):
    monkeypatch.setattr(compared, "COMPLETE", True)
    found = list(compared.mistakes(ROWS, Told({}, {"2": "half"}), TESTS))
    assert found == [
        "2 is said to be there in part, but no test shows it",
        "no test shows 2 (More)",
    ]


def test_the_document_says_yes_partial_or_no_and_names_the_tests():
    text = compared.rendered(ROWS, Told({}, {"1": "half of it"}), TESTS)
    assert (
        "| **partial** | half of it<br>[a/test_a.py](../tests/a/test_a.py): `test_it_sends` |"
        in text
    )
    assert "| 2 | More<br>*note* |" in text
    assert "| **rmqctl** | this repository | 0 | 1 | 1 |" in text


def test_markers_are_read_of_functions_classes_files_and_machines():
    module = ast.parse(
        "pytestmark = [pytest.mark.slow, pytest.mark.feature(1)]\n"
        "@pytest.mark.feature(2, 3)\n@pytest.mark.conformance('E1')\ndef test_a(): ...\n"
        "TestB = pytest.mark.feature(4)(Machine.TestCase)\n"
        "@pytest.mark.feature(5)\nclass TestC:\n"
        "    @pytest.mark.feature(6)\n    def test_d(s): ...\n"
    )
    assert list(marked_in(module, "feature")) == [
        ("test_a", ["1", "2", "3"]),
        ("TestB", ["1", "4"]),
        ("test_d", ["1", "5", "6"]),
    ]
