"""The checkpoint file."""

import pytest
from hypothesis import given, strategies as st

from storage.format.checkpoint import CheckpointData
from tests.support.inner_messages import int64s

checkpoints = st.builds(CheckpointData, int64s, int64s, int64s, int64s, int64s)


@given(checkpoints)
def test_checkpoints_come_back(checkpoint: CheckpointData) -> None:
    buffer = checkpoint.pack()
    assert len(buffer) == 4096
    assert CheckpointData.unpack(buffer) == checkpoint


@given(checkpoints, st.integers(0, 39))
def test_what_a_short_file_lacks_is_zero(checkpoint: CheckpointData, size: int) -> None:
    buffer = checkpoint.pack()
    assert CheckpointData.unpack(buffer[:size]).pack() == buffer[:size].ljust(4096, b"\0")


@pytest.mark.parametrize(
    ("checkpoint", "minimum", "with_index"),
    [
        (CheckpointData(), 0, 0),
        (CheckpointData(2_000, 9_000, 9_000), 0, 0),
        (CheckpointData(9_000, 10_000, 7_000), 6_000, 6_000),
        (CheckpointData(10_000, 9_000, 5_000), 6_000, 5_000),
        (CheckpointData(10_000, 9_000, 0), 6_000, 0),
    ],
)
def test_recovery_goes_back_three_seconds_before_the_older_time(
    checkpoint: CheckpointData, minimum: int, with_index: int
) -> None:
    assert (checkpoint.min_timestamp, checkpoint.min_timestamp_index) == (minimum, with_index)
