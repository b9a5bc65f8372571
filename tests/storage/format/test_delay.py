"""Delay levels."""

import pytest

from storage.format.delay import DEFAULT_DELAY_LEVELS, capped_level, delay_ms, parse_delay_levels


def test_the_default_table_has_eighteen_levels() -> None:
    delays = parse_delay_levels(DEFAULT_DELAY_LEVELS)
    assert len(delays) == 18
    assert delays[:5] == (1_000, 5_000, 10_000, 30_000, 60_000)
    assert delays[-1] == 7_200_000


def test_all_four_units_are_known() -> None:
    assert parse_delay_levels("1s 1m 1h 1d") == (1_000, 60_000, 3_600_000, 86_400_000)


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1x", "12", "x1s", "1s  2s", "-1s", "1.5s", "1S", "\u0661s"]
)
def test_a_bad_item_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="messageDelayLevel"):
        parse_delay_levels(text)


def test_a_number_has_at_most_five_digits() -> None:
    assert parse_delay_levels("99999s") == (99_999_000,)
    with pytest.raises(ValueError, match="messageDelayLevel: '100000s' is not a number followed"):
        parse_delay_levels("1s 100000s")


def test_levels_beyond_the_table_are_capped_or_wait_a_second() -> None:
    delays = parse_delay_levels("7s 9s")
    assert [capped_level(level, delays) for level in (1, 2, 99)] == [1, 2, 2]
    assert [delay_ms(level, delays) for level in (1, 2, 3, 0, -1)] == [
        7_000,
        9_000,
        1_000,
        1_000,
        1_000,
    ]
