"""Rows: what is stored of each is what a send of it stores."""

import pytest
from hypothesis import given, settings, strategies as st

from broker.api.pull import PullRequest
from broker.api.send import RowColumns, SendStatus
from broker.errors import BrokerError, MessageIllegalError
from broker.send.message_builder import Origin
from broker.send.rows import row_inners, table_of
from storage import native
from storage.format.encode import prepare
from storage.format.message import Message
from storage.format.message_id import IdColumn
from storage.format.prepared_table import PreparedTable
from storage.format.properties import encode_properties
from tests.support.examples import examples

IPV6 = bytes(range(16)) + (9876).to_bytes(4, "big")
HOST = bytes((127, 0, 0, 1, 0, 0, 0, 80))
texts = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=9)
rows = st.tuples(
    st.sampled_from(["T", "U", "\u6d88\u606f"]),
    st.binary(max_size=30),
    st.integers(0, 3),
    st.dictionaries(texts.filter(bool), texts.filter(bool), max_size=3).map(encode_properties),
    st.none() | texts.filter(bool),
    texts | st.lists(texts, max_size=3).map(" ".join),
    st.integers(-(1 << 31), (1 << 31) - 1),
)


def columns_of(made, *, one_topic=False):
    topics, *rest = ([*column] for column in zip(*made, strict=True))
    return RowColumns(topics[0] if one_topic else topics, *rest)


@pytest.mark.skipif(native.compiled is None, reason="needs RMQCTL_PURE to be empty")
@given(
    st.lists(rows, min_size=2, max_size=9),
    st.booleans(),
    st.sampled_from([b"", b"CLUSTER\x01c"]),
    st.sampled_from([(HOST, HOST), (IPV6, HOST), (IPV6, IPV6)]),
    st.sampled_from([0, 2, 12]),
)
@settings(max_examples=examples(60), deadline=None)
@pytest.mark.slow
def test_the_records_are_those_of_messages(made, one_topic, added, hosts, sys_flag):
    columns = columns_of(made, one_topic=one_topic)
    ids = IdColumn(b"".join(b"%032X" % number for number in range(len(made))), 32)
    queue_ids = columns.queue_ids
    assert isinstance(queue_ids, list)
    given = columns, queue_ids, ids, Origin(1 << 40, hosts[0], hosts[1], sys_flag), added
    found = table_of(*given)
    wanted = prepare(row_inners(*given))
    assert isinstance(found, PreparedTable)
    assert isinstance(wanted, PreparedTable)
    assert (found.buffer, found.table, found.queues, list(found.key_hashes)) == (
        wanted.buffer,
        wanted.table,
        wanted.queues,
        list(wanted.key_hashes),
    )


def test_rows_are_stored_as_sends_are(broker):
    for topic in ("T", "U"):
        broker.send(Message(topic, b"x"), 0)
    made = [
        (
            topic,
            b"%d" % number,
            1,
            encode_properties({"p": f"{number}"} if number % 3 else {}),
            tag,
            k,
            7,
        )
        for number, (topic, tag, k) in enumerate(
            [
                ("T", "A", ""),
                ("U", None, "k"),
                ("T", "B", "k l"),
                ("T", None, " m "),
                ("U", "A", "n"),
            ]
        )
    ]
    result = broker.send_rows(columns_of(made))
    assert result.send_status is SendStatus.SEND_OK
    assert result.topic == [row[0] for row in made]
    for topic in ("T", "U"):
        sent = [row for row in made if row[0] == topic]
        for row in sent:
            message = Message(topic, row[1], tags=row[4] or "", flag=row[6])
            message.properties |= {"p": row[1].decode()} if row[3] else {}
            if row[5]:
                message.properties["KEYS"] = row[5]
            broker.send(message, 2)
        found, wanted = (
            broker.pull(PullRequest("G", topic, queue_id, 0)).messages for queue_id in (1, 2)
        )
        assert [dict(one.properties, UNIQ_KEY="") for one in found] == [
            dict(one.properties, UNIQ_KEY="") for one in wanted
        ]
        assert [(one.body, one.flag) for one in found] == [(row[1], row[6]) for row in sent]
    keyed = broker.query_message("U", "k", 9, 0, 1 << 60).messages
    assert [message.body for message in keyed] == [b"1", b"1"]


def rows_of(**changed):
    plain = RowColumns("T", [b"a", b"b"], 0, [b"", b""], [None, None], ["", ""], [0, 0])
    return plain._replace(**changed)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"bodies": []}, "the rows have no message"),
        ({"bodies": [b"x" * (5 << 20), b""]}, "the message body has"),
        ({"properties": [b"a\x01b", b"DELAY\x013"]}, "a row holds DELAY among its properties"),
        ({"properties": [b"a\x01b\x02TRAN_MSG\x01true", b""]}, "a row holds TRAN_MSG"),
        *(
            ({"properties": [b"", wrong]}, "are not encoded properties")
            for wrong in (
                b"a",
                b"a\x01b\x02",
                b"\x01b",
                b"a\x01",
                b"\x02a\x01b",
                b"a\x01\x02c\x01d",
            )
        ),
        ({"properties": [b"a\x01\xff", b""]}, "bytes that are no UTF-8"),
        ({"tags": ["a\x02b", None]}, "the value of property 'TAGS' holds"),
        ({"tags": [None, "\udc80"]}, "a tag holds characters that are no Unicode"),
        ({"keys": ["a", "\udc80"]}, "a key holds characters that are no Unicode"),
        ({"keys": ["a", "\x01"]}, "the value of property 'KEYS' holds"),
        ({"topics": ["T", "U"]}, "rows of several topics name a queue each"),
        ({"properties": [b"a\x01" + b"x" * 32_760, b""]}, "the properties have"),
    ],
)
def test_rows_that_are_refused(broker, changed, sentence):
    before = broker.view.log_max_offset()
    with pytest.raises(MessageIllegalError, match=sentence):
        broker.send_rows(rows_of(**changed))
    assert broker.view.log_max_offset() == before


def test_a_queue_that_no_topic_has(broker):
    with pytest.raises(BrokerError, match="has no queue 99"):
        broker.send_rows(rows_of(topics=["T", "U"], queue_ids=[0, 99]))
    with pytest.raises(ValueError, match="2 bodies have a column of 1"):
        broker.send_rows(rows_of(flags=[1]))
