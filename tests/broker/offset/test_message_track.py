"""Message track: what each group has done with a message, as far as its progress shows."""

from __future__ import annotations

import pytest

from broker.api.members import (
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    SubscriptionData,
)
from broker.api.offsets import ConsumeFromWhere, OffsetCommit
from broker.config import BrokerConfig
from broker.errors import BrokerSystemError
from broker.offset.message_track import MessageTrack, TrackType, message_track
from storage.format.message import Message

PUSH = ConsumeType.CONSUME_PASSIVELY


class Silent:
    def notify_consumer_ids_changed(self, group):
        pass


@pytest.fixture
def broker(open_broker):
    broker = open_broker(BrokerConfig(enable_property_filter=True))
    for n in range(3):
        broker.send(Message("T", b"%d" % n, tags="A", properties={"price": "5"}), 0)
    return broker


def join(
    broker,
    group,
    consume_type=PUSH,
    model=MessageModel.CLUSTERING,
    subscription=SubscriptionData("T"),  # noqa: B008 - immutable
):
    consumer = ConsumerData(
        group, consume_type, model, ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, (subscription,)
    )
    client_id = f"{group}@1"
    broker.connect(client_id, Silent())
    broker.heartbeat(HeartbeatData(client_id, consumers=(consumer,)))


def commit(broker, group, offset):
    broker.update_consumer_offsets(group, [OffsetCommit("T", 0, offset)])


def tags(*names):
    return SubscriptionData("T", " || ".join(names), frozenset(names))


def sql(expression):
    return SubscriptionData("T", expression, expression_type="SQL92")


def test_each_group_is_told_apart_by_what_it_is_and_how_far(broker):
    message = broker.view.get_message("T", 0, 1, 1).messages[0]
    join(broker, "behind")
    commit(broker, "behind", 1)
    join(broker, "done")
    commit(broker, "done", 2)
    join(broker, "fresh")
    join(broker, "puller", ConsumeType.CONSUME_ACTIVELY)
    commit(broker, "puller", 3)
    join(broker, "everybody", model=MessageModel.BROADCASTING)
    join(broker, "other-tags", subscription=tags("B", "C"))
    commit(broker, "other-tags", 3)
    join(broker, "same-tag", subscription=tags("A", "B"))
    commit(broker, "same-tag", 3)
    join(broker, "expensive", subscription=sql("price > 10"))
    commit(broker, "expensive", 3)
    join(broker, "cheap", subscription=sql("price < 10"))
    commit(broker, "cheap", 3)
    commit(broker, "gone", 3)
    join(broker, "elsewhere", subscription=SubscriptionData("U"))
    found = {
        track.consumer_group: track.track_type.value for track in message_track(broker, message)
    }
    assert found == {
        "behind": "NOT_CONSUME_YET",
        "done": "CONSUMED",
        "fresh": "NOT_CONSUME_YET",
        "puller": "PULL",
        "everybody": "CONSUME_BROADCASTING",
        "other-tags": "CONSUMED_BUT_FILTERED",
        "same-tag": "CONSUMED",
        "expensive": "CONSUMED_BUT_FILTERED",
        "cheap": "CONSUMED",
        "gone": "NOT_ONLINE",
    }


def test_a_group_that_can_not_be_asked_about_is_unknown(broker):
    message = broker.view.get_message("T", 0, 0, 1).messages[0]
    commit(broker, "g", 1)
    commit(broker, "h", 1)

    class Refusing:
        """The broker, but for one group's members."""

        def __getattr__(self, name):
            return getattr(broker, name)

        def consumer_connection(self, group):
            if group == "g":
                raise BrokerSystemError("no answer")
            return broker.consumer_connection(group)

    tracks = [track for track in message_track(Refusing(), message) if track.consumer_group in "gh"]
    assert tracks == [
        MessageTrack("g", TrackType.UNKNOWN, "no answer"),
        MessageTrack("h", TrackType.NOT_ONLINE),
    ]
