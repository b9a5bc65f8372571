"""The options of ``dlq redrive`` that change what is sent."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from broker.retry.redrive_properties import KEPT_RESERVED, LINEAGE_PROPERTIES
from rmqctl.errors import UsageProblem
from storage.format.message import RESERVED_PROPERTIES
from storage.format.strict_json import is_utf8

if TYPE_CHECKING:
    from rmqctl.admin.dead_letters import Rewrite


def rewrite_of(
    set_property: Sequence[str], set_body: Path | None, pipe: str | None, *, allow_empty: bool
) -> "Rewrite":
    """What the options ask for. UsageProblem, also for an empty body without ``allow_empty``."""
    from rmqctl.admin.dead_letters import Rewrite

    if pipe is not None:
        check_command(pipe)
    body = None
    if set_body is not None:
        try:
            body = set_body.read_bytes()
        except OSError as error:
            raise UsageProblem(f"--set-body: {set_body}: {error.strerror}") from None
        if not (body or allow_empty):
            raise UsageProblem(f"--set-body: {set_body} is empty; --allow-empty sends it anyway")
    return Rewrite(parse_properties(set_property), body, pipe, allow_empty=allow_empty)


def parse_properties(texts: Sequence[str]) -> dict[str, str]:
    """The properties of ``--set-property N=V``. UsageProblem for one that cannot be set."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageProblem(f"--set-property: {text!r} is not N=V")
        check_settable(name, "--set-property")
        check_text(text, "--set-property")
        if found.setdefault(name, value) != value:
            raise UsageProblem(f"--set-property: {name} is given twice, with different values")
    return found


def check_settable(name: str, option: str) -> None:
    """Refuse names that RocketMQ or the redrive itself sets."""
    if name in RESERVED_PROPERTIES - KEPT_RESERVED or name in LINEAGE_PROPERTIES:
        raise UsageProblem(f"{option}: {name} is reserved")


def check_text(text: str, option: str) -> None:
    """Refuse what the description of a run cannot hold."""
    if not is_utf8(text):
        raise UsageProblem(f"{option}: {text!r} has bytes that are no UTF-8")


def check_command(command: str) -> None:
    """Refuse a --pipe that cannot be run."""
    check_text(command, "--pipe")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageProblem(f"--pipe: {error}") from None
    if not words:
        raise UsageProblem("--pipe is empty")
    if shutil.which(words[0]) is None:
        raise UsageProblem(f"--pipe: there is no program {words[0]!r}")
