"""Records that keep their times are prepared as if they had just been encoded."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from storage.format.cq_unit import PRE_BLANK, iter_units
from storage.format.encode import MessageInner, prepare
from storage.format.prepared_exact import ExactColumns
from storage.format.record import decode_record, encode_record
from storage.tools.carve.columns import ExactEncoder
from tests.support.inner_messages import inner_messages, ipv4_hosts, ipv6_hosts

messages = st.lists(
    inner_messages(ipv4_hosts | ipv6_hosts, transaction_types=(0, 8)), min_size=1, max_size=20
)
TIMES = 1_700_000_000_000


def exact(given_messages, offsets=None, version=1):
    """The records as another store has them, and their batch."""
    queues = list(dict.fromkeys((m.topic, m.queue_id) for m in given_messages))
    numbers = [queues.index((m.topic, m.queue_id)) for m in given_messages]
    records = [
        encode_record(
            topic=m.topic,
            queue_id=m.queue_id,
            body=m.body,
            properties=m.properties,
            queue_offset=7,
            physical_offset=999,
            store_timestamp=TIMES + row * 1000,
            born_timestamp=m.born_timestamp,
            born_host=m.born_host,
            store_host=m.store_host,
            flag=m.flag,
            sys_flag=m.sys_flag,
            reconsume_times=m.reconsume_times,
            prepared_transaction_offset=m.prepared_transaction_offset,
            version=version,
        )
        for row, m in enumerate(given_messages)
    ]
    encoder = ExactEncoder([("unused", 3), *queues])
    columns = encoder.columns(
        records, np.array(numbers) + 1, None if offsets is None else np.array(offsets)
    )
    return queues, records, columns


@given(given_messages=messages, version=st.sampled_from([1, 2]))
@settings(deadline=None)
@pytest.mark.slow
def test_hashes_and_places_are_those_of_the_encoder(given_messages, version):
    given_messages = [m._replace(delay_time_level=0, delay_ms=0) for m in given_messages]
    queues, _, columns = exact(given_messages, version=version)
    wanted = prepare(given_messages)
    assert list(columns.tags_codes) == list(wanted.tags_codes)
    assert list(columns.key_hashes) == list(wanted.key_hashes)
    assert isinstance(columns, ExactColumns)
    nexts = {queue: 100 * number for number, queue in enumerate(queues)}
    own = columns.place(5000, [nexts[queue] for queue in columns.queues], 1)
    for row, (message, start) in enumerate(zip(given_messages, columns.starts, strict=True)):
        record = bytes(columns.buffer[start : start + columns.sizes[row]])
        found = decode_record(record)
        queue = (message.topic, message.queue_id)
        assert (found.topic, found.queue_id, found.version) == (*queue, version)
        assert found.queue_offset == own[row] == nexts[queue]
        assert found.commitlog_offset == 5000 + start
        assert found.store_timestamp == TIMES + row * 1000
        assert found.property_bytes == message.properties
        nexts[queue] += 1


@given(
    given_messages=messages,
    gaps=st.lists(st.integers(0, 3), min_size=20, max_size=20),
    limit=st.integers(0, 3000),
)
@settings(deadline=None)
@pytest.mark.slow
def test_left_out_queue_offsets_get_fillers_in_every_part(given_messages, gaps, limit):
    nexts: dict[tuple[str, int], int] = {}
    offsets = []
    for message, gap in zip(given_messages, gaps, strict=False):
        queue = (message.topic, message.queue_id)
        offsets.append(nexts.get(queue, 40) + gap)
        nexts[queue] = offsets[-1] + 1
    _, records, columns = exact(given_messages, offsets)
    following = dict.fromkeys(columns.queues, 40)
    units: dict[tuple[str, int], list[bytes]] = {queue: [] for queue in columns.queues}
    place = 0
    for part in columns.split(limit):
        if part is None or not len(part):
            continue
        part.place(place, [following[queue] for queue in part.queues], 1)
        for number, count, block in part.units(place, 1):
            queue = part.queues[number]
            units[queue] += [block[at : at + 20] for at in range(0, len(block), 20)]
            following[queue] += count
        place += len(part.buffer)
    starts = np.cumsum([0, *map(len, records)])
    for queue, found in units.items():
        wanted = {
            offset - 40: (int(starts[row]), len(records[row]))
            for row, (message, offset) in enumerate(zip(given_messages, offsets, strict=True))
            if (message.topic, message.queue_id) == queue
        }
        assert len(found) == max(wanted) + 1
        for at, block in enumerate(found):
            if at in wanted:
                assert next(iter_units(block))[:2] == wanted[at]
            else:
                assert block == PRE_BLANK


def test_queue_offsets_that_do_not_ascend_are_refused_before_anything_is_written():
    message = MessageInner("t", 0, b"b", b"", 1, bytes(8), bytes(8))
    for offsets, following in (([5, 5], 5), ([6, 5], 5), ([4, 5], 5)):
        _, _, columns = exact([message, message], offsets)
        with pytest.raises(ValueError, match="do not ascend"):
            columns.place(0, [following], 0)
