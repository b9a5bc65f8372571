"""Messages that groups will consume again, and delayed messages.

    Retries             the retries of one group: rows, those that wait, those that are ready
    find, life          one message of a group, and all its attempts
    agenda              when delayed messages and retries are due, by delay level and topic
    delayed_messages    each message that waits in the delay topic
    send_now            deliver waiting retries before they are due
    make_dead           turn waiting retries into dead letters

The last two return a Change. Arguments of the same name are alike in all of them:

    view, broker     the files of the store, and a broker over it; read only is enough
    wanted, chosen   a MessageFilter; or a MessageSelection: ids, else a filter
    now_ms           the time from which ages count; default: now
    warn             called with sentences about doubtful facts
    left_out         called with a sentence for each message that cannot be read and is left out
    java_check       refuses beside a Java broker; called right before the write
    open_writer      opens the store for writing; default: in this process
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqctl.admin.lazy_names import lazy_names

if TYPE_CHECKING:
    from .due_list import agenda as agenda, delayed_messages as delayed_messages
    from .early_delivery import (
        EarlyDelivery as EarlyDelivery,
        make_dead as make_dead,
        send_now as send_now,
    )
    from .lookup import find as find
    from .retries import Retries as Retries
    from .timeline import life as life

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "due_list": ("agenda", "delayed_messages"),
        "early_delivery": ("EarlyDelivery", "make_dead", "send_now"),
        "lookup": ("find",),
        "retries": ("Retries",),
        "timeline": ("life",),
    },
)
