"""Changing one setting in the text of a settings file; comments and order stay.

A line is found and replaced; the result is parsed and must have exactly the wanted settings. A file
in which a setting is not one line (values over several lines, YAML's flow form) is refused, so no
content is lost.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Callable
from typing import Any, Final

from rmqctl.cli.settings import parse_settings
from rmqctl.errors import Refused

CONTEXTS: Final = "contexts"

Values = dict[str, Any]


def changed(text: str, suffix: str, table: str | None, key: str, value: str | bool | None) -> str:
    """The text with one setting set, or removed if ``value`` is None.

    ``table`` is the context that the setting belongs to, None for the file's own settings. Refused
    (7) if the text cannot be changed line by line.
    """
    old = _parsed(text, suffix)
    wanted = copy.deepcopy(old)
    members = wanted if table is None else wanted.setdefault(CONTEXTS, {}).setdefault(table, {})
    known = _spelled(members, key)
    if value is None:
        members.pop(known, None)
    else:
        members[known] = value
    if wanted == old:
        return text
    edit = _toml_changed if suffix == ".toml" else _yaml_changed
    return _checked(edit(text, table, known, value), suffix, wanted)


def without_context(text: str, suffix: str, name: str) -> str:
    """The text without one context; the text itself if it has no such context."""
    old = _parsed(text, suffix)
    if name not in old.get(CONTEXTS, {}):
        return text
    wanted = copy.deepcopy(old)
    del wanted[CONTEXTS][name]
    if not wanted[CONTEXTS]:
        del wanted[CONTEXTS]
    edit = _toml_without if suffix == ".toml" else _yaml_without
    return _checked(edit(text, name), suffix, wanted)


def with_context(text: str, suffix: str, name: str) -> str:
    """The text with a context that has no settings yet."""
    wanted = _parsed(text, suffix)
    if name in wanted.get(CONTEXTS, {}):
        return text
    wanted.setdefault(CONTEXTS, {})[name] = {}
    if suffix == ".toml":
        new = "".join(_with_table(text.splitlines(keepends=True), name))
    else:
        new = _yaml_rewritten(
            text, lambda values: values.setdefault(CONTEXTS, {}).update({name: {}})
        )
    return _checked(new, suffix, wanted)


def _parsed(text: str, suffix: str) -> Values:
    """The settings in a text; a YAML table of contexts that has none may be null there."""
    values = parse_settings(text, suffix)
    if values.get(CONTEXTS, {}) is None:
        del values[CONTEXTS]
    return values


def _checked(new: str, suffix: str, wanted: Values) -> str:
    """The new text, if it has the wanted settings and no others."""
    try:
        said = _parsed(new, suffix)
    except ValueError:
        said = None
    if said is not None and _without_empty(said) == _without_empty(wanted):
        return new
    raise Refused(
        "the settings file cannot be changed line by line; nothing was changed, edit it by hand"
    )


def _without_empty(values: Values) -> Values:
    """An empty table of contexts is the same as none."""
    return {key: value for key, value in values.items() if (key, value) != (CONTEXTS, {})}


def _spelled(members: Values, key: str) -> str:
    """The key as spelled in the file: with ``-`` or ``_``."""
    return next((known for known in members if str(known).replace("-", "_") == key), key)


# -- TOML -----------------------------------------------------------------------------------------


def _toml_changed(text: str, table: str | None, key: str, value: str | bool | None) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    if table is not None and value is not None:
        lines = _with_table(lines, table)
    start, end = _region(lines, table)
    place = _line_of(lines, start, end, re.compile(rf"""\s*["']?{re.escape(key)}["']?\s*="""))
    if place is None:
        if value is not None:
            lines.insert(_after_last_setting(lines, start, end), f"{key} = {_quoted(value)}\n")
    elif value is None:
        del lines[place]
    else:
        comment = _comment(lines[place], tomllib.loads)
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place] = f"{indent}{key} = {_quoted(value)}{comment}\n"
    return "".join(lines)


def _toml_without(text: str, name: str) -> str:
    lines = text.splitlines(keepends=True)
    start, end = _region(lines, name)
    end = max(start, _after_last_setting(lines, start, end))
    return "".join([*lines[: start - 1], *lines[end:]])


def _with_table(lines: list[str], name: str) -> list[str]:
    """The lines with a table for the context; at the end if it is new."""
    if any(_header_of(line) == name for line in lines):
        return lines
    bare = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return [*lines, *(["\n"] if lines else []), f"[{CONTEXTS}.{bare}]\n"]


def _region(lines: list[str], table: str | None) -> tuple[int, int]:
    """The lines of a context's settings, or of the file's own; empty at the end if none."""
    headers = [number for number, line in enumerate(lines) if line.lstrip().startswith("[")]
    if table is None:
        return 0, headers[0] if headers else len(lines)
    for number in headers:
        if _header_of(lines[number]) == table:
            return number + 1, min((n for n in headers if n > number), default=len(lines))
    return len(lines), len(lines)


def _header_of(line: str) -> str | None:
    """The name of the context whose table starts in a line."""
    if not line.lstrip().startswith("["):
        return None
    try:
        tables = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    contexts = tables.get(CONTEXTS)
    if isinstance(contexts, dict) and len(contexts) == 1:
        name, members = next(iter(contexts.items()))
        return str(name) if members == {} else None
    return None


# -- YAML -----------------------------------------------------------------------------------------


def _yaml_changed(text: str, table: str | None, key: str, value: str | bool | None) -> str:
    if table is not None:
        return _yaml_rewritten(text, lambda values: _put(values, table, key, value))
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    place = _line_of(lines, 0, len(lines), re.compile(rf"""["']?{re.escape(key)}["']?\s*:"""))
    if place is None:
        if value is not None:
            lines.append(f"{key}: {_quoted(value)}\n")
    elif value is None:
        del lines[place]
    else:
        comment = _comment(lines[place], lambda line: parse_settings(line, ".yaml"), " #")
        lines[place] = f"{key}: {_quoted(value)}{comment}\n"
    return "".join(lines)


def _yaml_without(text: str, name: str) -> str:
    def remove(values: Values) -> None:
        del values[CONTEXTS][name]

    return _yaml_rewritten(text, remove)


def _yaml_rewritten(text: str, change: Callable[[Values], Any]) -> str:
    """The whole file written again; loses nothing if it has no comments."""
    if "#" in text:
        raise Refused(
            "the settings file is YAML with comments, and a change of its contexts would lose "
            "them; nothing was changed, edit it by hand"
        )
    import yaml

    values = _parsed(text, ".yaml")
    change(values)
    written: str = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
    return written


def _put(values: Values, table: str, key: str, value: str | bool | None) -> None:
    members = values.setdefault(CONTEXTS, {}).setdefault(table, {})
    if value is None:
        members.pop(key, None)
    else:
        members[key] = value


# -- both -----------------------------------------------------------------------------------------


def _line_of(lines: list[str], start: int, end: int, pattern: re.Pattern[str]) -> int | None:
    return next((number for number in range(start, end) if pattern.match(lines[number])), None)


def _after_last_setting(lines: list[str], start: int, end: int) -> int:
    """The index after the last line of a region that is neither blank nor a comment."""
    said = [n for n in range(start, end) if lines[n].strip() and lines[n].lstrip()[0] != "#"]
    if said:
        return said[-1] + 1
    return start if start else end


def _comment(line: str, loads: Callable[[str], Any], mark: str = "#") -> str:
    """The comment at the end of a line, with the blanks before it; not a # in a value."""
    line = line.rstrip("\r\n")
    at = line.find(mark)
    while at >= 0:
        try:
            loads(line[:at])
        except ValueError:
            at = line.find(mark, at + 1)
            continue
        blanks = len(line[:at]) - len(line[:at].rstrip())
        return line[at - blanks :]
    return ""


def _quoted(value: str | bool) -> str:
    """A value in a form that is valid in TOML and YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
