"""What was synced is there after a power loss, whatever else is or is not.

The disk of tests/support/durable_fs.py forgets everything that was not synced, or keeps a random
part of it.
"""

from __future__ import annotations

import pytest

from tests.support.crash import shared_out
from tests.support.linux_forms import needs_linux_forms

pytestmark = [pytest.mark.crash, pytest.mark.slow]
SOME = pytest.mark.parametrize("every", [160, pytest.param(1, marks=pytest.mark.long)])
FEW = pytest.mark.parametrize("every", [240, pytest.param(2, marks=pytest.mark.long)])


@SOME
@pytest.mark.conformance("A12")
def test_sync_flush_keeps_every_acknowledged_message_whenever_the_power_goes(every):
    found = shared_out("power_loss:cut_at_every_sync", every, seed=every)
    assert min(one["cuts"] for one in found) > 400, "the workload has become too small"


@pytest.mark.parametrize(
    ("every", "names_step"), [(160, 6), pytest.param(1, 2, marks=pytest.mark.long)]
)
@needs_linux_forms  # a thread dies there: its locks go with its descriptors
def test_sync_flush_keeps_what_was_acknowledged_after_the_death_of_another_writer(
    every, names_step
):
    found = shared_out("power_loss:cut_after_a_death", every, names_step=names_step)
    assert max(one["instants"] for one in found) > 750


@pytest.mark.long
@pytest.mark.parametrize(("every", "share", "least"), [(300, 0.25, 50), (8, 0.25, 2_000)])
def test_a_second_power_loss_brings_nothing_back_that_the_first_recovery_took_away(
    every, share, least
):
    found = shared_out("power_loss:cut_twice", every, seed=every, share_of_second=share)
    assert sum(one["second_cuts"] for one in found) > least


@FEW
def test_what_was_flushed_or_closed_is_there_whenever_the_power_goes(every):
    found = shared_out("power_loss:cut_at_any_instant", every, seed=every)
    assert min(one["instants"] for one in found) > 1500


@pytest.mark.parametrize(
    ("every", "least"),
    [
        (80, 10),
        pytest.param(8, 100, marks=pytest.mark.long),
        pytest.param(1, 800, marks=pytest.mark.long),
    ],
)
def test_a_reader_that_comes_before_any_writer_has_every_acknowledged_message(every, least):
    found = shared_out("power_loss:read_first", every, seed=every)
    losses = sum(one["losses"] for one in found)
    assert losses >= least
    assert sum(one["refused"] for one in found) < max(2, losses / 50)
