"""Paths of ``--json-path``: their steps, and the values at a path."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from .json_facts import FieldFacts

Test = Callable[[Any], bool]
_MISSING: Final = object()


class Slice(NamedTuple):
    """``[start:end:step]``"""

    part: slice


class Descent(NamedTuple):
    """``..``: the value, and all values inside it."""


class Any_(NamedTuple):
    """``*``: any member."""


Step = str | int | Slice | Descent | Any_ | Test


class Path(NamedTuple):
    """A path: what it reads, and how it was written."""

    text: str
    steps: tuple[Step, ...]
    explicit: bool
    """Whether it begins with $ or @."""

    @property
    def singular(self) -> bool:
        """Whether it has at most one value."""
        return all(isinstance(step, (str, int)) for step in self.steps)


def reader_of(path: Path, known: FieldFacts) -> Callable[[Any], Iterable[Any]]:
    """The values at a path. ``known`` notes whether there was one."""
    steps, found = path.steps, known.found
    if not path.singular:

        def several(value: Any) -> Iterator[Any]:
            known.tried.mark()
            for member in _members(value, steps):
                found.mark()
                yield member

        return several

    def one(value: Any) -> Iterable[Any]:
        for step in steps:
            if type(value) is dict and type(step) is str:
                inner = value.get(step, _MISSING)
                if inner is _MISSING:
                    known.note_names(value, step)
                    return ()
                value = inner
            elif type(value) is list and type(step) is int:
                if not -len(value) <= step < len(value):
                    return ()
                value = value[step]
            else:
                return ()
        found.mark()
        return (value,)

    return one


def _members(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """The values at a path with several."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    match step:
        case str():
            if type(value) is dict and step in value:
                yield from _members(value[step], rest)
        case int():
            if type(value) is list and -len(value) <= step < len(value):
                yield from _members(value[step], rest)
        case Slice():
            if type(value) is list:
                for member in value[step.part]:
                    yield from _members(member, rest)
        case Any_():
            for member in _inside(value):
                yield from _members(member, rest)
        case Descent():
            waiting = [value]
            while waiting:
                member = waiting.pop()
                yield from _members(member, rest)
                waiting += reversed(list(_inside(member)))
        case _:
            for member in _inside(value):
                if step(member):
                    yield from _members(member, rest)


def _inside(value: Any) -> Iterable[Any]:
    if type(value) is list:
        return value
    return value.values() if type(value) is dict else ()
