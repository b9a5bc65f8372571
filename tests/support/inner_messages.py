"""Strategies for messages as the broker passes them to the store."""

from hypothesis import strategies as st

from storage.format.encode import MessageInner
from storage.format.properties import encode_properties

names = st.text(
    st.characters(exclude_characters="\x01\x02 ", exclude_categories=["Cs"]), min_size=1
)
int32s = st.integers(-(1 << 31), (1 << 31) - 1)
int64s = st.integers(-(1 << 63), (1 << 63) - 1)
times = st.integers(0, 1 << 45)
ipv4_hosts = st.binary(min_size=8, max_size=8)
ipv6_hosts = st.binary(min_size=20, max_size=20)
topics = st.sampled_from(
    ["TopicTest", "T", "%RETRY%g", "SCHEDULE_TOPIC_XXXX", "\u4e3b\u9898", "t" * 127]
)


@st.composite
def inner_messages(
    draw: st.DrawFn,
    hosts: st.SearchStrategy[bytes] = ipv4_hosts,
    transaction_types: tuple[int, ...] = (0, 4, 8, 12),
) -> MessageInner:
    """A message with every field varied; its properties agree with tags and keys."""
    keys = tuple(draw(st.lists(names, max_size=3)))
    tags = draw(st.none() | names)
    properties = {
        name: value for name, value in (("KEYS", " ".join(keys)), ("TAGS", tags)) if value
    }
    level = draw(st.sampled_from([0, 0, 3]))
    return MessageInner(
        topic=draw(topics),
        queue_id=draw(st.integers(0, 2)),
        body=draw(st.binary(max_size=20)),
        properties=encode_properties(properties),
        born_timestamp=draw(times),
        born_host=draw(hosts),
        store_host=draw(hosts),
        flag=draw(int32s),
        sys_flag=draw(st.sampled_from(transaction_types)) | draw(st.sampled_from([0, 1, 2, 0x301])),
        reconsume_times=draw(int32s),
        prepared_transaction_offset=draw(int64s),
        tags=tags,
        keys=keys,
        delay_time_level=level,
        delay_ms=10_000 if level else 0,
    )
