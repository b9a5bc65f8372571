"""Looking at a store as it was: the option, and the broker that answers for that time."""

from typing import TYPE_CHECKING, Annotated

import typer

from rmqctl.errors import UsageProblem
from rmqctl.opening import open_for_reading

if TYPE_CHECKING:
    from broker.embedded import EmbeddedBroker
    from rmqctl.context import Cli

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


def open_at(cli: "Cli", text: str | None) -> "EmbeddedBroker":
    """The broker over the call's store, for reading, as it was at the option's time or is now.

    Progress is what changes and samples before and after tell; while somebody kept looking, what
    was seen last. NotFound (3) where there is no store, and where what was there then has been
    deleted.
    """
    now = open_for_reading(cli)
    if text is None:
        return now
    moment = moment_of(cli, text)
    from broker.past import PastBroker
    from rmqctl.looking.offset_sides import offsets_at
    from storage.configs.consumer_offsets import topic_at_group
    from storage.configs.progress_samples import ProgressSamples

    with now:
        side = offsets_at(now, moment, cli.now_ms)
        known = now.consumer_offsets()
    history = ProgressSamples(cli.store.path).read(moment)
    progress: dict[tuple[str, str], dict[int, int]] = {place: {} for place in known}
    for (group, topic, queue_id), exact in side.offsets.items():
        row = progress.setdefault((group or "", topic), {})
        seen = history.seen_at(topic_at_group(topic, group or ""), queue_id, moment)
        offset = seen if exact is None else exact
        if offset is not None:
            row[queue_id] = offset
    unknown = sum(not row for row in progress.values())
    if unknown:
        cli.warn(
            f"how far groups were then is not known for {unknown} of {len(progress)} groups and "
            "topics: nobody kept looking"
        )
    return PastBroker.open_at(cli.store.path, moment, progress)
