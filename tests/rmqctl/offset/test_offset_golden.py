"""The numbers of ``offset inspect`` and ``topic queues`` are RocketMQ's own, on every golden store.

What differs is named here; each difference is one of the contract's: unknown is null, a lag is
never below 0, an empty range has its real bounds, and no whole message is given up.
"""

from typing import Any

import pytest

from storage.configs.consumer_offsets import decode_offsets
from tests.support import golden, golden_samples
from tests.support.cli import run

KEEPS_MORE = {
    "torn-bad-crc-middle-4.9",
    "torn-bad-crc-middle-5.3",
    "torn-no-blank-4.9",
}
"""RocketMQ gives up everything after the damage; whole records after it are still shown here."""
PHANTOM = {("phantom-4.9", "GoldenFull", 0)}
"""4.9 counts an all-zero file after a full one as a message more."""
EMPTIED = {("retention-4.9", "GoldenIdle", 0)}
"""All messages are deleted: 4.9 says 0 to 20, here and in 5.3 it is 20 to 20."""

WITH_WHOLE_MANIFESTS = [
    name for name in golden.names() if name.split("-")[0] not in {"torn", "hole", "phantom"}
]


def rows_of(*args):
    result = run(*args, "-o", "json")
    assert result.code == golden.code_of_reading(*args), result.err
    return result.json()


def files_offsets(manifest):
    """What the broker's own file says: (topic, group) to queue id to offset."""
    document = manifest["consumerOffset"]
    if document is None:
        document = manifest["configs"].get("lmqConsumerOffset.json", {})
    table = decode_offsets(document)
    return {tuple(key.rsplit("@", 1)): queues for key, queues in table.items()}


@pytest.mark.feature(41, 48, 109, 110)
@golden_samples.SOME
def test_offset_inspect_gives_the_numbers_of_mqadmin(name):
    manifest = golden.manifest(name)
    committed = files_offsets(manifest)
    rows = {
        (row["group"], row["topic"], row["queue_id"]): row
        for row in rows_of("offset", "inspect", "--all", "-S", golden.store(name))
    }
    shown: dict[Any, Any] = {}
    for (group, topic, queue_id), row in rows.items():
        if row["committed_offset"] is not None:
            shown.setdefault((topic, group), {})[queue_id] = row["committed_offset"]
            assert row["source"] == "file"
    assert shown == committed
    for group in manifest.get("groups", []):
        for expected in group.get("rows", []):
            place = (group["group"], expected["topic"], expected["queueId"])
            row = rows[place]
            assert row["max_offset"] == expected["brokerOffset"]
            if expected["queueId"] not in committed.get((place[1], place[0]), {}):
                # A real broker makes up an offset for a queue without one (young queue: 0).
                assert (row["committed_offset"], row["lag"], row["state"]) == (None, None, "NONE")
                assert row["lag_bytes"] is None
                continue
            assert row["committed_offset"] == expected["consumerOffset"]
            if expected["diff"] < 0:
                assert (row["lag"], row["state"]) == (None, "AHEAD")
                assert row["note"] == f"{-expected['diff']} beyond the end"
            else:
                assert row["lag"] == expected["diff"]
            # mqadmin's word for an unknown time is 0
            assert row["last_consumed_timestamp"] == (expected["lastTimestamp"] or None)


@pytest.mark.feature(45, 43)
@pytest.mark.parametrize("name", WITH_WHOLE_MANIFESTS)
def test_age_and_bytes_are_those_of_the_messages_that_are_unread(name):
    manifest = golden.manifest(name)
    records: dict[Any, Any] = {}
    for message in manifest["messages"]:
        place = (message["topic"], message["queueId"])
        records.setdefault(place, {})[message["queueOffset"]] = message
    for row in rows_of("offset", "inspect", "--all", "-S", golden.store(name)):
        if row["lag"] is None:
            continue
        stored = records.get((row["topic"], row["queue_id"]), {})
        first = max(row["committed_offset"], row["min_offset"])
        left = [stored[offset] for offset in range(first, row["max_offset"])]
        assert row["lag_bytes"] == sum(message["storeSize"] for message in left)
        oldest = left[0] if left else None
        assert row["oldest_unread_timestamp"] == (oldest and oldest["storeTimestamp"])
        if oldest is None:
            assert (row["oldest_unread_age_ms"], row["oldest_unread_msg_id"]) == (None, None)
        else:
            assert row["oldest_unread_age_ms"] >= 0
            unique = (oldest["properties"] or {}).get("UNIQ_KEY")
            assert row["oldest_unread_msg_id"] == (unique or oldest["offsetMsgId"])


@pytest.mark.feature(102, 109, 110)
@golden_samples.SOME
def test_topic_queues_gives_the_bounds_and_times_of_the_broker(name):
    manifest = golden.manifest(name)
    if name in KEEPS_MORE:
        manifest = golden.manifest(f"unclean-{name[-3:]}")
    rows = {
        (row["topic"], row["queue_id"]): row
        for row in rows_of("topic", "queues", "--all", "-S", golden.store(name))
    }
    newest: dict[Any, int] = {}
    foreign = [
        {**message, "topic": message["inTopic"], "queueId": message["inQueueId"]}
        for message in manifest.get("foreign", [])
    ]  # of light queues: their units name records of other queues
    for message in manifest["messages"] + foreign:
        place = (message["topic"], message["queueId"])
        newest[place] = max(newest.get(place, 0), message.get("storeTimestamp", 0))
    for expected in manifest["queues"]:
        place = (expected["topic"], expected["queueId"])
        row = rows.get(place)
        if row is None:  # 4.9 lists all 18 delay queues
            assert expected["topic"] == "SCHEDULE_TOPIC_XXXX"
            assert expected["maxOffset"] == 0
            continue
        bounds = (expected["minOffset"], expected["maxOffset"])
        if (name, *place) in EMPTIED:
            bounds = (bounds[1], bounds[1])
            newest[place] = 0
        elif (name, *place) in PHANTOM:
            bounds = (bounds[0], bounds[1] - 1)
        assert (row["min_offset"], row["max_offset"]) == bounds
        assert row["count"] == bounds[1] - bounds[0]
        # RocketMQ's word for an unknown time is -1
        assert (row["first_timestamp"] or -1) == expected["earliestMessageTime"]
        if name not in KEEPS_MORE and (name, *place) not in PHANTOM:
            assert (row["last_timestamp"] or 0) == newest.get(place, 0)


@golden_samples.SOME
def test_lag_show_and_offset_inspect_mean_the_same(name):
    shared = ("lag", "lag_bytes", "oldest_unread_timestamp", "committed_offset", "max_offset")

    def looked(*command):
        return {
            (row["group"], row["topic"], row["queue_id"]): [row[field] for field in shared]
            for row in rows_of(*command, "-S", golden.store(name))
        }

    late = looked("lag", "show", "--by", "queue", "--include-retry")
    inspected = looked("offset", "inspect", "--all")
    # Retry topics with messages to which their group never committed: only late can show them.
    uncommitted = {place: late.pop(place) for place in sorted(late.keys() - inspected.keys())}
    assert all(topic == f"%RETRY%{group}" for group, topic, _ in uncommitted)
    assert all(row[:4] == [None] * 4 and row[4] for row in uncommitted.values())
    assert uncommitted or not name.startswith("retry-dlq")
    assert late == {place: inspected[place] for place in late}
    assert len(late) or not inspected
