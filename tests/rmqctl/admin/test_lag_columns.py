"""The rows of a look that goes on are those of a whole look."""

import pytest

from analytics.lag.counts import CountedLags
from analytics.lag.lag_snapshot import look_at
from analytics.lag.repeated_look import RepeatedLook
from analytics.lag.trend import TREND_WINDOW_MS
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin import lag
from rmqctl.admin.lag.columns import LagColumns
from storage.configs.offset_samples import OffsetSamples
from tests.support.lag_world import World, sample_of

LOOKS = 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        *(0, 1, 2, 3, 4),
        115,  # a group goes while another one comes that has read as much
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(300, 500)),
    ],
)
def test_the_rows_of_each_look_equal_those_of_a_whole_look(tmp_path, seed):
    world = World(tmp_path / "s", seed)
    world.begin()
    since = world.now - TREND_WINDOW_MS
    history = OffsetSamples(world.root).read(since)
    columns = LagColumns()
    with EmbeddedBroker.open(world.root, read_only=True) as reader, world.writer:
        repeated = RepeatedLook(reader.view, OffsetSamples(world.root).read(since))
        for number in range(LOOKS):
            world.step()
            whole = look_at(reader.view, world.topics, world.readers(), world.now, history)
            seen = repeated.look(world.topics, world.readers(), world.now)
            expected = list(lag.group_rows(whole))
            assert isinstance(seen.group_lags, CountedLags)
            assert columns.rows(seen.group_lags, seen.as_of) == expected
            assert columns.lags(seen.group_lags) == [row.lag for row in expected]
            assert columns.unknown(seen.group_lags) == lag.unknown_sentences(whole)
            assert seen.group_lags.keys == [row[:2] for row in expected]
            history.add_seen(*sample_of(whole), is_first=not number)
