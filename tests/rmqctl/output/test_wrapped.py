"""Sentences are wrapped in a time that grows with their length only."""

import pytest

from rmqctl.output.cells import cells_of, wrapped


@pytest.mark.timeout(30)
@pytest.mark.slow
def test_a_word_of_a_hundred_thousand_letters_is_broken():
    word = "\u6f22x" * 100_000
    lines = wrapped(f"a {word} b", 120)
    assert "".join(lines) == f"a{word}b" or "".join(lines) == f"a{word} b"
    assert max(map(cells_of, lines)) <= 120
