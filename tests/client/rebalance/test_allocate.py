"""Allocation strategies: RocketMQ's vectors, and that members agree."""

from __future__ import annotations

from typing import cast

import pytest
from hypothesis import given, strategies as st

from client.errors import ClientConfigError
from client.rebalance.allocate import (
    AllocateAveragely,
    AllocateAveragelyByCircle,
    AllocateByConfig,
    AllocateByMachineRoom,
    AllocateConsistentHash,
    AllocateMachineRoomNearby,
    AllocateMessageQueueStrategy,
    allocate_strategy,
    md5_hash,
)
from storage.format.message import MessageQueue

CLIENTS = ["10.0.0.1@1", "10.0.0.2@1", "10.0.0.3@1"]


def queues(count: int, broker: str = "broker-a", topic: str = "TopicTest") -> list[MessageQueue]:
    return [MessageQueue(topic, broker, i) for i in range(count)]


def shares(
    strategy: AllocateMessageQueueStrategy, all_queues: list[MessageQueue], clients: list[str]
) -> list[list[int]]:
    return [
        [q.queue_id for q in strategy.allocate("g", client, all_queues, clients)]
        for client in clients
    ]


@pytest.mark.conformance("C1", "C2")
@pytest.mark.parametrize(
    ("count", "members", "expected"),
    [
        (8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        (10, 4, [[0, 1, 2], [3, 4, 5], [6, 7], [8, 9]]),
        (3, 5, [[0], [1], [2], [], []]),
        (4, 4, [[0], [1], [2], [3]]),
        (8, 1, [[0, 1, 2, 3, 4, 5, 6, 7]]),
    ],
)
def test_averagely_gives_pages(count: int, members: int, expected: list[list[int]]) -> None:
    clients = [f"c{i}" for i in range(members)]
    assert shares(AllocateAveragely(), queues(count), clients) == expected


@pytest.mark.conformance("C1")
def test_by_circle_deals_queues_like_cards() -> None:
    assert shares(AllocateAveragelyByCircle(), queues(8), CLIENTS) == [[0, 3, 6], [1, 4, 7], [2, 5]]


@pytest.mark.conformance("C1")
def test_the_ring_has_rocketmqs_vectors() -> None:
    assert md5_hash("MessageQueue [topic=TopicTest, brokerName=broker-a, queueId=0]") == 1987926524
    owners = {}
    for i, share in enumerate(shares(AllocateConsistentHash(), queues(8), CLIENTS), 1):
        owners.update(dict.fromkeys(share, i))
    assert [owners[i] for i in range(8)] == [2, 1, 3, 3, 1, 1, 2, 2]


@pytest.mark.conformance("C1")
def test_a_member_that_leaves_the_ring_moves_only_its_own_queues() -> None:
    strategy = AllocateConsistentHash()
    before = shares(strategy, queues(64), CLIENTS)
    after = shares(strategy, queues(64), CLIENTS[:2])
    assert set(before[0]) <= set(after[0])
    assert set(before[1]) <= set(after[1])


@pytest.mark.conformance("C1")
def test_a_place_of_the_ring_owns_what_lies_on_it_and_the_first_what_lies_behind_the_last() -> None:
    places = {"x-0": 100, "y-0": 200}
    hashes = (99, 100, 101, 200, 201, 0)

    def hash_of(text: str) -> int:
        return places[text] if text in places else hashes[int(text[text.rindex("=") + 1 : -1])]

    strategy = AllocateConsistentHash(1, hash_of)
    assert shares(strategy, queues(6), ["x", "y"]) == [[0, 1, 4, 5], [2, 3]]


@pytest.mark.conformance("C1")
def test_a_ring_may_not_have_a_negative_number_of_places() -> None:
    with pytest.raises(ValueError, match="virtual_node_cnt is -1; it is 0 or more"):
        AllocateConsistentHash(-1)


def test_a_ring_without_places_gives_nothing() -> None:
    assert shares(AllocateConsistentHash(0), queues(2), CLIENTS) == [[], [], []]


@pytest.mark.conformance("C1")
def test_by_machine_room_gives_queues_of_the_rooms_brokers_only() -> None:
    mixed = [
        *queues(5, "roomA@broker-a"),
        *queues(2, "roomB@broker-b"),
        *queues(2, "broker-c"),
        *queues(2, "roomA@x@y"),
    ]
    strategy = AllocateByMachineRoom({"roomA"})
    # two each, and the fifth to the first client
    assert shares(strategy, mixed, ["c0", "c1"]) == [[0, 1, 4], [2, 3]]
    assert all(
        q.broker_name == "roomA@broker-a" for q in strategy.allocate("g", "c0", mixed, ["c0", "c1"])
    )


@pytest.mark.conformance("C1")
@pytest.mark.parametrize(
    ("count", "members", "expected"),
    [
        (8, 3, [[0, 1, 6], [2, 3, 7], [4, 5]]),
        (7, 4, [[0, 4], [1, 5], [2, 6], [3]]),
        (2, 3, [[0], [1], []]),
        (6, 3, [[0, 1], [2, 3], [4, 5]]),
    ],
)
def test_queues_that_are_left_over_in_a_machine_room_go_one_each_to_the_first_clients(
    count: int, members: int, expected: list[list[int]]
) -> None:
    clients = [f"c{i}" for i in range(members)]
    strategy = AllocateByMachineRoom({"room"})
    assert shares(strategy, queues(count, "room@broker"), clients) == expected


@pytest.mark.conformance("C1")
def test_nearby_gives_queues_to_clients_of_their_room_and_orphans_to_all() -> None:
    rooms = [*queues(4, "a@1"), *queues(4, "b@1"), *queues(4, "c@1")]
    clients = ["a@x", "a@y", "b@x"]
    strategy = AllocateMachineRoomNearby(AllocateAveragely())
    given = {
        client: [
            f"{q.broker_name[0]}{q.queue_id}"
            for q in strategy.allocate("g", client, rooms, clients)
        ]
        for client in clients
    }
    assert given == {
        "a@x": ["a0", "a1", "c0", "c1"],
        "a@y": ["a2", "a3", "c2"],
        "b@x": ["b0", "b1", "b2", "b3", "c3"],
    }


@pytest.mark.conformance("C1")
def test_nearby_refuses_an_unknown_room() -> None:
    strategy = AllocateMachineRoomNearby(AllocateAveragely())
    with pytest.raises(ValueError, match="the machine room of client @x is not known"):
        strategy.allocate("g", "a@x", queues(4, "a@1"), ["@x", "a@x"])


class Own:
    """A strategy as a user may write one: its answer is its own list, or None."""

    name = "OWN"

    def __init__(self, own: list[MessageQueue] | None) -> None:
        self.own = own

    def allocate(self, *_: object) -> list[MessageQueue] | None:
        return self.own


def test_nearby_takes_none_for_no_queue_and_leaves_the_list_of_its_strategy_alone() -> None:
    rooms = [*queues(1, "a@1"), *queues(1, "b@1")]
    strategy = Own(None)
    nearby = AllocateMachineRoomNearby(cast(AllocateMessageQueueStrategy, strategy))
    assert nearby.allocate("g", "a@x", rooms, ["a@x"]) == []
    strategy.own = queues(1, "a@1")
    assert nearby.allocate("g", "a@x", rooms, ["a@x"]) == queues(1, "a@1") * 2
    assert strategy.own == queues(1, "a@1")


@pytest.mark.conformance("C1")
def test_by_config_gives_what_was_configured_without_a_check() -> None:
    assert AllocateByConfig(queues(2)).allocate("g", "", [], []) == queues(2)
    assert AllocateByConfig().allocate("g", "c", queues(2), ["c"]) == []


CHECKED = [
    AllocateAveragely(),
    AllocateAveragelyByCircle(),
    AllocateConsistentHash(),
    AllocateByMachineRoom({"broker"}),
    AllocateMachineRoomNearby(AllocateAveragely()),
]


@pytest.mark.parametrize("strategy", CHECKED, ids=lambda strategy: strategy.name)
def test_a_client_that_is_no_member_yet_gets_nothing(
    strategy: AllocateMessageQueueStrategy,
) -> None:
    assert strategy.allocate("g", "10.0.0.9@1", queues(8), CLIENTS) == []


@pytest.mark.parametrize("strategy", CHECKED, ids=lambda strategy: strategy.name)
@pytest.mark.parametrize(
    ("client", "count", "clients", "reason"),
    [
        ("", 8, CLIENTS, "the client id is empty"),
        ("c", 0, CLIENTS, "there are no queues to divide"),
        ("c", 8, [], "there are no client ids to divide queues among"),
    ],
)
def test_missing_input_is_refused(
    strategy: AllocateMessageQueueStrategy,
    client: str,
    count: int,
    clients: list[str],
    reason: str,
) -> None:
    with pytest.raises(ValueError, match=reason):
        strategy.allocate("g", client, queues(count), clients)


@pytest.mark.conformance("C3")
@given(
    count=st.integers(1, 40),
    members=st.sets(st.text(min_size=1), min_size=1, max_size=12),
    strategy=st.sampled_from(CHECKED[:3]),
)
@pytest.mark.slow
def test_shares_are_disjoint_and_complete(
    count: int, members: set[str], strategy: AllocateMessageQueueStrategy
) -> None:
    clients = sorted(members)
    given = [i for share in shares(strategy, queues(count), clients) for i in share]
    assert sorted(given) == list(range(count))


@pytest.mark.conformance("C4")
def test_members_with_different_strategies_consume_queues_twice_and_not_at_all() -> None:
    first = AllocateAveragely().allocate("g", "c0", queues(4), ["c0", "c1"])
    second = AllocateAveragelyByCircle().allocate("g", "c1", queues(4), ["c0", "c1"])
    assert [q.queue_id for q in first] == [0, 1]
    assert [q.queue_id for q in second] == [1, 3]  # 1 twice, 2 never


@pytest.mark.parametrize(
    "name",
    ["AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM_NEARBY-CONSISTENT_HASH"],
)
def test_strategies_are_found_by_rocketmqs_names(name: str) -> None:
    assert allocate_strategy(name).name == name


def test_rooms_come_with_the_name() -> None:
    strategy = allocate_strategy("MACHINE_ROOM:roomA,roomB")
    assert isinstance(strategy, AllocateByMachineRoom)
    assert strategy.consumer_idcs == {"roomA", "roomB"}
    strategy = allocate_strategy("MACHINE_ROOM:a:b")
    assert isinstance(strategy, AllocateByMachineRoom)
    assert strategy.consumer_idcs == {"a:b"}


@pytest.mark.parametrize(
    "name", ["", "avg", "MACHINE_ROOM", "MACHINE_ROOM:", "CONFIG", "X-AVG", "MACHINE_ROOM_NEARBY-X"]
)
def test_an_unknown_strategy_is_refused(name: str) -> None:
    with pytest.raises(ClientConfigError, match="AVG_BY_CIRCLE"):
        allocate_strategy(name)
