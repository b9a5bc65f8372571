"""The guide shows the walks as they happen."""

import pytest

from tests.support.walks import WALKS, shown, walked


@pytest.mark.conformance("I1", "I2", "I6")
@pytest.mark.parametrize("name", WALKS)
def test_a_walk_goes_as_the_guide_shows_it(name):
    assert walked(name) == shown()[name]


def test_the_guide_shows_no_other_walk():
    assert list(shown()) == list(WALKS)
