"""``rmqctl lag show``: the lag of groups."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.admin.lag.rows import LagQueueRow, LagRow, LagTopicRow
from rmqctl.cli.as_of import AsOf, moment_of, open_at
from rmqctl.cli.context import Cli, context_of, prints, prints_instead
from rmqctl.cli.gc_tuning import no_search_for_cycles
from rmqctl.cli.marks import most_used
from rmqctl.cli.system_rows import All, tell_hidden, tell_no_progress
from rmqctl.errors import UsageProblem

from .options import Groups, IncludeRetry, Topics

if TYPE_CHECKING:
    from analytics.lag.lag_snapshot import LagSnapshot
    from storage.configs.topics import TopicConfig


class By(StrEnum):
    """The subject of a row of ``lag show``."""

    QUEUE = "queue"
    TOPIC = "topic"
    GROUP = "group"


_TOLD = 5
"""Number of groups and topics that are named as unknown."""
_ROWS = {By.GROUP: LagRow, By.TOPIC: LagTopicRow, By.QUEUE: LagQueueRow}


def _prints_by(ctx: typer.Context, by: By) -> By:
    """Make ``--by queue -o help`` explain the selected rows."""
    if by is not By.GROUP:
        prints_instead(ctx, _ROWS[by])
    return by


def _prints_comparison(ctx: typer.Context, text: str | None) -> str | None:
    if text is not None:
        from rmqctl.admin.lag.comparison_rows import LagComparisonRow

        prints_instead(ctx, LagComparisonRow)
    return text


@prints(LagRow)
@most_used("--topic", "--by", "--as-of", "--compare")
def show(
    ctx: typer.Context,
    groups: Groups = None,
    topic: Topics = None,
    by: Annotated[
        By,
        typer.Option(
            "--by", help="One row per group, topic or queue", is_eager=True, callback=_prints_by
        ),
    ] = By.GROUP,
    include_retry: IncludeRetry = False,
    as_of: AsOf = None,
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="T|FILE",
            help="Compare with this time, or with a file of lag record, show or report (JSON)",
            is_eager=True,
            callback=_prints_comparison,
        ),
    ] = None,
    recorded: Annotated[
        Path | None,
        typer.Option(
            "--recorded", metavar="FILE", help="Take the time of --compare from this file"
        ),
    ] = None,
    everything: All = False,
) -> None:
    """Show the lag of groups: messages, bytes, age, rates and a status.

    Reads files only: the store may be in use, or belong to a dead broker. Retries and dead letters
    have columns of their own. RocketMQ's own groups are shown with --all, or if they are named.

    Groups with a lag:         rmqctl lag show --where 'lag > 0' --sort -oldest_unread_age_ms
    By queue:                  rmqctl lag show readers --by queue
    The lag one hour ago:      rmqctl lag show --as-of -1h
    One hour ago and now:      rmqctl lag show --compare -1h
    """
    cli = context_of(ctx)
    if compare is not None and by is not By.GROUP:
        raise UsageProblem(f"--compare compares groups; leave out --by {by}")
    if compare is None and recorded is not None:
        raise UsageProblem("--recorded needs --compare with a time")
    moment = moment_of(cli, as_of)
    chosen = groups or []
    with no_search_for_cycles(), open_at(cli, as_of, chosen, topic) as broker:
        from analytics.lag.selection import Choice
        from rmqctl.admin import lag

        choice = Choice(chosen, topic, include_retry, include_system=everything)
        seen = lag.look(broker.view, broker, moment, choice, now=as_of is None)
        known = seen if as_of is None else _with_progress(seen)
        if known.group_lags or not seen.group_lags:
            tell_unknown(cli, known, broker.topics())
        if compare is not None:
            from rmqctl.admin.lag.comparison_rows import LagComparisonRow

            from .earlier import earlier_lags, warn_of_gone, warn_of_unknown

            earlier = earlier_lags(
                cli, compare, recorded, choice, None if as_of is None else moment
            )
            rows = list(lag.compare(lag.group_rows(seen), earlier, seen.doubt))
            warn_of_unknown(cli, rows)
            warn_of_gone(cli, earlier, rows, choice)
            cli.rows(LagComparisonRow, rows)
        elif by is By.GROUP:
            group_rows = list(lag.group_rows(seen))
            cli.rows(LagRow, group_rows)
            if as_of is None:
                _name_why(cli, group_rows)
        elif by is By.TOPIC:
            cli.rows(LagTopicRow, lag.topic_rows(seen))
        else:
            cli.rows(LagQueueRow, lag.queue_rows(seen))
        tell_hidden(cli, choice.hidden(broker.consumer_offsets()))


def _with_progress(seen: "LagSnapshot") -> "LagSnapshot":
    """Without the groups whose progress is wholly unknown: --as-of has counted them."""
    known = [
        one
        for one in seen.group_lags
        if any(queue.unread.committed_offset is not None for queue in one.queues)
    ]
    return seen._replace(group_lags=known)


def tell_unknown(cli: "Cli", seen: "LagSnapshot", topics: "Mapping[str, TopicConfig]") -> bool:
    """Warn of queues that are not in the sums, with the reason, of unreliable progress, and of
    unread queues that the settings of ``topics`` keep from being read.

    Without any group nothing is known either. Returns whether there was something to warn of.
    """
    if seen.doubt is not None:
        cli.warn(seen.doubt)
    elif not seen.group_lags:
        tell_no_progress(cli)
        return True
    from rmqctl.admin.lag.not_read import not_read_queues, not_read_sentences
    from rmqctl.admin.lag.unknown import unknown_sentences

    sentences = unknown_sentences(seen)
    for sentence in sentences[:_TOLD]:
        cli.warn(sentence)
    if len(sentences) > _TOLD:
        more = len(sentences) - _TOLD
        cli.warn(f"{more} more groups and topics are partly unknown; --by queue shows which")
    for sentence in not_read_sentences(list(not_read_queues(seen, topics))):
        cli.warn(sentence)
    return bool(sentences) or seen.doubt is not None


def _name_why(cli: Cli, rows: Sequence[LagRow]) -> None:
    """Name the command that says why a group does not move, on a terminal."""
    stuck = next((row.group for row in rows if row.status in ("STOP", "STALL")), None)
    if stuck is not None and cli.view.terminal:
        cli.say(f"'rmqctl group why {stuck}' shows why it does not move")
