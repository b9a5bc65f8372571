"""Progress is lost while a consumer runs: what it did comes back, and it goes on from there."""

import time

import pytest

from broker.embedded.broker import EmbeddedBroker
from storage.configs.pending_commits import notes_in, read_notes
from storage.configs.progress import ProgressFile
from storage.configs.topics import TopicConfig
from tests.support.cli import ROOT, run, start

KEY = ("orders@g", 0)
WITHIN_S = 20
"""The deadline on a busy machine."""


def eventually(condition):
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.feature(115)
def test_a_running_consumer_tells_where_it_was_and_goes_on_from_there(store):
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("orders", 1, 1))
    run("produce", "orders", stdin=b"".join(b"%d\n" % n for n in range(10)))
    with start("consume", "orders", "-g", "g", cwd=ROOT) as consumer:
        try:
            assert [consumer.stdout.readline() for _ in range(10)][-1] == b"9\n"
            members = store / "rmqctl" / "members"
            eventually(
                lambda: any(
                    progress.offset == 10
                    for path in notes_in(members)
                    for _, progress in read_notes(path, KEY)
                )
            )
            for name in ("config/consumerOffset.json", "config/consumerOffset.json.bak"):
                (store / name).unlink(missing_ok=True)
            (store / "rmqctl/offsets.log").write_bytes(b"")
            refused = run("store", "recover-offsets", "--no-live", "--execute", "--yes")
            assert refused.code == 7
            result = run("store", "recover-offsets", "--execute", "--yes", "-o", "json")
            assert result.code == 0, result.err
            assert "group g runs (" in result.err
            rows = {(row["topic"], row["queue_id"]): row for row in result.json()}
            row = rows["orders", 0]
            assert (row["new_offset"], row["applied"]) == (10, True)
            assert row["source"] in {"note", "sample"}
            run("produce", "orders", stdin=b"10\n11\n")
            assert [consumer.stdout.readline() for _ in range(2)] == [b"10\n", b"11\n"]
            eventually(lambda: ProgressFile(store).read().get(*KEY).offset == 12)
        finally:
            consumer.terminate()
