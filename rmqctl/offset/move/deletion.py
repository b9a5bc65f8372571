"""``offset delete``: forgetting the progress of groups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from broker.validation import check_group
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.parse.lists import parse_queues

from .apply import ChangeForm, ChangeRun
from .plan import Describer, steps_of
from .queues import parse_topic_choice, stands, with_progress
from .reset_targets import to_nothing
from .rows import DoneMove, PlannedMove

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from rmqctl.cli.context import Cli


def carry_out_delete(
    cli: "Cli",
    broker: "EmbeddedBroker",
    groups: Sequence[str] | None,
    topics: Sequence[str] | None,
    queues: str | None,
    *,
    all_topics: bool,
    no_live: bool,
) -> None:
    """Plan, show, ask, do. ``topics`` may be gone. NotFound if there is no such progress."""
    if not groups:
        raise UsageProblem("name groups with --group")
    if bool(topics) == all_topics:
        raise UsageProblem("name topics with --topic, or take all with --all-topics")
    for group in groups:
        check_group(group)
    wanted = None if queues is None else cli.parsed("--queue", parse_queues, queues)
    choices = [cli.parsed("--topic", parse_topic_choice, topic) for topic in topics or ()]
    change_run = ChangeRun(cli, broker, execute_by_default=True)
    places = [
        place
        for place in with_progress(change_run.progress, groups, choices or None)
        if wanted is None or place.queue_id in wanted
    ]
    if not places:
        where = f" in {', '.join(topics)}" if topics else ""
        raise NotFound(f"group {', '.join(groups)} has no such progress{where}")
    steps = steps_of(stands(broker, change_run.progress, places), to_nothing, clamp=False)
    describe = Describer(broker.view, broker.name, cli.now_ms, full=True)
    form = ChangeForm(PlannedMove, describe.planned, DoneMove, describe.done)
    change_run.carry_out(steps, form, no_live=no_live)
