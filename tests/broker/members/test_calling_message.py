"""Message is called as any class is, though compiled code makes it without a tuple and a dict."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, strategies as st

import storage.format.plain_message  # noqa: F401 - binds the compiled forms
from storage.format.message import Message
from tests.support.compiled import native, needs_compiled

pytestmark = [
    needs_compiled,
    pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty"),
]


def called_with_a_tuple_and_a_dict(args: tuple[Any, ...], by_name: Mapping[str, Any]) -> object:
    """What Python does where a class has no shorter way."""
    return type.__call__(Message, *args, **by_name)


def outcome(make: Any, *given: Any) -> object:
    try:
        made = make(*given)
    except TypeError as error:
        return str(error)
    return type(made), made.topic, made.body, made.flag, list(made.properties.items())


VALUES = {
    "topic": st.just("T"),
    "body": st.just(b"body"),
    "tags": st.none() | st.text(max_size=3) | st.just(5),
    "keys": st.none() | st.text(max_size=3) | st.just(("a", "b")) | st.just(7),
    "flag": st.just(3),
    "delay_time_level": st.sampled_from([0, 2]),
    "properties": st.none() | st.just({"a": "b"}) | st.just(5),
    "nobody_knows": st.just(1),
}


@given(
    st.lists(st.sampled_from(["T", b"body", 3]), max_size=3),
    st.fixed_dictionaries({}, optional=VALUES),
    st.randoms(use_true_random=False),
)
def test_all_ways_to_call_it_make_the_same(
    args: list[Any], by_name: dict[str, Any], rng: random.Random
) -> None:
    names = list(by_name)
    rng.shuffle(names)
    by_name = {name: by_name[name] for name in names}
    assert outcome(lambda: Message(*args, **by_name)) == outcome(
        called_with_a_tuple_and_a_dict, tuple(args), by_name
    )


def test_a_subclass_and_another_init_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(Message):
        def __init__(self, number: int) -> None:
            super().__init__("T", b"%d" % number, tags="own")

    own = Own(5)
    assert (type(own), own.body, own.tags) == (Own, b"5", "own")
    assert type(Message.__new__(Message)) is Message

    def __init__(self: Message, topic: str, body: bytes) -> None:
        self.topic, self.body, self.flag, self.properties = topic + "!", body, 0, {}

    with monkeypatch.context() as patched:
        patched.setattr(Message, "__init__", __init__)
        assert Message("T", b"x").topic == "T!"
    assert Message("T", b"x").topic == "T"
