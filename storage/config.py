"""Settings of a store: names and defaults of RocketMQ's MessageStoreConfig, in Python's form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, Self

from .format.delay import parse_delay_levels
from .format.shapes import MAX_INT, MAX_LONG
from .frozen_settings import FrozenSettings

FROM_ZERO: Final = (0, MAX_INT)
"""The range of an int of Java's, below which nothing is meant."""
FROM_ONE: Final = (1, MAX_INT)
"""The range of what may not be zero: a service that waits 0 ms would take a whole processor."""
PER_CENT: Final = (0, 100)
CQ_STORE_UNIT_SIZE = 20
INDEX_HEADER_SIZE = 40


class FlushDiskType(StrEnum):
    """When a put is acknowledged: before (ASYNC_FLUSH) or after (SYNC_FLUSH) the device has it."""

    ASYNC_FLUSH = "ASYNC_FLUSH"
    SYNC_FLUSH = "SYNC_FLUSH"


class StoreConfig(FrozenSettings):
    """Settings of a store; immutable. Sizes are bytes, times milliseconds unless named otherwise.

    The first five fields fix the length of files and hold for the life of a store; they are
    recorded in ``<store>/rmqctl/`` for the next opener, or detected from the files.
    """

    mapped_file_size_commit_log: int = 1 << 30
    """Length of a commit log file (mappedFileSizeCommitLog)."""
    mapped_file_size_consume_queue: int = 300_000 * CQ_STORE_UNIT_SIZE
    """Length of a consume queue file; a multiple of 20 (mappedFileSizeConsumeQueue)."""
    max_hash_slot_num: int = 5_000_000
    """Hash slots of an index file (maxHashSlotNum)."""
    max_index_num: int = 20_000_000
    """Entries of an index file; entry 0 is never used, so it holds one key less (maxIndexNum)."""
    message_index_enable: bool = True
    """Whether keys are indexed (messageIndexEnable)."""

    flush_disk_type: FlushDiskType = FlushDiskType.ASYNC_FLUSH
    """Durability of an acknowledgement (flushDiskType)."""
    flush_interval_commit_log_ms: int = 500
    """How long written bytes may wait for a background sync (flushIntervalCommitLog)."""
    flush_consume_queue_thorough_interval_ms: int = 60_000
    """How often queues are synced and the checkpoint is written."""
    sync_flush_timeout_ms: int = 5_000
    """How long a synchronous put waits before it answers FLUSH_DISK_TIMEOUT (syncFlushTimeout)."""

    max_message_size: int = 4 << 20
    """Largest body as stored (maxMessageSize); a whole record may be 64 KiB larger."""
    max_msgs_num_batch: int = 64
    """Most hits of a query by key (maxMsgsNumBatch)."""
    max_transfer_count_in_memory: int = 32
    """Most messages of one read (maxTransferCountOnMessageInMemory)."""
    max_transfer_bytes_in_memory: int = 256 << 10
    """Most record bytes of one read; the first message always fits (maxTransferBytesOn...)."""
    max_filter_message_size: int = 16_000
    """Bytes of consume queue that one filtered read scans at least (maxFilterMessageSize)."""
    max_inflated_body_size: int = 64 << 20
    """Largest body after decompression; rmqctl's own guard, RocketMQ has none."""

    file_reserved_time_hours: int = 72
    """Age at which a commit log file may be deleted (fileReservedTime)."""
    delete_when: str = "04"
    """Local hours, ';'-separated, in which old files are deleted (deleteWhen)."""
    disk_max_used_space_ratio: int = 75
    """Per cent of the disk above which old files are deleted at any hour."""
    clean_file_forcibly_enable: bool = False
    """Whether files are deleted early on a nearly full disk (cleanFileForciblyEnable, there true):
    rmqctl refuses writes instead, see ``min_free_bytes``."""
    disk_space_clean_forcibly_ratio: float = 0.85
    """Share of the disk above which they are deleted early."""
    min_free_bytes: int = 256 << 20
    """Free bytes below which rmqctl refuses writes with SERVICE_NOT_AVAILABLE."""

    message_delay_level: str = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    """Delays of levels 1.. (messageDelayLevel)."""
    enable_multi_dispatch: bool = False
    """Whether INNER_MULTI_DISPATCH puts a record into further queues (enableMultiDispatch)."""
    default_query_max_num: int = 32
    """Most hits of a query by unique id (defaultQueryMaxNum)."""

    def __post_init__(self) -> None:
        """Check bounds; raises ValueError that names the field."""
        log = self.mapped_file_size_commit_log
        if not 1024 <= log <= MAX_INT:
            raise ValueError(f"mapped_file_size_commit_log must be 1024..{MAX_INT}, not {log}")
        unit = self.mapped_file_size_consume_queue
        if not 0 < unit <= MAX_INT or unit % CQ_STORE_UNIT_SIZE:
            raise ValueError(
                "mapped_file_size_consume_queue must be a positive multiple of 20 up to "
                f"{MAX_INT}, not {unit}"
            )
        for name, least in (("max_hash_slot_num", 1), ("max_index_num", 2)):
            if not least <= (value := getattr(self, name)) <= MAX_INT:
                raise ValueError(f"{name} must be {least}..{MAX_INT}, not {value}")
        if "message_delay_level" in self.__dict__:
            parse_delay_levels(self.message_delay_level)
        if "delete_when" in self.__dict__:
            try:
                parse_hours(self.delete_when)
            except ValueError as error:
                raise ValueError(f"delete_when: {error}") from None

    @property
    def index_file_size(self) -> int:
        """Length of an index file: header, slots and entries."""
        return INDEX_HEADER_SIZE + 4 * self.max_hash_slot_num + 20 * self.max_index_num

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> Self:
        """Make one of recorded values; names that this version does not know are left out.

        Raises ValueError for a value of another type or out of its bounds.
        """
        return cls(**recorded(cls, values, but=FIXED_FIELDS))

    RANGES = MappingProxyType(
        {
            "flush_interval_commit_log_ms": FROM_ONE,
            "flush_consume_queue_thorough_interval_ms": FROM_ZERO,
            "sync_flush_timeout_ms": FROM_ONE,
            "max_message_size": FROM_ONE,
            "max_msgs_num_batch": FROM_ONE,
            "max_transfer_count_in_memory": FROM_ONE,
            "max_transfer_bytes_in_memory": FROM_ONE,
            "max_filter_message_size": FROM_ZERO,
            "max_inflated_body_size": FROM_ONE,
            "file_reserved_time_hours": FROM_ZERO,
            "disk_max_used_space_ratio": PER_CENT,
            "min_free_bytes": (0, MAX_LONG),
            "default_query_max_num": FROM_ONE,
        }
    )
    _MAY_BE_EMPTY = frozenset({"delete_when"})  # no hour: nothing is deleted by the clock


def parse_hours(text: str) -> list[int]:
    """Read hours of a day as ``deleteWhen`` has them; ValueError for other text."""
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if not all(part.isascii() and part.isdigit() and int(part[:3]) < 24 for part in parts):
        raise ValueError(f"{text!r} is not a list of hours, such as 04 or 02;14")
    return [int(part) for part in parts]


def recorded(
    kind: type[FrozenSettings], values: Mapping[str, Any], but: Collection[str] = ()
) -> dict[str, Any]:
    """Take the settings of a class of settings out of a record, and leave out all other names."""
    return {
        field.name: values[field.name]
        for field in fields(kind)
        if field.name in values and field.name not in but
    }


def changed_settings(config: Any, but: Collection[str] = ()) -> dict[str, Any]:
    """Give the settings of an object that are not the defaults of its class, by name."""
    found = {}
    for field in fields(config):
        value = getattr(config, field.name)
        if field.name not in but and value != field.default:
            found[field.name] = value
    return found


FIXED_FIELDS: tuple[str, ...] = tuple(f.name for f in fields(StoreConfig))[:5]
"""Settings that hold for the life of a store, in the order of the class."""

SMALL_STORE = StoreConfig(
    mapped_file_size_commit_log=16 << 20,
    mapped_file_size_consume_queue=30_000 * CQ_STORE_UNIT_SIZE,
    max_hash_slot_num=50_000,
    max_index_num=200_000,
)
"""The settings of ``store init --small``."""
