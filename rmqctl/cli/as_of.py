"""``--as-of``: the option, and a broker over the store as it was at that time."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rmqctl.errors import UsageProblem

from .opening import open_for_reading

if TYPE_CHECKING:
    from collections.abc import Collection

    from broker.embedded.broker import EmbeddedBroker

    from .context import Cli

AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="T", help="Show the state at this time, as far as it is known"),
]


def moment_of(cli: "Cli", text: str | None) -> int:
    """The time of ``--as-of``, else the start of the call. UsageProblem for a time in the
    future."""
    if text is None:
        return cli.now_ms
    moment = cli.time("--as-of", text)
    if moment > cli.now_ms:
        raise UsageProblem(f"--as-of: {text!r} lies in the future")
    return moment


class AsOfTime(NamedTuple):
    """The progress of groups at a time, as far as it is known."""

    progress: dict[tuple[str, str], dict[int, int]]
    """(group, topic) to queue id to offset, for all that have progress now or are known to have
    had some."""
    doubts: dict[tuple[str, str, int], str]
    """(group, topic, queue id) of an unknown offset, to its lower and upper bound."""

    def warn(
        self, cli: "Cli", groups: "Collection[str] | None", topics: "Collection[str] | None"
    ) -> None:
        """Warn of how many are unknown, wholly or in part, among the selected groups and topics
        (None: all)."""
        from analytics.lag.selection import Choice

        choice = Choice(groups, topics)
        observed = {place for place in self.progress if choice.names(*place)}
        in_doubt = {(group, topic) for group, topic, _ in self.doubts}
        doubtful = observed & in_doubt
        partly = sum(bool(self.progress[place]) for place in doubtful)
        for word, count in (("unknown", len(doubtful) - partly), ("known only in part", partly)):
            if count:
                cli.warn(
                    f"the progress at that time is {word} for {count} of {len(observed)} groups "
                    "and topics: no process recorded it"
                )


def open_at(
    cli: "Cli",
    text: str | None,
    groups: "Collection[str] | None" = None,
    topics: "Collection[str] | None" = None,
) -> "EmbeddedBroker":
    """The broker over the call's store, read only, as of the option's time or as it is now.

    Progress comes from changes and samples before and after the time; while a process took
    samples, from the last sample. Warns of ``groups`` and ``topics`` whose progress is unknown.
    NotFound (3) without a store, and if the messages of that time have been deleted.
    """
    if text is None:
        return open_for_reading(cli)
    moment = moment_of(cli, text)
    then = progress_then(cli, moment)
    then.warn(cli, groups, topics)
    return broker_then(cli, moment, then)


def broker_then(cli: "Cli", moment: int, then: AsOfTime) -> "EmbeddedBroker":
    """The broker as of that time. Raises as open_at."""
    from broker.embedded.as_of import AsOfBroker

    return AsOfBroker.open_at(cli.store.path, moment, then.progress)


def progress_then(cli: "Cli", moment: int) -> AsOfTime:
    """The known progress at a time (ms). Raises as open_at."""
    from rmqctl.admin.offsets.sides import side_at
    from storage.configs.consumer_offsets import topic_at_group
    from storage.configs.offset_samples import OffsetSamples

    with open_for_reading(cli) as now:
        side = side_at(now.view, now, moment, cli.now_ms)
        known = now.consumer_offsets()
    history = OffsetSamples(cli.store.path).read(moment)
    then = AsOfTime({place: {} for place in known}, {})
    for (name, topic, queue_id), exact in side.offsets.items():
        group = name or ""
        row = then.progress.setdefault((group, topic), {})
        seen = history.seen_at(topic_at_group(topic, group), queue_id, moment)
        offset = seen if exact is None else exact
        if offset is not None:
            row[queue_id] = offset
        elif (name, topic, queue_id) in side.notes:
            then.doubts[group, topic, queue_id] = side.notes[name, topic, queue_id]
    return then
