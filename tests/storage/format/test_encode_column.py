"""Columns whose keys have one length take another path: same records."""

from __future__ import annotations

import pytest

from storage.format.encode import MessageInner, prepare
from storage.format.encode_column import prepare_column

HOST = bytes((127, 0, 0, 1, 0, 0, 42, 159))


@pytest.mark.parametrize(
    "keys",
    [
        ["order-1", "order-2", "order-3"],
        ["a", "b", "c"],
        ["k" * 256, "l" * 256, "m" * 256],
        ["k" * 257, "l" * 257, "m" * 257],
        ["k1 k2", "k3 k4", "k5 k6"],
        ["a", "bb", "ccc"],
        ["ab", "c", "d e"],
        ["abc", "d", "ef"],
        ["", "b", "c"],
        ["", "", ""],
        ["\u00e4", "\u00f6", "\u00fc"],
        ["\u2713", "\u2717", "a"],
    ],
)
@pytest.mark.parametrize("shared", [b"", b"TAGS\x01A"])
@pytest.mark.parametrize("unique_ids", [None, [b"%032X" % n for n in range(3)]])
def test_keys_of_any_shape_give_the_records_that_messages_give(
    keys: list[str], shared: bytes, unique_ids: list[bytes] | None
) -> None:
    bodies = [b"x", b"", b"zzz"]
    inners = []
    for i, body in enumerate(bodies):
        unique = b"UNIQ_KEY\x01" + unique_ids[i] if unique_ids else b""
        key = b"KEYS\x01" + keys[i].encode() if keys[i] else b""
        index_keys = (unique_ids[i].decode(),) if unique_ids else ()
        inners.append(
            MessageInner(
                "T",
                (7, 3, 7)[i],
                body,
                b"\x02".join(filter(None, (shared, unique, key))),
                5,
                HOST,
                HOST,
                keys=index_keys + tuple(keys[i].split()),
            )
        )
    column = prepare_column(
        "T",
        [7, 3, 7],
        bodies,
        born_timestamp=5,
        born_host=HOST,
        store_host=HOST,
        properties=shared,
        unique_ids=unique_ids,
        keys=keys,
    )
    expected = prepare(inners)
    assert bytes(column.buffer) == bytes(expected.buffer)
    assert list(column.key_hashes) == list(expected.key_hashes)
    assert column.queues == expected.queues
    assert column.units(9, 9) == expected.units(9, 9)
    assert list(column.place(9, [4, 5], 9)) == list(expected.place(9, [4, 5], 9)) == [4, 5, 5]
    assert bytes(column.buffer) == bytes(expected.buffer)
