"""A consume queue file, and one of consumequeue_ext."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, StoreUnit, iter_units
from storage.format.cqext import decode_ext_unit
from storage.format.errors import FormatError
from storage.format.names import parse_file_name

from .rows import ExtUnitDump, UnitDump

if TYPE_CHECKING:
    from storage.files.read_files import ReadMap

_EMPTY: Final = StoreUnit(0, 0, 0)


def unit_rows(file: "ReadMap", name: str) -> Iterator[UnitDump]:
    """All units of a file; a run of fillers or empty units is one row."""
    first = (parse_file_name(name) or 0) // CQ_STORE_UNIT_SIZE
    run: UnitDump | None = None
    number = -1
    for number, unit in enumerate(iter_units(file.view)):
        row = _unit(first, number, unit)
        if run is not None and row.kind == run.kind and row.kind in ("FILLER", "EMPTY"):
            run = run._replace(units=run.units + 1)
            continue
        if run is not None:
            yield run
        run = row
    if run is not None:
        yield run
    odd = file.length % CQ_STORE_UNIT_SIZE
    if odd:
        position = file.length - odd
        yield UnitDump(
            position, "DAMAGED", first + number + 1, 1, problem=f"the file ends after {odd} bytes"
        )


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
