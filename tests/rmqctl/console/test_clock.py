"""The times of the console are in the zone of its lists."""

from datetime import datetime, timedelta, timezone

import pytest

from tests.rmqctl.console.test_changes import plan_a_reset, stocked, turn_on
from tests.support.console import drive

__all__ = ["stocked"]
ZONES = ["+13:45", "-11:15"]


def is_now(text, zone):
    """Whether a time of day is that of the last minutes in a zone."""
    sign = -1 if zone[0] == "-" else 1
    hours, minutes = map(int, zone[1:].split(":"))
    now = datetime.now(timezone(sign * timedelta(hours=hours, minutes=minutes)))
    hour, minute, second = map(int, text.split(":"))
    ago = now - now.replace(hour=hour, minute=minute, second=second, microsecond=0)
    return ago % timedelta(days=1) < timedelta(minutes=5)


@pytest.mark.slow
@pytest.mark.parametrize("zone", ZONES)
def test_the_first_line_and_a_plan_have_the_zone_of_the_lists(stocked, zone):
    async def steps(console):
        await turn_on(console)
        assert is_now(console.lines()[0].split()[-1], zone)
        await plan_a_reset(console, "-1h")
        assert is_now(console.words().split("read at ")[1].split(";")[0], zone)
        assert is_now(console.lines()[0].split()[-1], zone)

    drive(stocked, steps, "groups", size=(100, 40), tz=zone)
