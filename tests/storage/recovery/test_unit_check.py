"""What recovery reads of many records at once."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, strategies as st

from storage.files.read_files import MapBudget, ReadOnlyFiles
from storage.format.encode import MessageInner, prepare
from storage.format.host import pack_host
from storage.format.message import PROPERTY_INNER_MULTI_QUEUE_OFFSET
from storage.format.properties import encode_properties
from storage.recovery.unit_check import read_heads

HOSTS = (pack_host("10.0.0.1:4711"), pack_host("[fe80::1]:4711"))


@st.composite
def messages(draw: st.DrawFn) -> MessageInner:
    properties = {"K": "v" * draw(st.sampled_from((0, 1, 30, 600)))}
    if draw(st.booleans()):
        properties[PROPERTY_INNER_MULTI_QUEUE_OFFSET] = "5"
    if draw(st.booleans()):
        properties["Z"] = "z" * draw(st.integers(0, 9))
    return MessageInner(
        "T" * draw(st.integers(1, 30)),
        draw(st.integers(0, 9)),
        bytes(draw(st.sampled_from((0, 1, 17, 900)))),
        encode_properties(properties),
        1,
        HOSTS[draw(st.integers(0, 9)) == 9],
        HOSTS[draw(st.integers(0, 9)) == 9],
        reconsume_times=draw(st.sampled_from((0, 14, 100, 1 << 30))),
    )


LONGER_HEAD = MessageInner(
    "T",
    0,
    b"",
    encode_properties({PROPERTY_INNER_MULTI_QUEUE_OFFSET: "5"}),
    1,
    HOSTS[1],
    HOSTS[0],
    reconsume_times=30,
)
"""Where others have the length of the body it has a number that makes the body seem longer."""


@example([LONGER_HEAD], 1)
@given(st.lists(messages(), min_size=1, max_size=5), st.integers(1, 4))
@pytest.mark.slow
def test_heads_are_those_of_the_records_and_no_light_queue_is_overlooked(
    given_messages: list[MessageInner], times: int
) -> None:
    several = given_messages * times
    records = prepare([*several, several[0]])  # the last is not asked for
    count = len(several)
    sizes = [int(size) for size in records.sizes[:count]]
    with TemporaryDirectory() as folder:
        buffer = bytes(records.buffer)
        (Path(folder) / f"{0:020d}").write_bytes(buffer + bytes(100_000 - len(buffer)))
        heads = read_heads(ReadOnlyFiles(MapBudget(), folder, 100_000), 0, sizes)
    assert heads.size.tolist() == sizes
    assert heads.offset.tolist() == [int(start) for start in records.starts[:count]]
    assert heads.queue_id.tolist() == [message.queue_id for message in several]
    named = PROPERTY_INNER_MULTI_QUEUE_OFFSET.encode()
    for found, message in zip(heads.light, several, strict=True):
        assert found or named not in message.properties
    if all(named not in message.properties for message in several):
        assert not heads.light.any()
