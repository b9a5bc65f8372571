"""Waiting retries: delivered now, or made dead letters."""

from typing import Final

from rmqctl.admin.changes import Change

from .wish import Making, Wish

_KEY: Final = ("msg_id", "due_timestamp", "reconsume_times")


def end_waits(group: str, ids: tuple[str, ...], *, dead: bool) -> Wish:
    """Deliver retries to the group now, or make them dead letters."""
    verb = "dead" if dead else "now"

    def make(making: Making) -> Change:
        from rmqctl.admin import retries
        from rmqctl.admin.message_filter import MessageSelection

        return (retries.make_dead if dead else retries.send_now)(
            making.view,
            making.broker,
            group,
            MessageSelection(ids),
            now_ms=making.now_ms,
            warn=making.warn,
            left_out=making.warn,
            java_check=making.java_check,
        )

    return Wish(
        "make dead letters" if dead else "deliver now",
        f"retry {verb}",
        ("retry", verb, group, *ids),
        make,
        group,
        "the group",
        _KEY,
    )
