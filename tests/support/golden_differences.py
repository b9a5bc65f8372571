"""Where our answers about the golden stores are other ones than RocketMQ's, on purpose."""

from collections.abc import Callable
from typing import Any, NamedTuple

Row = dict[str, Any]

KEEPS_MORE = (
    "torn-bad-crc-middle-4.9",
    "torn-bad-crc-middle-5.3",
    "torn-no-blank-4.9",
)


class Difference(NamedTuple):
    """Rows of some stores in which our answer is another one, on purpose."""

    stores: tuple[str, ...]
    kinds: tuple[str, ...]
    applies: Callable[[Row], bool]
    reason: str


DIFFERENCES = (
    Difference(
        ("phantom-4.9",),
        ("bounds", "pull", "time"),
        lambda row: row["topic"] == "GoldenFull",
        "an all-zero queue file behind a full one is empty; 4.9 counts a bogus message in it",
    ),
    Difference(
        ("retention-4.9",),
        ("bounds", "pull"),
        lambda row: row["topic"] == "GoldenIdle",
        "a queue whose messages are all deleted has min = max, as in 5.3; 4.9 says 0 and hands "
        "out another topic's bytes",
    ),
    Difference(
        ("retention-5.3",),
        ("time",),
        lambda row: row["offset"] is None,
        "5.3 throws BufferUnderflowException for an empty queue; we give its min = max",
    ),
    Difference(
        KEEPS_MORE,
        ("log", "bounds", "pull", "time", "query"),
        lambda row: True,
        "a damaged record, or a lost blank record, does not end the log where whole records follow",
    ),
    Difference(
        ("torn-cq-all-missing-4.9",),
        ("pull", "time"),
        lambda row: True,
        "without queue files their length is unknown, and with it where a read or search stops",
    ),
    Difference(
        ("torn-no-index-4.9",),
        ("query",),
        lambda row: True,
        "a reader finds keys in the log where the index is missing; the seconds that times are "
        "rounded to begin elsewhere",
    ),
)


def allowed(store: str, kind: str, row: Row) -> bool:
    """Whether some difference covers a row of a store's manifest."""
    return any(
        store in difference.stores and kind in difference.kinds and difference.applies(row)
        for difference in DIFFERENCES
    )
