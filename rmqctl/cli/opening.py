"""Opening the store of a call, for reading or for writing."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rmqctl.errors import NotFound

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.readonly import StoreView

    from .context import Cli


def open_for_reading(cli: "Cli") -> "EmbeddedBroker":
    """The broker over the call's store, read only: no lock, nothing written.

    NotFound (3) if there is no store.
    """
    from broker.embedded.broker import EmbeddedBroker

    _check_exists(cli)
    broker = EmbeddedBroker.open(cli.store.path, read_only=True)
    cli.opened.append(broker.view)
    return broker


def open_for_progress(cli: "Cli") -> "EmbeddedBroker":
    """As open_for_reading, for commands that show groups: warns if progress may be out of date.
    Raises CorruptFileError if progress cannot be read."""
    broker = open_for_reading(cli)
    try:
        warn_of_doubt(cli, broker.view)
    except BaseException:
        broker.close()
        raise
    return broker


def warn_of_doubt(cli: "Cli", *views: "StoreView") -> None:
    """Warn if the progress of groups in a store may be out of date. Raises CorruptFileError."""
    for view in views:
        doubt = view.progress_doubt()
        if doubt is not None:
            cli.warn(doubt)


def open_for_writing(
    cli: "Cli", changes: Mapping[str, Any] | None = None, *, create: bool = False
) -> "EmbeddedBroker":
    """The broker over the call's store, with its settings but for ``changes`` of StoreConfig's.

    With ``create`` the user's default store is created if it is missing and standard error is a
    terminal: cron and other services would fill a store that is not found later. A store that the
    user named must exist, else NotFound (3).
    """
    from broker.embedded.broker import EmbeddedBroker

    if create and not cli.store.named and not cli.store.path.exists():
        if not sys.stderr.isatty():
            raise NotFound(
                f"there is no store here and none in {cli.store.path}, which is created from a "
                "terminal only; create one with 'rmqctl store init DIR', and name it with "
                "--store DIR or RMQCTL_STORE=DIR"
            )
        from broker.new_store import create_store

        create_store(cli.store.path)
        cli.say(f"created the store {cli.store.path}")
    _check_exists(cli)
    store_config = None
    if changes:
        from storage.detect import detect_config

        store_config = detect_config(cli.store.path).with_(**changes)
    return EmbeddedBroker.open(cli.store.path, store_config=store_config)


def view_for_change(cli: "Cli") -> "StoreView":
    """The files of the call's store, for a change that does not open the store for writing: it
    neither recovers the log nor waits for the writers of messages.

    NotFound (3) if there is no store.
    """
    from storage.readonly import StoreView

    _check_exists(cli)
    return StoreView.open(cli.store.path)


def view_of(cli: "Cli") -> "StoreView":
    """The files of the call's store, for commands that need no broker; read only.

    NotFound (3) if there is no store.
    """
    view = view_for_change(cli)
    cli.opened.append(view)
    return view


def _check_exists(cli: "Cli") -> None:
    """Replaces the store's error about a missing folder if the user did not name one."""
    if not cli.store.named and not cli.store.path.exists():
        raise NotFound(
            f"there is no store here and none in {cli.store.path}; create one with "
            "'rmqctl store init DIR', or name one with --store DIR"
        )
