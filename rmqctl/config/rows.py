"""The rows of the ``config`` and ``context`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Wide


class SettingRow(NamedTuple):
    """One setting and its value."""

    setting: Annotated[str, "the setting"]
    value: Annotated[str | None, "what holds now; null if nothing sets it and nothing is built in"]
    origin: Annotated[str, "where the value comes from"]
    meaning: Annotated[str, Wide("what it is")]


class SetSettingRow(NamedTuple):
    """What became of a setting in a file."""

    setting: Annotated[str, "the setting"]
    old: Annotated[str | None, "what the file said before; null if nothing"]
    new: Annotated[str | None, "what it says now; null if nothing"]
    file: Annotated[str, "the file"]
    context: Annotated[str | None, Wide("the context whose setting it is")]


class SettingsFileRow(NamedTuple):
    """One settings file."""

    layer: Annotated[str, "option, project, user or system; the first one that sets it wins"]
    path: Annotated[str, "the file"]
    exists: Annotated[bool, "whether it is there"]
    settings: Annotated[int | None, Wide("how many settings it has; null if it is not there")]


class ContextRow(NamedTuple):
    """One named set of settings."""

    context: Annotated[str, "its name"]
    in_use: Annotated[bool, "whether it holds when nothing else is said"]
    store: Annotated[str | None, "its store; null if it names none"]
    files: Annotated[list[str], "the files that have it"]
    settings: Annotated[dict[str, Any], Wide("all its settings")]
