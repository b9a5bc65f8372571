"""Contents of the log's files: which of their bytes are records, and where they belong."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from storage.format.record import read_head
from storage.log.walk import LogWalk, StretchKind

from .log_bytes import Region, record_time

if TYPE_CHECKING:
    from storage.files.read_files import ReadOnlyFiles


class Contents(NamedTuple):
    """Results of a walk through one log file."""

    regions: list[Region]
    misplaced: int
    """Whole records that name another place."""
    records: int
    shift: int | None
    """The distance to the place that most of its records name, if that is a file's name."""
    last_time: int
    """Store time of the newest whole record (ms, 0 = none)."""


class _Piece(NamedTuple):
    start: int
    end: int
    size: int | None
    """Its length if it is a record of known length."""
    earlier: int
    """Store time of the newest whole record before it."""


def contents(
    log: ReadOnlyFiles, first: int, end: int, why: dict[int, str], suspects: set[int], *, last: bool
) -> Contents:
    """Walk the file that begins at ``first`` up to ``end``.

    ``why`` gives the code of a finding at a log offset; whole records at ``suspects`` count as
    damaged, and so do those that name another place. ``last``: the log ends in this file.
    """
    file = log.at(first)
    assert file is not None
    walk = LogWalk(log, first, limit=end, search_all=True)
    pieces: list[_Piece] = []
    earlier = 0
    places: Counter[int] = Counter()
    records = 0
    at = first
    while at < end:
        stretch = walk.next()
        if stretch is None:
            pieces.append(_Piece(at, end, None, earlier))
            break
        start = stretch.start
        at = stretch.end
        if stretch.kind is StretchKind.RECORDS:
            for size in stretch.sizes:
                records += 1
                head = read_head(file.view, start - first)
                places[head.physical_offset - start] += 1
                if start in suspects or head.physical_offset != start:
                    pieces.append(_Piece(start, start + size, size, earlier))
                else:
                    earlier = max(earlier, head.store_timestamp)
                start += size
        elif stretch.kind is StretchKind.DAMAGED:
            pieces.append(_Piece(start, at, stretch.sizes[0], earlier))
        elif stretch.kind is StretchKind.LOST:
            pieces.append(_Piece(start, min(at, end), None, earlier))
        elif start in why:
            pieces.append(_Piece(start, at, None, earlier))  # a blank record with a wrong field
    shift, count = places.most_common(1)[0] if places else (0, 0)
    moved = shift and shift % log.file_size == 0 and count * 2 > records
    regions = [] if moved else _regions(file.view, first, end, pieces, why, last=last)
    target = shift if moved and first + shift >= 0 else None
    return Contents(regions, records - places[0], records, target, earlier)


def _regions(
    view: memoryview,
    first: int,
    end: int,
    pieces: list[_Piece],
    why: dict[int, str],
    *,
    last: bool,
) -> list[Region]:
    """Join adjacent pieces."""
    regions: list[Region] = []
    number = 0
    while number < len(pieces):
        start, region_end, size, earlier = pieces[number]
        known = {} if size is None else {start: size}
        number += 1
        while number < len(pieces) and pieces[number].start == region_end:
            following = pieces[number]
            if following.size is not None:
                known[region_end] = following.size
            region_end = following.end
            number += 1
        codes = [why[place] for place in sorted(why) if start <= place < region_end]
        regions.append(
            Region(
                start,
                region_end,
                codes[0] if codes else "LOG_BYTES_LOST",
                known,
                earlier,
                record_time(view, region_end - first) if region_end < end else 0,
                region_end == end and not last,
            )
        )
    return regions
