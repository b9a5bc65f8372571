"""Looking at a store as it was: the option, and the broker that answers for that time."""

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
    typer.Option("--as-of", metavar="T", help="As it was at this time, as far as that is known"),
]


def moment_of(cli: "Cli", text: str | None) -> int:
    """The time that a call looks at: the option's, else when it began. A usage error if it lies
    in the future."""
    if text is None:
        return cli.now_ms
    moment = cli.time("--as-of", text)
    if moment > cli.now_ms:
        raise UsageProblem(f"--as-of: {text!r} has not come yet")
    return moment


class AsOfTime(NamedTuple):
    """How far groups were at a time, as far as that is known."""

    progress: dict[tuple[str, str], dict[int, int]]
    """(group, topic) to queue id to offset, of all that have progress now or are known to have had
    some."""
    doubts: dict[tuple[str, str, int], str]
    """(group, topic, queue id) of an offset that is not known to between what it lay."""

    def warn(
        self, cli: "Cli", groups: "Collection[str] | None", topics: "Collection[str] | None"
    ) -> None:
        """Tell of how many nothing is known, of those that are looked at (None: of all)."""
        from analytics.lag.selection import Choice

        choice = Choice(groups, topics)
        observed = {place for place in self.progress if choice.names(*place)}
        in_doubt = {(group, topic) for group, topic, _ in self.doubts}
        unknown = sum(not self.progress[place] and place in in_doubt for place in observed)
        if unknown:
            cli.warn(
                f"how far groups were then is not known for {unknown} of {len(observed)} groups "
                "and topics: nobody kept looking"
            )


def open_at(
    cli: "Cli",
    text: str | None,
    groups: "Collection[str] | None" = None,
    topics: "Collection[str] | None" = None,
) -> "EmbeddedBroker":
    """The broker over the call's store, for reading, as it was at the option's time or is now.

    Progress is what changes and samples before and after tell; while somebody kept looking, what
    was seen last. Of which ``groups`` and ``topics`` that is not known is told. NotFound (3) where
    there is no store, and where what was there then has been deleted.
    """
    if text is None:
        return open_for_reading(cli)
    moment = moment_of(cli, text)
    then = progress_then(cli, moment)
    then.warn(cli, groups, topics)
    return broker_then(cli, moment, then)


def broker_then(cli: "Cli", moment: int, then: AsOfTime) -> "EmbeddedBroker":
    """The broker of that time. Raises as open_at."""
    from broker.embedded.as_of import AsOfBroker

    return AsOfBroker.open_at(cli.store.path, moment, then.progress)


def progress_then(cli: "Cli", moment: int) -> AsOfTime:
    """What is known of progress at a time (ms). Raises as open_at."""
    from rmqctl.offset.diff.sides import offsets_at
    from storage.configs.consumer_offsets import topic_at_group
    from storage.configs.offset_samples import OffsetSamples

    with open_for_reading(cli) as now:
        side = offsets_at(now, moment, cli.now_ms)
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
