"""One snapshot of the lag of the selected groups in the store of a call."""

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
    """Read the store; see :func:`analytics.lag.lag_snapshot.look_at`.

    Without ``now`` it is a store as of a past time: later members and rates do not count.
    Raises the errors of :func:`rmqctl.lag.selection.readers`.
    """
    chosen = readers(broker, choice, members=now)
    if not now and history is None:
        from analytics.lag.trend import TREND_WINDOW_MS
        from storage.configs.offset_samples import OffsetSamples

        history = OffsetSamples(broker.view.root).read(as_of - TREND_WINDOW_MS)
        history.forget_after(as_of)
    return look_at(broker.view, broker.topics(), chosen, as_of, history, rules)
