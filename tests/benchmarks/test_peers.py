"""Peers do the same work: each message can be read back from each of them."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.peers.known import PEERS, open_peer
from benchmarks.run import NotMeasurableError
from benchmarks.workload import columns, messages

_SIZE = 300


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_gives_back_what_was_put(name: str, tmp_path: Path) -> None:
    sent = messages(50, _SIZE)
    batches = columns(2, 40, _SIZE)
    try:
        log = open_peer(name, tmp_path)
    except NotMeasurableError as error:
        pytest.skip(f"needs the bench extra: {error}")
    try:
        for message in sent:
            log.put(message)
        for column in batches:
            log.put_column(column)
        found = Counter(log.bodies())
    finally:
        log.close()
    expected = Counter(message.body for message in sent)
    for column in batches:
        expected.update(column.bodies)
    assert found == expected


@pytest.mark.parametrize("name", [name for name in PEERS if PEERS[name].keeps_places])
def test_a_queue_is_read_in_the_order_of_its_messages(name: str, tmp_path: Path) -> None:
    sent = messages(50, _SIZE)
    try:
        log = open_peer(name, tmp_path)
    except NotMeasurableError as error:
        pytest.skip(f"needs the bench extra: {error}")
    try:
        for message in sent:
            log.put(message)
        found = list(log.bodies())
    finally:
        log.close()
    by_queue = sorted(sent, key=lambda message: message.queue_id)
    assert found == [message.body for message in by_queue]
