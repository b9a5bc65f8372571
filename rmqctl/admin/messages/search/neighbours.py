"""Messages beside a hit that cannot be read, and that the search itself does not name."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from .run import Search

if TYPE_CHECKING:
    from storage.readonly import StoreView

    from .query import Query


class Neighbour(NamedTuple):
    """A place in a queue, and where its unit says that the record lies; -1, 0 without a unit."""

    topic: str
    queue_id: int
    queue_offset: int
    log_offset: int
    size: int


def not_named(
    view: "StoreView", query: "Query", unreadable: Iterable[Neighbour]
) -> Iterator[Neighbour]:
    """Those that no call of a search names: their records cannot be hits, or are not damaged."""
    places = sorted(set(unreadable), key=lambda one: one.log_offset)
    if not places:
        return
    ranges: list[tuple[int, int]] = []
    for one in places:
        begin = max(one.log_offset, ranges[-1][1] if ranges else 0)
        if begin < one.log_offset + one.size:
            ranges.append((begin, one.log_offset + one.size))
    search = Search(view, query, ranges=ranges, jobs=1)
    for _ in search.parts():
        pass
    damaged = sorted(search.damaged)
    log = view.files.log
    for one in places:
        at = bisect_left(damaged, one.log_offset)
        is_named = at < len(damaged) and damaged[at] < one.log_offset + one.size
        first = one.log_offset - one.log_offset % log.file_size
        if not is_named and view.log_min_offset() <= one.log_offset < search.end:
            file = log.at(first)
            is_named = file is None or one.log_offset - first >= file.length  # a gap is named
        if not is_named:
            yield one
