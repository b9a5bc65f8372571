"""A number of thousands of digits is no number: int() would raise in the middle of a walk."""

import time

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.config import SMALL_STORE
from storage.format.encode import MessageInner, prepare
from storage.format.java_numbers import parse_digits, parse_int
from storage.format.message import SCHEDULE_TOPIC, TRANS_HALF_TOPIC
from storage.format.properties import encode_properties
from storage.store import MessageStore
from tests.support.cli import run

MANY = "9" * 5_000
HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))
PROPERTIES = {
    "schedule": (SCHEDULE_TOPIC, {"DELAY": MANY, "REAL_TOPIC": "t", "REAL_QID": MANY}),
    "half": (
        TRANS_HALF_TOPIC,
        {"REAL_TOPIC": "t", "REAL_QID": MANY, "TRANSACTION_CHECK_TIMES": MANY}
        | {"TRAN_PREPARED_QUEUE_OFFSET": MANY},
    ),
    "light": ("t", {"INNER_MULTI_DISPATCH": "%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": MANY}),
}


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("9" * 19, 10**19 - 1), ("9" * 20, None), (MANY, None)]
    + [("", None), ("-1", None), ("\u0663", None), ("\u00b2", None), ("1 ", None)],
)
def test_a_number_is_some_ascii_digits(text, number):
    assert parse_digits(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("0000000000007", 7), ("2147483647", 2**31 - 1), ("2147483648", None)]
    + [("9" * 19, None), (MANY, None), ("", None), ("-1", None), ("\u0663", None)],
)
def test_an_int_is_some_ascii_digits_that_java_holds(text, number):
    assert parse_int(text) == number


@pytest.mark.parametrize("what", PROPERTIES)
@pytest.mark.slow
def test_a_property_of_thousands_of_digits_ends_no_command(tmp_path, what):
    root, now = tmp_path / "s", time.time_ns() // 1_000_000
    MessageStore.create(root, SMALL_STORE)
    topic, properties = PROPERTIES[what]
    text = encode_properties({"UNIQ_KEY": "7F0000010000000000000000000000", **properties})
    with EmbeddedBroker.open(root) as broker:
        assert broker.store is not None
        broker.store.put(prepare((MessageInner(topic, 0, b"x", text, now, HOST, HOST),)))
    (root / "abort").touch()  # so that the record is read again
    for line in (
        "broker status",
        "retry agenda",
        "lag show",
        "topic queues",
        "store fsck",
        f"store tail -e --from {MANY}",
        "store rebuild queue --execute --yes",
        "produce other",
        "broker status",
    ):
        result = run(*line.split(), "-S", root, "--no-input", stdin=b"x\n")
        assert "internal error" not in result.err, (line[:30], result)
        assert result.code in (0, 2, 3, 4, 8), (line[:30], result)
