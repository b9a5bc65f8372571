"""The result of ``bench``."""

from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from rmqctl.output.fields import OmitNull

if TYPE_CHECKING:
    from .histogram import Histogram

PERCENTILES: Final = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99_9": 99.9, "p99_99": 99.99}


class BenchResult(NamedTuple):
    """What a load measured, after the warm-up. Latencies are in microseconds."""

    topic: Annotated[str, "the topic"]
    queues: Annotated[int, "its queues"]
    flush: Annotated[str | None, OmitNull("SYNC_FLUSH: acknowledged after a sync; or ASYNC_FLUSH")]
    threads: Annotated[int | None, OmitNull("threads that sent")]
    batch: Annotated[int | None, OmitNull("messages per send")]
    pull: Annotated[int | None, OmitNull("most messages per pull")]
    target_rate: Annotated[float | None, OmitNull("wanted messages per second")]
    sent: Annotated[int | None, OmitNull("messages that were acknowledged")]
    sent_bytes: Annotated[int | None, OmitNull("bytes of their bodies")]
    send_rate: Annotated[float | None, OmitNull("messages per second, first send to last ack")]
    rate_error: Annotated[
        float | None,
        OmitNull("largest difference to the wanted rate in a whole second; 0.01 is 1 %"),
    ]
    missed: Annotated[
        int | None, OmitNull("messages that were due and not sent: the rate was too high")
    ]
    not_flushed: Annotated[int | None, OmitNull("sent messages whose sync was not confirmed")]
    pacing_us: Annotated[
        dict[str, Any] | None,
        OmitNull("from when a send could begin to its start: the load's own part of the latencies"),
    ]
    ack_us: Annotated[
        dict[str, Any] | None,
        OmitNull("from when a message was due to its acknowledgement (no coordinated omission)"),
    ]
    received: Annotated[int | None, OmitNull("messages that were read, with those of the warm-up")]
    received_bytes: Annotated[int | None, OmitNull("bytes of their bodies")]
    receive_rate: Annotated[float | None, OmitNull("messages per second, first pull to last")]
    end_to_end_us: Annotated[
        dict[str, Any] | None,
        OmitNull("from when a message was due to when a reader had it; null if not measured"),
    ]


def percentiles(histogram: "Histogram") -> dict[str, Any] | None:
    """The percentiles of a histogram of ns in whole microseconds, rounded up; None if empty."""
    if not histogram.count:
        return None
    found = {name: _us(histogram.percentile(at) or 0) for name, at in PERCENTILES.items()}
    mean = histogram.mean or 0
    return {
        "count": histogram.count,
        "mean": round(mean / 1000, 1),
        **found,
        "max": _us(histogram.largest),
    }


def rate_of(messages: int, begun: int | None, ended: int) -> float | None:
    """Messages per second between two times in ns; None if they are not known or equal."""
    if begun is None or ended <= begun:
        return None
    return round(messages * 1e9 / (ended - begun), 1)


def _us(nanoseconds: int) -> int:
    return -(-nanoseconds // 1000)
