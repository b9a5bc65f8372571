"""The store of a command that the console shows: a copied command acts on the same one."""

import shlex
from typing import TYPE_CHECKING

from rmqctl.cli.paths import expanded

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
        words += ["-S", str(expanded(folders[-1]).absolute())]
    elif (context := cli.given.get("context")) is not None:
        words += ["--context", str(context)]
    program, _, rest = command.partition(" ")
    return shlex.join([program, *words]) + f" {rest}"
