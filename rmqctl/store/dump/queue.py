"""A consume queue file, and one of consumequeue_ext."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, StoreUnit, iter_units
from storage.format.cqext import decode_ext_unit
from storage.format.errors import FormatError
from storage.format.names import parse_file_name

from .holes import Holes
from .rows import ExtUnitDump, UnitDump

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap

_EMPTY: Final = StoreUnit(0, 0, 0)
_AT_ONCE: Final = 1024
"""Units that are read before holes are looked for again."""


def unit_rows(file: "ReadMap", path: Path) -> Iterator[UnitDump]:
    """All units of a file; a run of fillers or empty units is one row."""
    first = (parse_file_name(path.name) or 0) // CQ_STORE_UNIT_SIZE
    run: UnitDump | None = None
    for row in _rows_of_runs(file, Holes(path, file.length), first):
        if run is not None and row.kind == run.kind and row.kind in ("FILLER", "EMPTY"):
            run = run._replace(units=run.units + row.units)
            continue
        if run is not None:
            yield run
        run = row
    if run is not None:
        yield run
    number = file.length // CQ_STORE_UNIT_SIZE
    odd = file.length % CQ_STORE_UNIT_SIZE
    if odd:
        position = file.length - odd
        yield UnitDump(
            position, "DAMAGED", first + number, 1, problem=f"the file ends after {odd} bytes"
        )


def _rows_of_runs(file: "ReadMap", holes: Holes, first: int) -> Iterator[UnitDump]:
    """A row of each unit, and one of all units that lie in a hole."""
    number, end = 0, file.length // CQ_STORE_UNIT_SIZE
    while number < end:
        following = holes.next_data(number * CQ_STORE_UNIT_SIZE) // CQ_STORE_UNIT_SIZE
        if following > number:
            yield _unit(first, number, _EMPTY)._replace(units=min(following, end) - number)
            number = following
            continue
        stop = min(end, number + _AT_ONCE)
        piece = file.view[number * CQ_STORE_UNIT_SIZE : stop * CQ_STORE_UNIT_SIZE]
        for number, unit in enumerate(iter_units(piece), number):  # noqa: B020 - it goes on
            yield _unit(first, number, unit)
        number = stop


def _unit(first: int, number: int, unit: StoreUnit) -> UnitDump:
    position = number * CQ_STORE_UNIT_SIZE
    queue_offset = first + number
    if unit.is_pre_blank:
        return UnitDump(position, "FILLER", queue_offset, 1)
    if unit == _EMPTY:
        return UnitDump(position, "EMPTY", queue_offset, 1)
    problem = None if unit.is_present else "no record can be at this position"
    return UnitDump(
        position,
        "UNIT" if problem is None else "DAMAGED",
        queue_offset,
        1,
        *unit,
        problem,
    )


def ext_unit_rows(file: "ReadMap") -> Iterator[ExtUnitDump]:
    """The units of a consumequeue_ext file, up to its end mark or the unwritten part."""
    position = 0
    while position < file.length:
        try:
            unit = decode_ext_unit(file.view, position)
        except FormatError as error:
            yield ExtUnitDump(position, "DAMAGED", problem=str(error))
            return
        if unit is None:
            empty = not any(file.view[position : position + 2])
            yield ExtUnitDump(position, "EMPTY" if empty else "END", file.length - position)
            return
        yield ExtUnitDump(
            position,
            "UNIT",
            unit.size,
            unit.tags_code,
            unit.store_timestamp,
            unit.filter_bit_map.hex(),
        )
        position += unit.size
