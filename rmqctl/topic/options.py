"""Options that the topic commands share."""

from typing import Annotated

import typer

Topics = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", help="Default: all")]
MoreTopics = Annotated[
    list[str] | None,
    typer.Option("--topic", "-t", metavar="TOPIC", help="A topic, as an option; repeatable"),
]


def named(topics: list[str] | None, more: list[str] | None) -> list[str]:
    """The topics given as arguments and options, each once."""
    return list(dict.fromkeys([*(topics or ()), *(more or ())]))
