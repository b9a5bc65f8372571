"""One look at the store of a call: how all chosen groups stand at one moment."""

from typing import TYPE_CHECKING

from analytics.looking import StoreLook, look_at
from rmqctl.lag.choosing import Choice, readers

if TYPE_CHECKING:
    from analytics.retention import Rules
    from broker.embedded import EmbeddedBroker
    from storage.configs.progress_samples import SampleHistory


def look(
    broker: "EmbeddedBroker",
    as_of: int,
    choice: Choice,
    history: "SampleHistory | None" = None,
    *,
    rules: "Rules | None" = None,
) -> StoreLook:
    """Look at the store now; see :func:`analytics.looking.look_at`.

    Raises what :func:`rmqctl.lag.choosing.readers` raises.
    """
    chosen = readers(broker, choice)
    return look_at(broker.view, broker.topics(), chosen, as_of, history, rules)
