"""``rmqctl broker``: the broker's services and settings."""

import threading
from typing import TYPE_CHECKING

import typer

from rmqctl.admin.broker.status_rows import BrokerStatus
from rmqctl.cli.context import Cli, context_of, prints
from rmqctl.cli.marks import Changes, changes
from rmqctl.cli.opening import open_for_reading, open_for_writing, warn_of_doubt
from rmqctl.errors import UsageProblem

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_LOOK_S = 1.0


@prints(BrokerStatus)
def status(ctx: typer.Context) -> None:
    """Show which processes run the timed services, the connected clients, and waiting messages.

    As JSON:                   rmqctl broker status -o json
    """
    cli = context_of(ctx)
    with open_for_reading(cli) as broker:
        from rmqctl.admin.broker.status import broker_status

        status = broker_status(broker)
        cli.one(status)
        lost = {
            level["level"]: level["waiting"]
            for level in status.delay_levels
            if level["delay_ms"] is None and level["waiting"] != 0
        }
        warn_of_doubt(cli, broker.view)
        if lost:
            from rmqctl.admin.retries.due_list import stranded_sentence

            cli.warn(stranded_sentence(lost))


@changes(Changes.RUNS)
def start(ctx: typer.Context) -> None:
    """Run the broker's timed services in the foreground until Ctrl-C or SIGTERM.

    The services deliver delayed messages and retries, check the half messages of transactions with
    their producers, write progress and delete expired files. In a store that rmqctl created,
    long-running consumers and producers run them too; use this command when there are none. One
    process per store runs them at a time; another one takes over when it ends. If a write fails,
    this command ends with an error: start it again.

    In a store that rmqctl did not create, this command delivers messages but deletes nothing.

    For an hour:               rmqctl broker start --timeout 1h
    As a service:              rmqctl broker start -S /data/store -v
    """
    cli = context_of(ctx)
    if cli.flag("dry_run"):
        raise UsageProblem(
            "broker start delivers and deletes while it runs, so it has no dry run; "
            "'rmqctl broker status' changes nothing"
        )
    from rmqctl.cli.logs import show_logs

    show_logs(cli)
    with open_for_writing(cli) as broker:
        broker.start_services(deliver=True)
        _serve(cli, broker)


def _serve(cli: Cli, broker: "EmbeddedBroker") -> None:
    """Print which process runs the services, until a signal comes.

    Raises StoreBrokenError when the store refuses writes: this process cannot run them any more.
    """
    from rmqctl.admin.services import service
    from storage.coordination.leadership import BROKER_SERVICES

    never = threading.Event()
    told: str | None = None
    # An election takes no time.
    never.wait(0.05)
    while True:
        if broker.store is not None:
            broker.store.check_usable()
        if broker.elected:
            words = (
                "this process runs delay delivery, transaction checks, cleaning and persisting "
                f"for {broker.view.root}; Ctrl-C stops it"
            )
        else:
            pid = service(broker.view, BROKER_SERVICES)["pid"]
            other = "another process" if pid is None else f"process {pid}"
            words = (
                f"{other} runs the services of {broker.view.root}; this one takes over when it ends"
            )
        if words != told:
            cli.say(words)
            told = words
        never.wait(_LOOK_S)
