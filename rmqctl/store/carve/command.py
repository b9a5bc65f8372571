"""``rmqctl store carve``: copies a part of a store into a new store."""

from typing import Annotated

import typer

from rmqctl.admin.store.carve_rows import CarvedRow, CarvePlanRow
from rmqctl.cli.context import context_of, prints
from rmqctl.cli.filter_options import filters_messages, message_filter
from rmqctl.cli.marks import Changes, changes, most_used
from rmqctl.cli.opening import view_of
from rmqctl.cli.paths import expanded
from rmqctl.errors import PartlyDone, UsageProblem
from storage.counted import counted


@prints(CarvedRow, CarvePlanRow)
@filters_messages
@changes(Changes.ASKS)
@most_used("--group")
def carve(
    ctx: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder of the new store")],
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC...]", help="The topics to copy"),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            "-g",
            metavar="GROUP",
            help="A group to copy: its retries, dead letters, settings and progress, and without "
            "TOPIC the topics that it reads; repeatable",
        ),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(
            "--mask", metavar="RULES", help="Hide: json.PATH=hash,property.NAME=drop,keys=stars"
        ),
    ] = None,
    mask_key: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Stores with the same key have the same hashes"),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="16 MiB log files and a small index")
    ] = False,
) -> None:
    r"""Copy a part of this store into a new store. It shows the plan and asks first.

    Messages keep their times, hosts, ids, properties and bodies, and also their queue offsets,
    unless a filter leaves gaps: then offsets count from 0 and progress is adjusted. Only log
    positions and offset ids are new. This store is only read and may be in use. OUT appears once
    it is whole.

    A topic:                   rmqctl store carve ../orders -t orders
    One day of it, masked:     rmqctl store carve ../day -t orders --from 2026-01-31 \
                                 --to 2026-02-01 --mask 'json.who.email=hash,keys=hash'
    A group and its topics:    rmqctl store carve ../billing -g billing
    Its dead letters only:     rmqctl store carve ../dead -t %DLQ%billing

    RULES are those of 'message export'. Masked values are nowhere in the files of OUT.
    """
    from rmqctl.admin import store
    from rmqctl.cli.change_steps import run_change
    from rmqctl.message.exchange.masking import given_rules, unmatched
    from rmqctl.store.phases import Phases
    from storage.config import SMALL_STORE

    from .masks import RuleMask

    cli = context_of(ctx)
    if not topic and not group:
        raise UsageProblem("give --topic or --group")
    rules = given_rules(cli, mask, mask_key)
    chosen = message_filter(cli, changes=True)
    target = expanded(out).absolute()
    with view_of(cli) as view, Phases(cli) as phase:
        change = store.carve(
            view,
            target,
            topics=topic or (),
            groups=group or (),
            chosen=chosen,
            mask=RuleMask(rules) if rules else None,
            config=SMALL_STORE if small else None,
            now_ms=cli.now_ms,
            warn=cli.warn,
            phase=phase,
        )
        done = run_change(cli, change)
    if not done:
        return
    for sentence in unmatched(rules):
        cli.warn(sentence)
    cli.say(f"created the store {target}")
    if change.lost:
        raise PartlyDone(
            f"{counted(change.lost, 'message')} could not be read or masked; the others are in "
            f"{target}"
        )
