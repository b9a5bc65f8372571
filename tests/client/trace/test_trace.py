"""Traces as text."""

from __future__ import annotations

import pytest

from broker.api.transactions import LocalTransactionState
from client.hooks import ConsumeReturnType, MessageType
from client.trace.trace import (
    TraceBean,
    TraceContext,
    TraceType,
    decode_traces,
    encode_trace,
    trace_keys,
)

PUB = TraceContext(
    trace_type=TraceType.Pub,
    timestamp=1_700_000_000_123,
    group_name="group",
    cost_ms=7,
    beans=[
        TraceBean(
            topic="T",
            msg_id="7F0000010001AABBCCDD000000000000",
            offset_msg_id="7F00000100002A9F0000000000000000",
            tags="TagA",
            keys="k1 k2",
            store_host="127.0.0.1:10911",
            body_length=12,
            msg_type=MessageType.Delay_Msg,
        )
    ],
)
PUB_TEXT = (
    "Pub\x011700000000123\x01DefaultRegion\x01group\x01T\x017F0000010001AABBCCDD000000000000\x01TagA"
    "\x01k1 k2\x01127.0.0.1:10911\x0112\x017\x013\x017F00000100002A9F0000000000000000\x01true\x02"
)


@pytest.mark.conformance("E9")
def test_what_was_sent_is_written_in_14_fields():
    assert encode_trace(PUB) == PUB_TEXT
    assert decode_traces(PUB_TEXT) == [PUB]
    assert trace_keys(PUB) == {"7F0000010001AABBCCDD000000000000", "k1", "k2"}


def test_what_is_not_there_is_javas_null():
    bean = TraceBean(topic="T", msg_id="id")
    text = encode_trace(TraceContext(trace_type=TraceType.Pub, beans=[bean], success=False))
    assert text == (
        "Pub\x010\x01DefaultRegion\x01\x01T\x01id\x01null\x01null\x01\x010\x010\x010\x01\x01false\x02"
    )
    [back] = decode_traces(text)
    assert (back.beans[0].tags, back.beans[0].keys) == (None, None)


@pytest.mark.parametrize("fields", [13, 14, 15])
def test_older_and_newer_records_of_what_was_sent_are_read(fields):
    parts = PUB_TEXT.rstrip("\x02").split("\x01")
    if fields == 13:
        del parts[12]
    if fields == 15:
        parts.append("10.0.0.1")
    [context] = decode_traces("\x01".join(parts) + "\x02")
    [bean] = context.beans
    assert context.success
    assert bean.offset_msg_id == ("" if fields == 13 else "7F00000100002A9F0000000000000000")
    assert bean.client_host == ("10.0.0.1" if fields == 15 else "")


@pytest.mark.conformance("E9")
def test_a_listeners_call_is_written_before_and_after_once_a_message():
    beans = [
        TraceBean(msg_id="id1", keys="k1", retry_times=0),
        TraceBean(msg_id="id2", keys="", retry_times=3),
    ]
    before = TraceContext(
        trace_type=TraceType.SubBefore,
        timestamp=5,
        region_id=None,
        group_name="group",
        request_id="request",
        beans=beans,
    )
    assert encode_trace(before) == (
        "SubBefore\x015\x01null\x01group\x01request\x01id1\x010\x01k1\x02"
        "SubBefore\x015\x01null\x01group\x01request\x01id2\x013\x01\x02"
    )
    after = TraceContext(
        trace_type=TraceType.SubAfter,
        timestamp=9,
        group_name="group",
        request_id="request",
        cost_ms=2,
        success=False,
        context_code=ConsumeReturnType.FAILED,
        beans=beans,
    )
    assert encode_trace(after) == (
        "SubAfter\x01request\x01id1\x012\x01false\x01k1\x014\x019\x01group\x02"
        "SubAfter\x01request\x01id2\x012\x01false\x01\x014\x019\x01group\x02"
    )
    read = decode_traces(encode_trace(before) + encode_trace(after))
    assert [(it.trace_type, it.beans[0].msg_id) for it in read] == [
        ("SubBefore", "id1"),
        ("SubBefore", "id2"),
        ("SubAfter", "id1"),
        ("SubAfter", "id2"),
    ]
    assert (read[1].request_id, read[1].beans[0].retry_times) == ("request", 3)
    assert (read[3].context_code, read[3].timestamp, read[3].group_name) == (4, 9, "group")


def test_old_records_of_a_call_end_with_the_keys_or_the_code():
    [oldest] = decode_traces("SubAfter\x01request\x01id\x012\x01true\x01k\x02")
    assert (oldest.context_code, oldest.timestamp, oldest.group_name) == (-1, 0, "")
    [cloud] = decode_traces("SubAfter\x01request\x01id\x012\x01true\x01k\x012\x01")
    assert (cloud.context_code, cloud.timestamp) == (ConsumeReturnType.EXCEPTION, 0)


def test_the_end_of_a_transaction_is_written_in_13_fields():
    bean = TraceBean(
        topic="T",
        msg_id="id",
        keys="k",
        store_host="127.0.0.1:10911",
        msg_type=MessageType.Trans_msg_Commit,
        transaction_id="id",
        transaction_state=LocalTransactionState.ROLLBACK_MESSAGE,
        from_transaction_check=True,
    )
    context = TraceContext(
        trace_type=TraceType.EndTransaction, timestamp=5, group_name="group", beans=[bean]
    )
    text = encode_trace(context)
    assert text == (
        "EndTransaction\x015\x01DefaultRegion\x01group\x01T\x01id\x01null\x01k\x01127.0.0.1:10911"
        "\x012\x01id\x01ROLLBACK_MESSAGE\x01true\x02"
    )
    assert decode_traces(text) == [context]


def test_a_record_that_can_not_be_read_does_not_hide_the_others(caplog):
    text = f"Pub\x01no number\x02SubBefore\x015\x02Future\x01thing\x02{PUB_TEXT}"
    assert decode_traces(text) == [PUB]
    assert caplog.text.count("a trace record cannot be read") == 2
    assert decode_traces("") == []


def test_a_batch_is_found_by_each_of_its_ids():
    bean = TraceBean(topic="T", msg_id="id1,id2")
    context = TraceContext(trace_type=TraceType.Pub, beans=[bean])
    assert trace_keys(context) == {"id1", "id2"}
