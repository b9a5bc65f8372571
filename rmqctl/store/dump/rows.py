"""The rows of ``store dump``."""

from typing import Annotated, Any, NamedTuple

from rmqctl.output.fields import OmitNull, Rank, Wide


class RecordDump(NamedTuple):
    """A piece of a commit log file."""

    position: Annotated[int, "log position of its first byte"]
    kind: Annotated[str, "MESSAGE, DAMAGED (a record), LOST (no record), BLANK or EMPTY", Rank.KEY]
    size: Annotated[int, "number of bytes", Rank.MAIN]
    problem: Annotated[str | None, "what is wrong with it"]
    topic: Annotated[str | None, "the topic"] = None
    queue_id: Annotated[int | None, "the queue"] = None
    queue_offset: Annotated[int | None, "its queue offset"] = None
    store_timestamp: Annotated[int | None, "when it was stored"] = None
    tags: Annotated[str | None, "the tag"] = None
    keys: Annotated[list[str] | None, "the keys"] = None
    msg_id: Annotated[str | None, "the unique id, else the offset id"] = None
    body_size: Annotated[int | None, "bytes of the body as stored"] = None
    body: Annotated[str | None, Wide("the body after decompression; null if it is not UTF-8")] = (
        None
    )
    body_base64: Annotated[str | None, OmitNull("the body as stored, if it is not text")] = None
    properties: Annotated[dict[str, str] | None, Wide("every property as stored")] = None
    physical_offset: Annotated[int | None, Wide("the position field of the record")] = None
    version: Annotated[int | None, Wide("1, or 2 for long topics of 5.x")] = None
    body_crc: Annotated[int | None, Wide("CRC-32 field of the record")] = None
    flag: Annotated[int | None, Wide("the producer's flag")] = None
    sys_flag: Annotated[int | None, Wide("compression, transaction, IPv6")] = None
    born_timestamp: Annotated[int | None, Wide("when the producer created it")] = None
    born_host: Annotated[str | None, Wide("the producer's address")] = None
    store_host: Annotated[str | None, Wide("the broker's address")] = None
    reconsume_times: Annotated[int | None, Wide("how often it was sent back")] = None
    prepared_transaction_offset: Annotated[int | None, Wide("queue offset of the half message")] = (
        None
    )


class HexDump(NamedTuple):
    """Some bytes, of one field if known."""

    position: Annotated[int, "position of the first byte in the file; for log files in the log"]
    size: Annotated[int, "number of bytes"]
    bytes: Annotated[str, "the bytes in hex; 00 ... stands for many zeros"]
    field: Annotated[str | None, "the field, by its name in FORMAT.md; null if unknown"]
    value: Annotated[str | None, "the decoded value; of text and unknown bytes the printable ones"]


class UnitDump(NamedTuple):
    """A unit of a consume queue file, or a run of empty units."""

    position: Annotated[int, "position of its first byte in the file"]
    kind: Annotated[str, "UNIT, FILLER, EMPTY or DAMAGED"]
    queue_offset: Annotated[int, "the (first) queue offset"]
    units: Annotated[int, "number of equal units"]
    commitlog_offset: Annotated[int | None, "log position of the record"] = None
    size: Annotated[int | None, "bytes of the record"] = None
    tags_code: Annotated[int | None, "hash of the tag, delivery time or ext address"] = None
    problem: Annotated[str | None, "what is wrong with it"] = None


class ExtUnitDump(NamedTuple):
    """A unit of a consumequeue_ext file."""

    position: Annotated[int, "position of its first byte in the file"]
    kind: Annotated[str, "UNIT, END, EMPTY or DAMAGED"]
    size: Annotated[int | None, "number of bytes"] = None
    tags_code: Annotated[int | None, "hash of the tag"] = None
    store_timestamp: Annotated[int | None, "when the message was stored"] = None
    filter_bit_map: Annotated[str | None, "filter bits, in hex"] = None
    problem: Annotated[str | None, "what is wrong with it"] = None


class IndexHeaderDump(NamedTuple):
    """The head of an index file."""

    begin_timestamp: Annotated[int, "store time of the first key's message"]
    end_timestamp: Annotated[int, "store time of the last key's message"]
    begin_phy_offset: Annotated[int, "log position of the first key's message"]
    end_phy_offset: Annotated[int, "log position of the last key's message"]
    hash_slot_count: Annotated[int, "slots in use"]
    index_count: Annotated[int, "number of the next free entry"]
    max_hash_slot_num: Annotated[int | None, "slots of the file; null if unknown"]
    max_index_num: Annotated[int | None, "entries of the file; null if unknown"]
    problem: Annotated[str | None, "what is wrong with it"]
    entries: Annotated[list[Any] | None, OmitNull("number, slot, key_hash, ... of each")] = None


class IndexEntryDump(NamedTuple):
    """A key in an index file."""

    number: Annotated[int, "its number, from 1 on"]
    slot: Annotated[int | None, "the slot of its hash"]
    key_hash: Annotated[int, "hash of topic#key"]
    commitlog_offset: Annotated[int, "log position of the record"]
    store_timestamp: Annotated[int, "when it was stored, in whole seconds after the first key"]
    previous: Annotated[int, "number of the previous entry of the slot, 0: none"]
    problem: Annotated[str | None, "what is wrong with it"]


class CheckpointDump(NamedTuple):
    """The checkpoint."""

    physic_msg_timestamp: Annotated[int | None, "the log is on the device up to this store time"]
    logics_msg_timestamp: Annotated[int | None, "so are the queues"]
    index_msg_timestamp: Annotated[int | None, "so are full index files"]
    master_flushed_offset: Annotated[int, "5.x only"]
    confirm_phy_offset: Annotated[int, "5.x only"]
    problem: Annotated[str | None, "what is wrong with the file"]


class PageDump(NamedTuple):
    """The shared state of the processes of a store."""

    words: Annotated[dict[str, int], "its words by name"]
    waiting: Annotated[list[int], "numbers of the armed waiters"]
    queues: Annotated[list[Any], "slot, topic, queue_id, next_offset, synced_offset of each"]
    problem: Annotated[str | None, "what is wrong with it"]


class PageQueueDump(NamedTuple):
    """A queue's slot of the shared state."""

    slot: Annotated[int, "its number"]
    topic: Annotated[str, "the topic"]
    queue_id: Annotated[int, "the queue"]
    next_offset: Annotated[int, "offset of the next message to be stored"]
    synced_offset: Annotated[int, "units before this offset are on the device"]
