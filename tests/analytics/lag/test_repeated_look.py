"""A look that goes on from the one before gives what a whole look gives."""

import shutil
import sys

import pytest

from analytics.lag.health import Health
from analytics.lag.lag_snapshot import look_at
from analytics.lag.repeated_look import RepeatedLook
from analytics.lag.trend import TREND_WINDOW_MS
from broker.embedded.broker import EmbeddedBroker
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import OffsetSamples
from storage.format.layout import SYS_FLAG_POSITION
from storage.format.message import Message
from tests.support.lag_world import QUEUES, TOPICS, T, World, sample_of

LOOKS = 30


def differing(seen, whole):
    """The first queue that differs, for the sentence of a failure."""
    for one, other in zip(seen.group_lags, whole.group_lags, strict=True):
        for queue, expected in zip(one.queues, other.queues, strict=True):
            if queue != expected:
                return [(one.group, one.topic), queue, expected]
    return []


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        *range(5),
        *(pytest.param(n, marks=pytest.mark.long) for n in (*range(5, 10), *range(100, 400))),
    ],
)
def test_each_look_equals_a_whole_look_with_the_same_history(tmp_path, seed):
    world = World(tmp_path / "s", seed)
    rng = world.rng
    world.begin()
    since = world.now - TREND_WINDOW_MS
    history = OffsetSamples(world.root).read(since)
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(since))
        for number in range(LOOKS):
            world.step()
            whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
            seen = repeated.look(world.topics, world.readers(), world.now)
            assert not (differs := differing(seen, whole)), repr(differs)
            assert seen == whole
            history.add_seen(*sample_of(whole), is_first=not number)
            if rng.random() < 0.1:
                history.forget_before(world.now - TREND_WINDOW_MS)


def without_rate_out(one):
    """A group whose rates of reading are unknown."""
    return one._replace(queues=[queue._replace(rate_out=None) for queue in one.queues])


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [*range(6), *(pytest.param(n, marks=pytest.mark.long) for n in range(6, 200))]
)
def test_the_parts_of_a_first_look_are_one_look(tmp_path, seed):
    """All of them are of the first one's moment, though messages come between them."""
    world = World(tmp_path / "s", seed)
    world.begin()
    for _ in range(8):
        world.step()
    since, most_queues = world.now - TREND_WINDOW_MS, 1 + seed % 3
    history = OffsetSamples(world.root).read(since)
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(since))
        whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
        count, parts, asked = len(whole.group_lags), 1, world.now
        seen = repeated.look(world.topics, world.readers(), asked, most_queues)
        while seen.left:
            assert len(seen.group_lags) == count - seen.left
            assert [*map(without_rate_out, seen.group_lags)] == [
                *map(without_rate_out, whole.group_lags[: count - seen.left])
            ]
            for queue_id in range(QUEUES):
                world.writer.send(Message(world.rng.choice(TOPICS), b"later"), queue_id)
            parts, asked = parts + 1, asked + 1_000
            seen = repeated.look({}, world.readers(), asked, most_queues)
        assert parts > 1 or count < 3 or most_queues > 1
        assert not (differs := differing(seen, whole)), repr(differs)
        assert seen == whole
        history.add_seen(*sample_of(whole), is_first=True)
        for _ in range(LOOKS):
            world.step()
            whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
            seen = repeated.look(world.topics, world.readers(), world.now, most_queues)
            assert not (differs := differing(seen, whole)), repr(differs)
            assert seen == whole
            history.add_seen(*sample_of(whole), is_first=False)


def test_a_part_that_is_asked_for_late_begins_a_new_look(tmp_path):
    """As where the screen was left meanwhile: what was true then is of no use."""
    world = World(tmp_path / "s", 0)
    for topic in TOPICS:
        world.writer.send(Message(topic, b"x"), 0)
    world.offsets = {("g", topic): {0: 0} for topic in TOPICS}
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))

        def look():
            seen = repeated.look({}, world.readers(), world.now, 1)
            return seen.as_of - T, seen.left

        assert look() == (0, 2)
        world.now += 29_000
        assert look() == (0, 1)
        world.now += 30_000
        assert look() == (59_000, 2)
        assert [look(), look(), look()] == [(59_000, 1), (59_000, 0), (59_000, 0)]


def test_rates_are_of_the_time_since_it_was_watched_without_a_gap(tmp_path):
    world = World(tmp_path / "s", 0)
    for _ in range(9):
        world.writer.send(Message("a", b"x"), 0)
    samples = OffsetSamples(world.root)
    for minutes_ago, end in ((4.5, 8), (4, 9)):
        at = world.now - int(minutes_ago * 60_000)
        samples.append({topic_at_group("a", "g0"): {0: 0}}, {"a": {0: end}}, at)
    world.offsets = {("g0", "a"): {0: 9}}
    rates = []
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, samples.read(0))
        for later in (0, 50_000, 20_000):
            world.now += later
            [seen] = repeated.look({}, world.readers(), world.now).group_lags
            rates.append(seen.queues[0].rate_out)
    assert rates == [9 / 270, 9 / 300, 0.0]


def test_messages_leave_the_five_minutes_one_by_one_where_the_log_counts_them(tmp_path):
    world = World(tmp_path / "s", 0)
    begun = world.now
    for second in (0, 5, 10):
        world.now = begun + second * 1_000
        world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 3}}
    counts = []
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        samples = OffsetSamples(world.root)
        repeated = RepeatedLook(reader.view, samples.read(0))
        for second in (296, 299, 301, 304, 306, 309):  # a rate of looks needs 15 seconds
            world.now = begun + second * 1_000
            [seen] = repeated.look({}, world.readers(), world.now).group_lags
            [whole] = look_at(
                reader.view, {}, world.readers(), world.now, samples.read(0)
            ).group_lags
            assert seen == whole
            counts.append(round((seen.queues[0].rate_in or 0) * 300))
        world.writer.send(Message("a", b"y"), 0)
        world.offsets = {("g0", "a"): {0: 4}}
        [seen] = repeated.look({}, world.readers(), world.now).group_lags
    assert counts == [3, 3, 2, 2, 1, 1]
    assert round((seen.queues[0].rate_in or 0) * 300) == 2


def test_what_did_not_change_is_the_same_object(tmp_path):
    world = World(tmp_path / "s", 0)
    world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 0}, ("g1", "a"): {0: 1}, ("g0", "b"): {0: 0}}
    world.now += 700_000
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))

        def look():
            world.now += 2_000
            return repeated.look({}, world.readers(), world.now).group_lags

        first, second = look(), look()
        assert [a is b for a, b in zip(first, second, strict=True)] == [True] * 3
        world.offsets["g1", "a"] = {0: 0}
        assert [a is b for a, b in zip(second, look(), strict=True)] == [True, False, True]


def test_what_cannot_be_read_is_read_again(tmp_path):
    world = World(tmp_path / "s", 0)
    for _ in range(3):
        world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 0}}
    world.writer.close()
    queue = tmp_path / "s" / "consumequeue" / "a" / "0" / ("0" * 20)
    kept = tmp_path / "kept"
    with EmbeddedBroker.open(world.root, read_only=True) as reader:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))
        log = tmp_path / "s" / "commitlog" / ("0" * 20)
        shutil.copy(log, kept)
        with log.open("r+b") as file:
            file.write(bytes(64))
        [damaged] = repeated.look({}, world.readers(), world.now).group_lags
        with log.open("r+b") as file:
            file.write(kept.read_bytes()[:64])
        [mended] = repeated.look({}, world.readers(), world.now).group_lags
        assert queue.exists()
    assert damaged.queues[0].oldest_unread_timestamp is None
    assert mended.queues[0].oldest_unread_timestamp == T


@pytest.mark.parametrize("stored", [253_402_300_800_000, 1 << 60, -1])
def test_a_store_time_that_no_clock_gives_is_unknown(tmp_path, stored):
    world = World(tmp_path / "s", 0)
    world.writer.send(Message("a", b"x"), 0)
    world.offsets = {("g0", "a"): {0: 0}}
    world.writer.close()
    with (tmp_path / "s" / "commitlog" / ("0" * 20)).open("r+b") as file:
        file.seek(SYS_FLAG_POSITION + 20)
        file.write(stored.to_bytes(8, "big", signed=True))
    with EmbeddedBroker.open(world.root, read_only=True) as reader:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))
        [seen] = repeated.look({}, world.readers(), world.now).group_lags
    assert seen.queues[0].oldest_unread_timestamp is None


def test_a_look_that_fails_leaves_nothing_half_done(tmp_path, monkeypatch):
    world = World(tmp_path / "s", 3)
    for _ in range(10):
        world.step()
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        history = OffsetSamples(world.root).read(0)
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))
        assert repeated.look(world.topics, world.readers(), world.now).group_lags
        whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
        history.add_seen(*sample_of(whole), is_first=True)
        for _ in range(5):
            world.step()

        def fail(*_):
            raise OSError("gone")

        with monkeypatch.context() as broken:
            broken.setattr(type(reader.view), "places", fail)
            for offsets in list(world.offsets.values()):
                offsets[0] = 0
            with pytest.raises(OSError, match="gone"):
                repeated.look(world.topics, world.readers(), world.now)
        whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
        assert repeated.look(world.topics, world.readers(), world.now) == whole


def calls_in(work):
    """The calls of Python functions within a call, which load does not change."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_a_minute_after_the_first_look_all_lags_are_judged_in_few_steps(tmp_path):
    """All at once, so a look that took as long as the first one would keep keys waiting."""
    world = World(tmp_path / "s", 0)
    queues, groups = 4, 30
    for queue_id in range(queues):
        world.writer.send_column("a", [b"x"] * 3, [queue_id] * 3)
    world.offsets = {(f"g{n:02}", "a"): dict.fromkeys(range(queues), 1) for n in range(groups)}
    world.members = {"g07": 1}
    world.now += 700_000
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        history = OffsetSamples(world.root).read(0)
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(0))

        def look():
            return repeated.look({}, world.readers(), world.now)

        def words(seen):
            return {queue.status for one in seen.group_lags for queue in one.queues}

        first = look()
        history.add_seen(*sample_of(first), is_first=True)
        assert words(first) == {Health.UNKNOWN}
        world.now += 58_000
        look()
        idle = calls_in(look)
        world.now += 3_000
        count = calls_in(look) - idle
        seen = look()
        assert words(seen) == {Health.STOP, Health.STALL}
        assert seen == look_at(reader.view, {}, world.readers(), world.now, history)
    assert 0 < count < 2 * groups * queues
