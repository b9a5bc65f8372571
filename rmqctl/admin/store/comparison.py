"""The differences between two stores, or a store and a snapshot."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from rmqctl.admin.progress import Tick
from storage.configs.consumer_offsets import OffsetTable
from storage.configs.store_settings import read_store_settings
from storage.configs.subscription_groups import subscription_groups_file
from storage.files.checksum import no_tick
from storage.format.cq_unit import CQ_STORE_UNIT, CQ_STORE_UNIT_SIZE
from storage.format.crc import whole_crc32
from storage.format.sys_flag import MessageSysFlag
from storage.readonly import StoreView

from .snapshot_rows import StoreDiffRow

_UNITS: Final = 16_384


def diff(
    a: StoreView,
    b: StoreView,
    *,
    topics: Collection[str] = (),
    deep: bool = False,
    tick: Tick = no_tick,
) -> Iterator[StoreDiffRow]:
    """All differences: the log, settings, topics, groups, queues, messages, progress.

    ``topics`` limits the comparison to topics, without the log and the settings of the store.
    ``deep`` compares whole messages, else only sizes and tags. ``tick`` is called with the number
    of compared messages of a queue.
    """
    if not topics:
        yield from _values(
            "log",
            "commitlog",
            {"min_offset": a.log_min_offset(), "max_offset": a.log_max_offset()},
            {"min_offset": b.log_min_offset(), "max_offset": b.log_max_offset()},
        )
        yield from _settings(a, b)
        yield from _tables("group", _groups(a), _groups(b))
    yield from _tables("topic", _topics(a, topics), _topics(b, topics))
    for topic, queue_id in sorted({*a.queues(), *b.queues()}):
        if not topics or topic in topics:
            yield from _queue(a, b, topic, queue_id, deep=deep, tick=tick)
    yield from _progress(a.consumer_offsets(), b.consumer_offsets(), topics)


# -- settings ------------------------------------------------------------------------------------


def _settings(a: StoreView, b: StoreView) -> Iterator[StoreDiffRow]:
    ours, theirs = read_store_settings(a.root), read_store_settings(b.root)
    yield from _values("config", "store", ours.store, theirs.store)
    yield from _values("config", "broker", ours.broker, theirs.broker)


def _topics(view: StoreView, names: Collection[str]) -> dict[str, dict[str, Any]]:
    found = view.topics()
    return {n: found[n]._asdict() for n in found if not names or n in names}


def _groups(view: StoreView) -> dict[str, dict[str, Any]]:
    found = subscription_groups_file(view.root).read(0).items
    return {name: config._asdict() for name, config in found.items()}


def _tables(
    part: str, a: Mapping[str, dict[str, Any]], b: Mapping[str, dict[str, Any]]
) -> Iterator[StoreDiffRow]:
    for name in sorted({*a, *b}):
        if name in a and name in b:
            yield from _values(part, name, a[name], b[name])
        else:
            yield StoreDiffRow(part, name, None, None, "exists", name in a, name in b, None)


def _values(
    part: str,
    name: str,
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    queue_id: int | None = None,
) -> Iterator[StoreDiffRow]:
    for field in dict.fromkeys([*a, *b]):
        if a.get(field) != b.get(field):
            yield StoreDiffRow(part, name, queue_id, None, field, a.get(field), b.get(field), None)


def _progress(a: OffsetTable, b: OffsetTable, topics: Collection[str]) -> Iterator[StoreDiffRow]:
    for key in sorted({*a, *b}):
        if topics and key.rpartition("@")[0] not in topics:
            continue
        ours, theirs = a.get(key, {}), b.get(key, {})
        for queue_id in sorted({*ours, *theirs}):
            offsets = ours.get(queue_id), theirs.get(queue_id)
            if offsets[0] != offsets[1]:
                yield StoreDiffRow(
                    "offset", key, queue_id, None, "committed_offset", *offsets, None
                )


# -- messages ------------------------------------------------------------------------------------


def _queue(
    a: StoreView, b: StoreView, topic: str, queue_id: int, *, deep: bool, tick: Tick
) -> Iterator[StoreDiffRow]:
    ours, theirs = a.queue_bounds(topic, queue_id), b.queue_bounds(topic, queue_id)
    yield from _values("queue", topic, ours._asdict(), theirs._asdict(), queue_id)
    start = max(ours.min_offset, theirs.min_offset)
    end = min(ours.max_offset, theirs.max_offset)
    first: int | None = None
    different = 0
    for offset, count, places in _unlike(a, b, (topic, queue_id), start, end, deep=deep):
        different += len(places)
        if first is None and places:
            first = offset + places[0]
        tick(count)
    if first is not None:
        yield StoreDiffRow(
            "message",
            topic,
            queue_id,
            first,
            "content" if deep else "size or tag",
            _id_of(a, topic, queue_id, first),
            _id_of(b, topic, queue_id, first),
            f"the first of {different} that differ, of {end - start} that both have",
        )


def _unlike(
    a: StoreView, b: StoreView, queue: tuple[str, int], start: int, end: int, *, deep: bool
) -> Iterator[tuple[int, int, list[int]]]:
    """Blocks of a queue: start, length, and the messages that differ."""
    import numpy as np

    unit = np.dtype([("offset", ">i8"), ("size", ">i4"), ("code", ">i8")])
    reads = [_Contents(view) for view in (a, b)] if deep else []
    while start < end:
        count = min(_UNITS, end - start)
        blocks = [_units(view, queue, start, count) for view in (a, b)]
        count = min(len(block) for block in blocks) // CQ_STORE_UNIT_SIZE
        one, other = (np.frombuffer(block, unit, count) for block in blocks)
        differ = (one["size"] != other["size"]) | (one["code"] != other["code"])
        if deep:
            pairs = zip(one[~differ].tolist(), other[~differ].tolist(), strict=True)
            differ[~differ] = [reads[0].sum(*p[:2]) != reads[1].sum(*q[:2]) for p, q in pairs]
        yield start, count, np.flatnonzero(differ).tolist()
        start += count


def _units(view: StoreView, queue: tuple[str, int], offset: int, count: int) -> bytes:
    """Units of a queue; zeros if its file is missing."""
    found = view.unit_bytes(*queue, offset, count)
    return found or CQ_STORE_UNIT.pack(0, 0, 0)


class _Contents:
    """Checksums of the producers' part of messages, without offsets and store times."""

    def __init__(self, view: StoreView) -> None:
        self._log = view.files.apart().log

    def sum(self, place: int, size: int) -> int | None:
        """The checksum of a record; None if its file is gone."""
        within = place % self._log.file_size
        file = self._log.at(place - within)
        if file is None:
            return None
        record = bytes(file.view[within : within + size])
        flags = int.from_bytes(record[36:40], "big")
        born = 56 + 12 * bool(flags & MessageSysFlag.BORNHOST_V6_FLAG)
        times = born + 16 + 12 * bool(flags & MessageSysFlag.STOREHOSTADDRESS_V6_FLAG)
        told = record[16:20] + record[36:born] + record[times : times + 4] + record[times + 12 :]
        return whole_crc32(told)


def _id_of(view: StoreView, topic: str, queue_id: int, offset: int) -> str | None:
    unit = view.unit(topic, queue_id, offset)
    message = None if unit is None else view.message_of_unit(topic, queue_id, offset, unit)
    return None if message is None else message.msg_id
