import re

import pytest

from rmqctl.produce.timings import Timings
from tests.support.cli import run


def test_the_middle_99_of_100_and_the_longest_are_told():
    clock = iter(time for length in range(1, 201) for time in (0, length * 1_000_000))
    timings = Timings(lambda: next(clock))
    for _ in range(200):
        with timings.one():
            pass
    assert timings.sentence() == (
        "200 batches acknowledged: median 101 ms, 99th percentile 199 ms, maximum 200 ms"
    )


def test_what_fails_is_not_counted():
    timings = Timings()
    with pytest.raises(ValueError, match="no"), timings.one():
        raise ValueError("no")
    assert timings.sentence() == ""


@pytest.mark.feature(11)
def test_a_verbose_producer_tells_how_long_messages_took_to_be_acknowledged(store):
    probe = ["produce", "t", "--template", "probe %i", "-c", 50, "--batch", 1]
    result = run(*probe, "-v")
    assert result.code == 0
    assert re.search(
        r"^50 batches acknowledged: median [\d.]+ ms, 99th percentile [\d.]+ m?s, "
        r"maximum [\d.]+ m?s$",
        result.err,
        re.MULTILINE,
    )
    assert "acknowledged" not in run(*probe).err
