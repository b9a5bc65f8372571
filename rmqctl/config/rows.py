"""The rows of the ``config`` and ``context`` commands."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import Rank, Wide


class SettingRow(NamedTuple):
    """One setting and its value."""

    setting: Annotated[str, "the setting"]
    value: Annotated[str | None, "effective value; null if nothing sets it and it has no default"]
    origin: Annotated[str, "origin of the value", Rank.MAIN]
    meaning: Annotated[str, Wide("what the setting means")]


class SetSettingRow(NamedTuple):
    """A changed setting in a file."""

    setting: Annotated[str, "the setting"]
    old: Annotated[str | None, "value before; null for none"]
    new: Annotated[str | None, "value now; null for none"]
    file: Annotated[str, "the file"]
    context: Annotated[str | None, Wide("the context that the setting belongs to")]


class SettingsFileRow(NamedTuple):
    """One settings file."""

    layer: Annotated[str, "option, project, user or system; the first one that sets it wins"]
    path: Annotated[str, "the file", Rank.KEY]
    exists: Annotated[bool, "whether the file exists", Rank.KEY]
    settings: Annotated[int | None, Wide("number of its settings; null if the file does not exist")]


class ContextRow(NamedTuple):
    """One named set of settings."""

    context: Annotated[str, "its name"]
    in_use: Annotated[bool, "whether it is the context in use", Rank.MAIN]
    store: Annotated[str | None, "its store; null for none", Rank.KEY]
    files: Annotated[list[str], "the files that have it"]
    settings: Annotated[dict[str, Any], Wide("all its settings")]
