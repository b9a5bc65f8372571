"""The filter options, and the filter of a call."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeVar

from rmqctl.admin.message_filter import MessageFilter, MessageSelection, MessageTest, Predicate
from rmqctl.errors import UsageProblem
from rmqctl.parse.lists import parse_queues
from storage.parse.durations import parse_size
from storage.parse.patterns import search_bytes
from storage.parse.time_forms import SHORT

from .context import Cli
from .global_options import Spec

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_BODY: Final = frozenset({"stored_body"})
F = TypeVar("F", bound=Callable[..., object])

FILTERS: Final = (
    Spec(("--from",), "T", f"Stored at or after T, such as {', '.join(SHORT)}"),
    Spec(("--to",), "T", "Stored before T"),
    Spec(("-Q", "--queue"), "LIST", "Only these queues, such as 0,2-4"),
    Spec(("--tag",), "EXPR", "With one of the tags: 'a || b'"),
    Spec(("-k", "--key"), "K", "With this key"),
    Spec(("--id",), "ID", "With this unique or offset id; repeatable", multiple=True),
    Spec(("-H", "--property"), "N[=GLOB]", "With this property; repeatable", multiple=True),
    Spec(("--body",), "TEXT", "With TEXT in the body"),
    Spec(("--regex",), "RE", "With a match of RE (RE2 syntax) in the body"),
    Spec(
        ("--json-path",),
        "EXPR",
        "With a JSON body such as 'sum > 9 and country = DE' (rmqctl explain json-path); "
        "repeatable: all hold",
        multiple=True,
    ),
    Spec(("--min-size",), "SIZE", "With a body of at least SIZE"),
    Spec(("--max-size",), "SIZE", "With a body of at most SIZE"),
    Spec(("--attempts",), "N..M", "Sent back so often: 3, 1.., ..5, 1..3"),
    Spec(("--born-host",), "HOST", "Sent from HOST; * matches any text"),
)


def filters_messages(function: F) -> F:
    """Mark a command function that has the filter options."""
    function.more_options = FILTERS  # type: ignore[attr-defined]
    return function


def message_filter(
    cli: Cli,
    *,
    body_text: str | None = None,
    regex_in: "Callable[[MessageExt], Iterable[bytes]] | None" = None,
    changes: bool = False,
    times: tuple[int | None, int | None] | None = None,
) -> MessageFilter:
    """The filter of a call. Raises UsageProblem for a malformed value.

    ``changes``: the command changes something; see Cli.time.
    ``regex_in`` gives the texts that ``--regex`` is matched with; the body by default.
    ``times`` stand for --from and --to of the call (:func:`given_times`).
    """
    given = cli.given
    queues = given.get("queue")
    first, last = given_times(cli, changes=changes) if times is None else times
    check_time_range(cli, first, last)
    tests = list(_tests(cli))
    if (regex := given.get("regex")) is not None:
        tests.append(_regex_test(cli.parsed("--regex", search_bytes, regex), regex_in))
    text = body_text if body_text is not None else given.get("body")
    if text is not None:
        wanted = text.encode("utf-8", "surrogateescape")
        tests.append(MessageTest(lambda message: wanted in message.body, _BODY))
    return MessageFilter(
        first,
        last,
        None if queues is None else cli.parsed("--queue", parse_queues, queues),
        given.get("tag"),
        _all_of([test.holds for test in tests]),
        tuple(tests) if tests else None,
    )


def given_times(cli: Cli, *, changes: bool = False) -> tuple[int | None, int | None]:
    """--from and --to of a call in epoch ms, None for one that is not given."""
    start, end = cli.given.get("from"), cli.given.get("to")
    first = None if start is None else cli.time("--from", start, changes=changes)
    last = None if end is None else cli.time("--to", end, changes=changes)
    return first, last


def message_selection(
    ids: Sequence[str] | None, wanted: MessageFilter, what: str, *, everything: bool
) -> MessageSelection:
    """Messages by the ids of a call, else by --all and filters. UsageProblem if nothing is given:
    there is no default to all."""
    if ids and (everything or wanted.is_given):
        raise UsageProblem("ids exclude filters and --all")
    if not (ids or everything or wanted.is_given):
        raise UsageProblem(f"select {what} by id, or with --all and filters")
    return MessageSelection(ids or (), wanted)


def warn_of_blank(cli: Cli, key: str) -> None:
    """Warn of a key that no message can have, as RocketMQ splits keys at blanks."""
    from storage.format.message import split_keys

    parts = split_keys(key)
    if len(parts) > 1:
        shown = ", ".join(map(repr, parts))
        cli.warn(f"--key {key!r} contains a blank, so no message has it; its keys would be {shown}")


def check_time_range(cli: Cli, first: int | None, last: int | None) -> None:
    """Refuse --from after --to, and warn of a --from in the future: both find nothing."""
    if first is None:
        return
    if last is not None:
        from storage.parse.times import check_order

        cli.parsed("--from", lambda _: check_order(first, last, ("it", "--to")), "")
    cli.warn_of_future("--from", first, "no message is that recent")


def _all_of(tests: list[Predicate]) -> Predicate | None:
    if len(tests) < 2:
        return tests[0] if tests else None
    return lambda message: all(test(message) for test in tests)


def _tests(cli: Cli) -> list[MessageTest]:
    given = cli.given
    tests: list[MessageTest] = []
    if (expression := given.get("tag")) is not None:
        tests += _tag_test(expression)
    if (key := given.get("key")) is not None:
        warn_of_blank(cli, key)
        tests.append(MessageTest(lambda message: key in message.keys, frozenset({"keys"})))
    if texts := given.get("id", ()):
        # Any text: users may set unique ids. RocketMQ's are upper-case hex digits.
        ids = frozenset(texts) | {text.upper() for text in texts}
        tests.append(
            MessageTest(
                lambda message: message.msg_id in ids or message.offset_msg_id in ids,
                frozenset({"msg_id", "offset_msg_id"}),
            )
        )
    tests += [_property_test(text) for text in given.get("property", ())]
    if paths := given.get("json_path", ()):
        tests.append(_json_test(cli, paths))
    tests += _size_tests(cli, given.get("min_size"), given.get("max_size"))
    if (attempts := given.get("attempts")) is not None:
        low, high = cli.parsed("--attempts", _range, attempts)
        tests.append(
            MessageTest(
                lambda message: low <= message.reconsume_times <= high,
                frozenset({"reconsume_times"}),
            )
        )
    if (host := given.get("born_host")) is not None:
        tests.append(MessageTest(_host_test(host), frozenset({"born_host"})))
    return tests


def _json_test(cli: Cli, texts: Iterable[str]) -> MessageTest:
    """A test of JSON bodies; after the run, a warning names fields that no message has."""
    from rmqctl.parse.json_path import JsonCondition, JsonFilter

    finder = JsonFilter([cli.parsed("--json-path", JsonCondition, text) for text in texts])

    def warn() -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, Exception):
            return  # interrupted: other messages may have them
        for mistake in finder.mistakes():
            cli.warn(f"--json-path: {mistake}")

    cli.at_end.append(warn)
    return MessageTest(lambda message: finder(message.body), _BODY, finder.many)


def _size_tests(cli: Cli, least: str | None, most: str | None) -> list[MessageTest]:
    smallest = 0 if least is None else cli.parsed("--min-size", parse_size, least)
    largest = None if most is None else cli.parsed("--max-size", parse_size, most)
    if largest is None:
        test = MessageTest(lambda message: len(message.body) >= smallest, _BODY)
        return [test] if smallest else []
    if smallest > largest:
        raise UsageProblem(f"--min-size {least} is larger than --max-size {most}")
    return [MessageTest(lambda message: smallest <= len(message.body) <= largest, _BODY)]


def _tag_test(expression: str) -> list[MessageTest]:
    """The client's comparison of texts; the broker compares only hashes."""
    from storage.read.tag_filter import TagFilter

    try:
        tags = TagFilter.parse(expression)
    except ValueError as error:
        raise UsageProblem(f"--tag: {error}") from None
    if tags is None:
        return []
    # No column: where few messages have a tag, it is quicker to skip the others by their units.
    return [MessageTest(lambda message: tags.accepts(message.tags), None)]


def _property_test(text: str) -> MessageTest:
    name, equals, glob = text.partition("=")
    if not name:
        raise UsageProblem(f"--property: {text!r} names no property")
    if not equals:
        return MessageTest(lambda message: message.get_property(name) is not None, None)

    def test(message: "MessageExt") -> bool:
        value = message.get_property(name)
        return value is not None and fnmatchcase(value, glob)

    return MessageTest(test, None)  # one property is found more quickly than all are decoded


def _regex_test(
    found: Callable[[bytes], bool], texts: "Callable[[MessageExt], Iterable[bytes]] | None"
) -> MessageTest:
    if texts is None:
        return MessageTest(lambda message: found(message.body), _BODY)
    return MessageTest(lambda message: any(map(found, texts(message))), None)


def _host_test(glob: str) -> Predicate:
    """The host with and without port, with and without the brackets of IPv6."""

    def test(message: "MessageExt") -> bool:
        whole = message.born_host
        address = whole.rpartition(":")[0]
        return any(fnmatchcase(text, glob) for text in (whole, address, address.strip("[]")))

    return test


def _range(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d*)(\.\.)?(\d*)", text, re.ASCII)
    if not found or not (found[1] or found[3]):
        raise ValueError(f"{text!r} is not a range (such as 3, 1.., ..5 or 1..3)")
    low = int(found[1] or 0)
    if not found[2]:
        return low, low
    high = int(found[3]) if found[3] else 1 << 31
    if low > high:
        raise ValueError(f"{text!r} is an empty range: {low} is more than {high}")
    return low, high
