"""Filter options that are typed in the console: the words of ``consume`` and ``message search``."""

from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Any, NamedTuple

from rmqctl.admin.message_filter import MessageFilter
from rmqctl.cli.context import Cli
from rmqctl.cli.filter_options import FILTERS, message_filter
from rmqctl.cli.global_options import Spec
from rmqctl.errors import UsageProblem

_WHERE = Spec(("--where",), "EXPR", "")
_TOPIC = Spec(("-t", "--topic"), "TOPIC", "")
_IN = Spec(("--in",), "LIST", "")


class TypedFilter(NamedTuple):
    """What was typed: other words, and values of options by their names."""

    others: tuple[str, ...]
    given: dict[str, Any]


def parse(words: Sequence[str]) -> TypedFilter:
    """Take words apart. UsageProblem for an unknown option, and for one without its value."""
    specs = {name: spec for spec in (*FILTERS, _WHERE, _TOPIC, _IN) for name in spec.names}
    others: list[str] = []
    given: dict[str, Any] = {}
    left = list(words)
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            others.append(word)
            continue
        name, equals, value = word.partition("=")
        spec = specs.get(name)
        if spec is None:
            raise UsageProblem(f"{name} is not a filter option ({', '.join(_long_names())})")
        if not equals:
            if not left:
                raise UsageProblem(f"{name} needs a value")
            value = left.pop(0)
        key = spec.names[-1][2:].replace("-", "_")
        given[key] = [*given.get(key, ()), value] if spec.multiple else value
    return TypedFilter(tuple(others), given)


def _long_names() -> list[str]:
    return [spec.names[-1] for spec in FILTERS]


class QuietCli(Cli):
    """A call that prints nothing: it hands its sentences on."""

    def __init__(
        self,
        given: dict[str, Any],
        zone: tzinfo | None,
        tell: Callable[[str], object],
        now_ms: int | None = None,
    ) -> None:
        super().__init__({})
        self.given = given
        if now_ms is not None:
            self._started = now_ms
        self.__dict__["zone"] = zone
        self._tell = tell

    def say(self, sentence: str) -> None:
        """Hand a sentence on."""
        self._tell(sentence)

    def detail(self, sentence: str) -> None:
        """Leave a detail out."""

    def warn(self, sentence: str) -> None:
        """Hand a warning on."""
        self._tell(sentence)

    def left_out(self, sentence: str) -> None:
        """Hand on what is left out."""
        self._tell(sentence)


def filter_of(
    given: dict[str, Any], zone: tzinfo | None, tell: Callable[[str], object]
) -> MessageFilter:
    """The filter of options. UsageProblem for a malformed value."""
    return message_filter(QuietCli(given, zone, tell))
