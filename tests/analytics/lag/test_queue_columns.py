"""Queues as columns: a sequence like any other, and no object for each queue where sums are
asked for."""

import pytest

from analytics.lag import queue_lag
from analytics.lag.lag_snapshot import look_at
from analytics.lag.queue_lag import QueueColumns
from analytics.lag.totals import add_up, all_known
from analytics.lag.unknown import unknown_parts
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import lag
from tests.support.lag_world import World


@pytest.fixture
def seen(tmp_path):
    """A look at groups of all kinds, and its groups with queues."""
    world = World(tmp_path / "s", 4)
    world.begin()
    for _ in range(60):
        world.step()
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        yield look_at(reader.view, world.topics, world.readers(), world.now)


def groups(seen):
    found = [one for one in seen.group_lags if one.queues]
    assert len(found) > 2
    assert all(isinstance(one.queues, QueueColumns) for one in found)
    return found


@pytest.mark.slow
def test_columns_are_a_sequence_of_queues(seen):
    for one in groups(seen):
        queues, plain = one.queues, list(one.queues)
        assert len(queues) == len(plain)
        assert [queues[number] for number in range(-len(plain), len(plain))] == plain * 2
        assert queues[1:] == plain[1:]
        assert queues[::-1] == plain[::-1] == list(reversed(queues))
        assert queues == plain == queues
        assert queues != plain[1:]
        assert plain[-1] in queues
        with pytest.raises(IndexError):
            queues[len(plain)]


def test_sums_of_columns_are_those_of_objects(seen):
    for one in groups(seen):
        plain = list(one.queues)
        assert add_up(one.queues) == add_up(plain)
        assert all_known(one.queues) is all_known(plain)
        assert unknown_parts(one.queues) == unknown_parts(plain)
        ids, positions, *others = zip(*plain, strict=True)
        columns = [ids, *zip(*positions, strict=True), *others]
        assert isinstance(one.queues, QueueColumns)
        assert [*map(list, one.queues.columns)] == [*map(list, columns)]


def test_rows_of_groups_make_no_object_of_a_known_queue(seen, monkeypatch):
    known = seen._replace(group_lags=[one for one in groups(seen) if all_known(one.queues)])
    assert known.group_lags
    rows = list(lag.group_rows(known))

    def refuse(*_):
        raise AssertionError("a queue was made")

    monkeypatch.setattr(queue_lag, "_queue_lag", refuse)
    assert list(lag.group_rows(known)) == rows
    assert lag.unknown_sentences(known) == []
    with pytest.raises(AssertionError, match="made"):
        list(known.group_lags[0].queues)
