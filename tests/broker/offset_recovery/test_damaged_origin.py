"""A retry whose first message is damaged."""

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from broker.offset_recovery.retry_evidence import given_back
from storage.config import SMALL_STORE
from storage.format.message import Message
from storage.readonly import StoreView
from tests.support.dead_letters import give_back

_QUEUE_ID_AT = 12


def test_a_first_message_with_a_queue_below_zero_is_no_evidence(tmp_path):
    root = tmp_path / "s"
    create_store(root, SMALL_STORE)
    with EmbeddedBroker.open(root) as broker:
        sent = broker.send(Message("t", b"x"), 0)
        (first,) = broker.query_unique("t", sent.msg_id)
        give_back(broker, "g", first, level=17)
    with StoreView.open(root) as view:
        assert [event.place for event in given_back(view)] == [("g", "t", 0)]
    (log,) = (root / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(first.commitlog_offset + _QUEUE_ID_AT)
        file.write(b"\xff" * 4)
    with StoreView.open(root) as view:
        assert given_back(view) == []
