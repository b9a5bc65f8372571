"""A message with INNER_MULTI_DISPATCH goes to further queues, as with RocketMQ's multi-dispatch."""

from pathlib import Path

import pytest

from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from broker.errors import MessageIllegalError
from storage.format.message import (
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INNER_MULTI_QUEUE_OFFSET,
    Message,
)
from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.samples import SMALL

LIGHT = SMALL.with_(enable_multi_dispatch=True)
NAMES = "%LMQ%first,%LMQ%second"


def light(body: bytes, names: str = NAMES) -> Message:
    return Message("T", body, properties={PROPERTY_INNER_MULTI_DISPATCH: names})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    MessageStore.create(tmp_path / "s", LIGHT)
    return tmp_path / "s"


def bodies(view: StoreView, topic: str, queue_id: int = 0) -> list[bytes]:
    return [message.body for message in view.get_message(topic, queue_id, 0, 32).messages]


def test_each_light_queue_counts_for_itself(root: Path) -> None:
    with EmbeddedBroker.open(root, store_config=LIGHT) as broker:
        first = broker.send(light(b"both"), 0)
        broker.send(light(b"second only", "%LMQ%second"), 1)
        second = broker.send(light(b"both again"), 0)
        assert (first.queue_offset, second.queue_offset) == (0, 1)

    with StoreView.open(root) as view:
        assert bodies(view, "%LMQ%first") == [b"both", b"both again"]
        assert bodies(view, "%LMQ%second") == [b"both", b"second only", b"both again"]
        assert bodies(view, "T", 0) == [b"both", b"both again"]
        message = view.get_message("T", 0, 1, 1).messages[0]
        assert message.get_property(PROPERTY_INNER_MULTI_QUEUE_OFFSET) == "1,2"


def test_recovery_builds_the_same_light_queues(root: Path) -> None:
    with EmbeddedBroker.open(root, store_config=LIGHT) as broker:
        for number in range(5):
            broker.send(light(b"%d" % number), 0)
    for folder in (root / "consumequeue").iterdir():
        for path in sorted(folder.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        folder.rmdir()
    (root / "rmqctl/shared").unlink()
    with MessageStore.open(root) as store:
        assert store.recovery is not None
        assert bodies(store.view, "%LMQ%second") == [b"0", b"1", b"2", b"3", b"4"]


def test_without_the_setting_the_property_is_only_a_property(tmp_path: Path) -> None:
    MessageStore.create(tmp_path / "s", SMALL)
    with EmbeddedBroker.open(tmp_path / "s", store_config=SMALL) as broker:
        broker.send(light(b"x"), 0)
        assert broker.view.max_offset_in_queue("%LMQ%first", 0) == 0


def test_a_message_that_is_stored_again_claims_no_places_in_light_queues(root: Path) -> None:
    """Its offsets there belong to the first record; recovery would give them to the last one."""
    now = [1_700_000_000_000]
    with EmbeddedBroker.open(root, store_config=LIGHT, clock=lambda: now[0]) as broker:
        later = light(b"later")
        later.delay_time_level = 1
        broker.send(later, 0)
        broker.send(light(b"again"), 0)
        place = broker.view.get_message("T", 0, 0, 1).messages[0].commitlog_offset
        broker.send_message_back(SendBackRequest("g", "T", place, "", delay_level=1))
        now[0] += 1_000
        delayed = broker.delayed
        assert delayed is not None
        delayed.tick(now[0])
        again = [
            *broker.view.get_message("T", 0, 1, 1).messages,
            *broker.view.get_message("%RETRY%g", 0, 0, 1).messages,
        ]
        assert [message.body for message in again] == [b"later", b"again"]
        for message in again:
            assert message.get_property(PROPERTY_INNER_MULTI_DISPATCH) == NAMES
            assert message.get_property(PROPERTY_INNER_MULTI_QUEUE_OFFSET) is None


@pytest.mark.parametrize(
    "names",
    ["%LMQ%a,", ",%LMQ%a", "../../x", "/tmp/x", "a/b", ".", "%LMQ%\t", f"%LMQ%{'a' * 251}"],
)
def test_a_name_that_no_queue_can_have_is_refused(root: Path, names: str) -> None:
    with EmbeddedBroker.open(root, store_config=LIGHT) as broker:
        with pytest.raises(MessageIllegalError, match="can be no queue"):
            broker.send(light(b"lost", names), 0)
        with StoreView.open(root) as view:
            assert view.log_max_offset() == 0
    assert [*root.parent.iterdir()] == [root]
    assert not [*root.glob("consumequeue/*")]


@pytest.mark.parametrize("names", ["%LMQ%a,%LMQ%a", "%LMQ%a,T"])
def test_a_queue_that_is_named_twice_is_refused(root: Path, names: str) -> None:
    with EmbeddedBroker.open(root, store_config=LIGHT) as broker:
        with pytest.raises(MessageIllegalError, match="twice"):
            broker.send(light(b"lost", names), 0)
        assert broker.send(light(b"kept"), 0).queue_offset == 0
