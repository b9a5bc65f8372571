"""``--json-path EXPR``: a path into a JSON body, alone or with a comparison.

::

    order.id            the member exists and is not null     $.order.id is the same
    items[0].sku = x7   == != < <= > >=, ~ a regular expression
    items[*].price > 9  any item; .* any member
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .patterns import search_text

_STEP: Final = re.compile(r"\.?(?:\[(\d+|\*)\]|\[['\"]([^'\"]*)['\"]\]|([^.\[\]=!<>~\s]+))")
_COMPARISON: Final = re.compile(r"\s*(==|=|!=|<=|>=|<|>|~)\s*(.*)", re.DOTALL)
_ANY: Final = "*"
_MOST_STEPS: Final = 100

Step = str | int


def parse_json_path(text: str) -> Callable[[bytes], bool]:
    """A predicate on bodies for an expression; ValueError for a malformed one."""
    rest = text.strip().removeprefix("$")
    steps: list[Step] = []
    position = 0
    while found := _STEP.match(rest, position):
        if found[1] is not None:
            steps.append(_ANY if found[1] == _ANY else int(found[1]))
        else:
            steps.append(found[2] if found[2] is not None else found[3])
        position = found.end()
    comparison = _COMPARISON.fullmatch(rest, position)
    if not steps or (position < len(rest) and not comparison):
        raise ValueError(f"{text!r} is not a path (such as order.id or items[*].sku=x7)")
    if len(steps) > _MOST_STEPS:
        raise ValueError(f"a path of {len(steps)} steps is too long ({_MOST_STEPS} at most)")
    test = _test(comparison[1], comparison[2].strip()) if comparison else _present

    def holds(body: bytes) -> bool:
        from .json_texts import parse_json

        try:
            value = parse_json(body)
        except ValueError:
            return False
        return any(test(member) for member in _members(value, steps))

    return holds


def _present(value: Any) -> bool:
    return value is not None


def _members(value: Any, steps: Sequence[Step]) -> Iterator[Any]:
    """The values at the path; several if a step is ``*``."""
    if not steps:
        yield value
        return
    step, rest = steps[0], steps[1:]
    if step == _ANY:
        inside = value if isinstance(value, list) else value.values() if _is_object(value) else ()
        for member in inside:
            yield from _members(member, rest)
    elif isinstance(step, int):
        if isinstance(value, list) and step < len(value):
            yield from _members(value[step], rest)
    elif _is_object(value) and step in value:
        yield from _members(value[step], rest)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _test(operator: str, right: str) -> Callable[[Any], bool]:
    if operator == "~":
        found = search_text(right)
        return lambda value: value is not None and found(_as_text(value))
    text = right[1:-1] if len(right) > 1 and right[0] == right[-1] and right[0] in "'\"" else right
    if operator in {"=", "=="}:
        return lambda value: _as_text(value) == text
    if operator == "!=":
        return lambda value: _as_text(value) != text
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{right!r} is not a number") from None
    compare: dict[str, Callable[[float], bool]] = {
        "<": lambda value: value < number,
        "<=": lambda value: value <= number,
        ">": lambda value: value > number,
        ">=": lambda value: value >= number,
    }
    chosen = compare[operator]
    return lambda value: type(value) in (int, float) and chosen(value)


def _as_text(value: Any) -> str:
    """A text as it is; numbers, true, false and null as JSON writes them."""
    if isinstance(value, str):
        return value
    import json

    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # the reader's limit of depth is the writer's, too
        return ""
