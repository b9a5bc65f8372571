"""Tag expressions as the broker reads them."""

from __future__ import annotations

import pytest

from storage.read.tag_filter import TagFilter


@pytest.mark.parametrize("expression", [None, "", "*", "  ", " * "])
def test_everything_needs_no_filter(expression: str | None) -> None:
    assert TagFilter.parse(expression) is None


@pytest.mark.conformance("D4")
def test_tags_are_compared_by_hash_first_and_by_text_in_the_end() -> None:
    found = TagFilter.parse("Aa || TagB")
    assert found is not None
    assert found.tags == {"Aa", "TagB"}
    assert found.matches(2112)  # the hash of Aa, and of BB
    assert found.matches(2598920)
    assert not found.matches(0)
    assert found.accepts("Aa")
    assert not found.accepts("BB")
    assert not found.accepts(None)


@pytest.mark.conformance("D4")
def test_only_the_low_32_bits_of_a_code_count() -> None:
    found = TagFilter.parse("polygenelubricants")  # its hash is -2^31
    assert found is not None
    assert found.matches(-(1 << 31))
    assert found.matches((1 << 40) + (1 << 31))


def test_separators_alone_are_refused() -> None:
    with pytest.raises(ValueError, match="names no tag"):
        TagFilter.parse("|| ||")
