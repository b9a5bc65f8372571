"""A look at each message that waits for its time."""

from collections.abc import Iterable
from typing import Any, Final

from rmqctl.admin import retries
from rmqctl.admin.retries.rows import DelayedRow

from .look import Look, Place, Source


def _each(source: Source, place: Place) -> Iterable[Any]:
    return retries.delayed_messages(source.view, left_out=source.notice)


EACH: Final = Look(
    "each",
    DelayedRow,
    _each,
    lambda place: ("retry", "agenda", "--each"),
    ("level", "queue_offset"),
)
