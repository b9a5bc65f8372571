"""How many examples a test of properties takes, where a hundred are too few."""

from hypothesis import settings

_USUAL = 100


def examples(most: int) -> int:
    """``most`` in a run of all tests; the share of them that the profile of a shorter one has."""
    return max(1, most * min(settings().max_examples, _USUAL) // _USUAL)
