"""Operators who create the same thing at the same moment, each with settings of their own."""

import json

import pytest

from tests.support.cli import run, start

_OPTIONS = {"topic": "--queues", "group": "--retry-max-times"}
_MEMBERS = {"topic": "write_queues", "group": "retry_max_times"}
_ROUNDS = 3
_OPERATORS = 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", _OPTIONS)
def test_one_of_them_creates_it_and_the_others_are_refused(store, kind):
    for turn in range(_ROUNDS):
        name = f"new{turn}"
        calls = {
            number: start(kind, "create", name, _OPTIONS[kind], number, "-o", "json")
            for number in range(1, _OPERATORS + 1)
        }
        ended = {number: (*call.communicate(), call.returncode) for number, call in calls.items()}
        (made,) = (number for number, (_, _, code) in ended.items() if code == 0)
        assert json.loads(ended.pop(made)[0])[0]["created"] is True
        assert {code for _, _, code in ended.values()} == {7}
        assert all(b"exists already with" in err for _, err, _ in ended.values())
        listed = run(kind, "list", "-o", "json", "--where", f"{kind} = {name}").json()
        assert [row[_MEMBERS[kind]] for row in listed] == [made]
