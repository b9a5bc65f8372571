"""The broker's timed services, run by commands that take longer."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

    from .context import Cli

AFTER_S: Final = 0.3
"""A command that runs for this long starts them; a quick command pays nothing for them."""


@contextmanager
def services_by_the_way(cli: "Cli", broker: "EmbeddedBroker") -> Iterator[None]:
    """Run them for the rest of a block that takes longer than that.

    In a store that rmqctl did not make, nothing is delivered.
    """

    def begin() -> None:
        from storage.errors import RocketMQError

        from .logs import show_logs

        show_logs(cli)
        try:
            broker.start_services()
        except (RocketMQError, OSError) as error:
            cli.warn(f"delayed messages are not delivered by this process: {error}")

    timer = threading.Timer(AFTER_S, begin)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
