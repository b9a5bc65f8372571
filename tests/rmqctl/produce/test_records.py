"""Bytes become the same records, however they arrive."""

from itertools import pairwise

import pytest
from hypothesis import example, given, strategies as st

from rmqctl.produce.records import RecordTooLongError, read_records
from tests.support.cli import run


class Pieces:
    """A pipe whose writer writes in pieces."""

    def __init__(self, pieces):
        self._pieces = [piece for piece in pieces if piece]

    def read1(self, size=-1):
        return self._pieces.pop(0) if self._pieces else b""

    read = read1


def records(pieces, delimiter, longest=1 << 20):
    return [one for part in read_records(Pieces(pieces), delimiter, longest) for one in part]


TEXT = st.text("a;\n", max_size=30).map(str.encode)


@given(TEXT, st.sampled_from([b";", b";;", b";;;", b"\n\n", b"a;a", b";\n"]), st.data())
@example(b"a;;;b;;;c", b";;", None)
def test_records_are_read_from_the_left(whole, delimiter, data):
    ends = [0, 3, 5] if data is None else data.draw(st.lists(st.integers(0, len(whole))))
    ends = sorted([0, *ends, len(whole)])
    pieces = [whole[begin:end] for begin, end in pairwise(ends)]
    wanted = whole.split(delimiter)
    if not wanted[-1]:  # the last record has its delimiter
        wanted.pop()
    assert records(pieces, delimiter) == wanted


def test_paragraphs(store):
    done = run("produce", "t", "-D", r"\n\n", "-Q", 0, "-q", stdin=b"a\n\n\nb\n\n\nc")
    assert done.code == 0, done.err
    rows = run("consume", "t", "-e", "-o", "json").json()
    assert [row["body"] for row in rows] == ["a", "\nb", "\nc"]


def test_what_is_too_long_ends_the_records():
    found = read_records(Pieces([b"a;;bc", b"def;;"]), b";;", 2)
    assert next(found) == [b"a"]
    assert next(found) == [b"bcdef"]
    found = read_records(Pieces([b"a;;bcd", b"ef;;"]), b";;", 2)
    assert next(found) == [b"a"]
    with pytest.raises(RecordTooLongError):
        next(found)
