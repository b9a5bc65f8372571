"""``rmqctl store carve``: a part of a store as a store of its own."""

from pathlib import Path
from typing import Annotated

import typer

from rmqctl.cli.context import context_of, prints
from rmqctl.cli.opening import view_of
from rmqctl.errors import NotFound, PartlyDone, Refused, UsageProblem
from rmqctl.message.filter_options import filters_messages, message_filter

from .rows import CarvedRow, CarvePlanRow


@prints(CarvedRow, CarvePlanRow)
@filters_messages
def carve(
    ctx: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the new store")],
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC", help="This topic; repeatable"),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="This group: its retries, dead letters, settings, progress, and without -t the "
            "topics that it reads; repeatable",
        ),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(
            "--mask", metavar="RULES", help="Hide: json.PATH=hash,property.NAME=drop,keys=stars"
        ),
    ] = None,
    mask_key: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The same hashes in all stores with it")
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="16 MiB log files, a small index")] = False,
) -> None:
    r"""Make a new store of a part of this one. A dry run, unless --execute is given.

    Messages keep their times, hosts, ids, properties and bodies, and their queue offsets too,
    unless a filter leaves gaps: then they are numbered from 0, and progress with them. Only their
    place in the log is new, and the offset ids that name it. This store is only read; it may be
    in use. OUT appears when it is whole.

    A topic to take home:      rmqctl store carve ../orders -t orders --execute
    A day of it, masked:       rmqctl store carve ../day -t orders --from 2026-01-31 \
                                 --to 2026-02-01 --mask 'json.who.email=hash,keys=hash' --execute
    What a group works on:     rmqctl store carve ../billing -g billing --execute
    Its dead letters alone:    rmqctl store carve ../dead -t %DLQ%billing --execute

    RULES are those of 'message export'. What they hide is nowhere in the files of OUT.
    """
    from rmqctl.cli.change_steps import carry_out
    from rmqctl.message.exchange.masking import parse_rules, unmatched
    from storage.config import SMALL_STORE

    from .plan import plan_of
    from .run import Carving, progress_sentences
    from .transform import RecordTransform

    cli = context_of(ctx)
    if not topic and not group:
        raise UsageProblem("name what is wanted: --topic or --group")
    if mask_key is not None and mask is None:
        raise UsageProblem("--mask-key is for --mask")
    rules = []
    if mask is not None:
        rules = cli.parsed("--mask", lambda text: parse_rules(text, mask_key), mask)
    chosen = message_filter(cli)
    target = Path(out).expanduser().absolute()
    with view_of(cli) as view:
        if target == view.root or view.root in target.parents:
            raise UsageProblem("OUT must not lie in the store itself")
        if target.exists() and not (target.is_dir() and not any(target.iterdir())):
            raise Refused(f"{target} is there already; name a folder that is empty or not there")
        plan = plan_of(view, topic or (), group or (), chosen)
        if not plan.topics:
            raise NotFound(f"group {', '.join(group or ())} has read nothing, so there is nothing")
        keeps = chosen.predicate is None
        carving = Carving(
            cli,
            view,
            plan,
            RecordTransform(chosen.predicate, rules),
            keeps_offsets=keeps,
            config=SMALL_STORE if small else view.config,
        )
        plan_summary = [*progress_sentences(plan)]
        if not keeps:
            plan_summary.append("the filters leave gaps, so queue offsets will count from 0")
        done = carry_out(
            cli,
            CarvePlanRow,
            carving.plan_rows(),
            lambda: carving.run(target),
            question=f"Make the store {target}?",
            plan_summary=plan_summary,
            result_type=CarvedRow,
        )
    if not done:
        return
    for sentence in unmatched(rules):
        cli.warn(sentence)
    cli.say(f"made the store {target}")
    if carving.lost:
        raise PartlyDone(
            f"{carving.lost:,} messages could not be read or masked, and are not in {target}"
        )
