"""The two sides of ``offset diff``, by the words of the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

from rmqctl.admin.offsets.sides import Side, side_at, side_of_group, side_of_store
from rmqctl.cli.given_file import tell_if_typed
from rmqctl.cli.paths import expanded
from rmqctl.errors import NotFound, UsageProblem

from .files import read_offset_file

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli


def side_of(cli: "Cli", broker: "EmbeddedBroker", text: str) -> Side:
    """The side that a text names: by ``group:``, ``file:``, ``store:`` or ``@`` before it, else a
    group with offsets, a path, a time. NotFound for a text that is none of these."""
    kind, colon, rest = text.partition(":")
    if text.startswith("@"):
        return _at(cli, broker, text, cli.time("@", text[1:]))
    if colon and kind == "group":
        return side_of_group(broker.view, broker, rest)
    if colon and kind == "file":
        return _of_file(cli, Path(rest))
    if colon and kind == "store":
        return _of_store(Path(rest))
    if any(text == group for group, _ in broker.consumer_offsets()):
        return side_of_group(broker.view, broker, text)
    path = expanded(text)
    if path.is_dir():
        return _of_store(path)
    if path.exists():
        return _of_file(cli, path)
    from storage.parse.times import read_time

    try:
        read_time(text, cli.now_ms, cli.zone)
    except ValueError:
        raise NotFound(
            f"{text!r} is no group with progress in {broker.view.root}, no file, no store "
            "and no time"
        ) from None
    return _at(cli, broker, text, cli.time("the time", text))


def _at(cli: "Cli", broker: "EmbeddedBroker", text: str, moment: int) -> Side:
    if moment > cli.now_ms:
        raise UsageProblem(f"{text!r} has not come yet")
    return side_at(broker.view, broker, moment, cli.now_ms)


def _of_file(cli: "Cli", path: Path) -> Side:
    tell_if_typed(cli, path)
    lines = read_offset_file(expanded(path))
    groups = {line.group for line in lines}
    group = next(iter(groups)) if len(groups) == 1 else None
    return Side({line[:3]: line.offset for line in lines}, group)


def _of_store(path: Path) -> Side:
    return side_of_store(expanded(path).absolute())
