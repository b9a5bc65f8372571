"""The store and the zone of a command that the console shows: a copied one has the same."""

import shlex
from typing import TYPE_CHECKING

from rmqctl.cli.paths import expanded, working_folder

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli


def with_target(command: str, cli: "Cli") -> str:
    """The command with the options that name the store, if the console was given any.

    They come first: what follows ``--`` is no option.
    """
    words: list[str] = []
    if (config := cli.given.get("config")) is not None:
        words += ["--config", str(config)]
    if folders := cli.given.get("store"):
        path = expanded(folders[-1])  # as it was given, if the working folder was removed
        words += ["-S", str(path if working_folder() is None else path.absolute())]
    elif (context := cli.given.get("context")) is not None:
        words += ["--context", str(context)]
    return _with_first(command, [*words, *_zone_words(cli)])


def with_zone(command: str, cli: "Cli") -> str:
    """The command with ``--tz``, if the console was given it: times without a zone mean others
    else."""
    return _with_first(command, _zone_words(cli))


def _zone_words(cli: "Cli") -> list[str]:
    zone = cli.given.get("tz")
    return [] if zone is None else ["--tz", str(zone)]


def _with_first(command: str, words: list[str]) -> str:
    program, _, rest = command.partition(" ")
    return shlex.join([program, *words]) + f" {rest}"
