"""The query of a call: its pattern and its filters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from rmqctl.admin.known_topics import check_topic_exists
from rmqctl.admin.messages.search.query import Contains, Query, search_query
from rmqctl.admin.messages.search.texts import DEFAULT_FIELDS, parse_fields, texts_in
from rmqctl.cli.filter_options import FILTERS, message_filter
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli
    from storage.readonly import StoreView

    from .resume import Times


def build_query(
    cli: "Cli",
    view: "StoreView",
    pattern: str | None,
    topics: Sequence[str] | None,
    fields: str | None,
    *,
    needs_filter: bool = True,
    times: "Times | None" = None,
) -> Query:
    """The search of a call. UsageProblem for malformed values, NotFound for an unknown topic.

    ``needs_filter``: a pattern or filter is required. Otherwise, and without topics, all topics are
    searched except the broker's internal ones. ``times`` stand for those of the call.
    """
    if pattern == "":
        raise UsageProblem("PATTERN is empty")
    if needs_filter and pattern is None and not _given_filters(cli):
        raise UsageProblem("give a PATTERN, or a filter such as --regex or --tag")
    for topic in topics or ():
        check_topic_exists(view, topic)
    names = _fields(cli, fields)
    given = cli.given
    return search_query(
        view,
        pattern,
        topics=topics,
        fields=names,
        wanted=message_filter(cli, regex_in=texts_in(names), times=times),
        contains=Contains(
            given.get("body"), given.get("key"), given.get("regex"), given.get("property", ())
        ),
        inner_topics=needs_filter,
    )


def fingerprint(
    cli: "Cli",
    pattern: str | None,
    topics: Sequence[str] | None,
    fields: str | None,
    times: "Times",
) -> int:
    """A number that identifies a search: a resume token belongs to one search.

    ``times`` are those of the search's first call, which this call may name in the same words.
    """
    filters = ((name, str(cli.given[name])) for name in _given_filters(cli))
    noted = [] if times == (None, None) else [times]
    asked = [pattern, topics, _fields(cli, fields), *filters, *noted]
    return crc32(repr(asked).encode("utf-8", "surrogateescape"))


def _fields(cli: "Cli", fields: str | None) -> tuple[str, ...]:
    return DEFAULT_FIELDS if fields is None else cli.parsed("--in", parse_fields, fields)


def _given_filters(cli: "Cli") -> list[str]:
    names = (spec.names[-1][2:].replace("-", "_") for spec in FILTERS)
    return [name for name in names if name in cli.given]
