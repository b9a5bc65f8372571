"""What ``--columns``, ``--where`` and ``--sort`` make of the rows of one type."""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from operator import itemgetter
from typing import Any, Final, NamedTuple

from rmqctl.errors import UsageProblem
from rmqctl.output.fields import Field
from rmqctl.output.headings import field_of_heading
from rmqctl.output.values import exact
from rmqctl.output.view import View

Row = Sequence[Any]

_NUMBERS: Final = (int, float)


def chosen_fields(fields: Sequence[Field], view: View) -> list[Field]:
    """The columns to print: those of ``--columns``, else those of the format."""
    if view.columns:
        return [_field_named(name, fields, "--columns") for name in view.columns]
    return [field for field in fields if view.format.shows_wide_fields or not field.wide]


def _field_named(name: str, fields: Sequence[Field], option: str) -> Field:
    found = field_of_heading(name, fields)
    if found is not None:
        return found
    wanted = name.replace("-", "_").lower()
    near = get_close_matches(wanted, [field.name for field in fields], 1)
    known = ", ".join(field.name for field in fields)
    hint = f"did you mean {near[0]!r}?" if near else f"fields: {known}"
    raise UsageProblem(f"{option}: {name!r} is not a field ({hint})")


class Condition(NamedTuple):
    """The condition of ``--where``."""

    names: tuple[str, ...]
    """The fields that it reads."""
    holds: Callable[[Mapping[str, Any]], bool]
    """Whether it holds for a row, of which these fields are given by name."""


def condition_of(fields: Sequence[Field], view: View) -> Condition | None:
    """The condition of ``--where``; None without one. UsageProblem if it is malformed."""
    if view.where is None:
        return None
    from rmqctl.output.where import Where  # lazy: needed for --where only

    where = Where(view.where, fields, view.now_ms, view.zone)
    try:
        holds = where.parse()
    except ValueError as error:
        raise UsageProblem(str(error)) from None
    return Condition(tuple(where.names), holds)


def decides_kind(fields: Sequence[Field], view: View) -> bool:
    """Whether ``--where`` reads the field ``kind``: rows of the system are shown as it says."""
    condition = condition_of(fields, view)
    return condition is not None and "kind" in condition.names


def predicate_of(fields: Sequence[Field], view: View) -> Callable[[Row], bool] | None:
    """``condition_of``, for rows with all fields."""
    condition = condition_of(fields, view)
    if condition is None:
        return None
    names = [field.name for field in fields]
    holds, read = condition.holds, [(name, names.index(name)) for name in condition.names]
    return lambda row: holds({name: row[at] for name, at in read})


def sort_keys(fields: Sequence[Field], sort: Sequence[str]) -> list[tuple[int, bool]]:
    """The places of the fields of ``--sort``, and whether the largest comes first."""
    keys = []
    for name in sort:
        field = _field_named(name.lstrip("+-"), fields, "--sort")
        keys.append((list(fields).index(field), name.startswith("-")))
    return keys


def sorted_rows(rows: Sequence[Row], keys: Sequence[tuple[int, bool]]) -> list[Row]:
    """The rows in the order of :func:`sort_keys`: numbers before texts; unknown values last in
    either direction."""
    found = list(rows)
    for index, descending in reversed(keys):
        by = itemgetter(index)
        types = set(map(type, map(by, found)))
        unknown: list[Row] = []
        if type(None) in types:
            types.remove(type(None))
            unknown = [row for row in found if row[index] is None]
            found = [row for row in found if row[index] is not None]
        is_plain = any(all(issubclass(each, kind) for each in types) for kind in (_NUMBERS, str))
        found.sort(key=by if is_plain else _by_type(index), reverse=descending)
        found += unknown
    return found


def _by_type(index: int) -> Callable[[Row], tuple[bool, Any]]:
    """Numbers before texts; other values are the texts that csv has."""

    def key(row: Row) -> tuple[bool, Any]:
        value = row[index]
        is_number = isinstance(value, _NUMBERS)
        return not is_number, value if is_number else exact(value)

    return key
