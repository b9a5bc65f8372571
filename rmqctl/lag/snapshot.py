"""One look at the store of a call: how all chosen groups stand at one moment."""

from typing import TYPE_CHECKING

from analytics.lag.lag_snapshot import LagSnapshot, look_at
from analytics.lag.selection import Choice

from .selection import readers

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker
    from storage.configs.offset_samples import SampleHistory
    from storage.retention import RetentionRules


def look(
    broker: "EmbeddedBroker",
    as_of: int,
    choice: Choice,
    history: "SampleHistory | None" = None,
    *,
    rules: "RetentionRules | None" = None,
    now: bool = True,
) -> LagSnapshot:
    """Look at the store; see :func:`analytics.lag.lag_snapshot.look_at`.

    Not ``now``: it is a store as it was, whose members and rates since are nobody's business.
    Raises what :func:`rmqctl.lag.selection.readers` raises.
    """
    chosen = readers(broker, choice, members=now)
    if not now and history is None:
        from analytics.lag.trend import TREND_WINDOW_MS
        from storage.configs.offset_samples import OffsetSamples

        history = OffsetSamples(broker.view.root).read(as_of - TREND_WINDOW_MS)
        history.forget_after(as_of)
    return look_at(broker.view, broker.topics(), chosen, as_of, history, rules)
