"""The functions of the C files here."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Steady = tuple[Any, tuple[int, int, int, float] | None, int, int]
"""See storage.coordination.java_start."""

def crc32(data: bytes | memoryview, /) -> int:
    """The same as zlib.crc32."""

def crc32_ways(data: bytes | memoryview, /) -> list[int]:
    """The same by each function that this processor supports and that takes so many bytes."""

def scan_plain(
    buffer: memoryview, position: int, limit: int, most: int, check_crc: bool, /
) -> tuple[bytes, int]:
    """Sizes (int64) of plain records one after the other, and where they end; see
    storage.format.check."""

def take_records(
    log: memoryview,
    first: int,
    rows: memoryview,
    queue_ids: memoryview,
    fields: list[bytes],
    /,
) -> tuple[bytearray, bytearray]:
    """See storage.tools.carve.plain_records."""

def read_columns(
    buffer: memoryview,
    places: memoryview,
    sizes: memoryview,
    number_of: Callable[[bytes], tuple[int, int]],
    hash_of: Callable[[bytes], tuple[int, int]],
    columns: memoryview,
    /,
) -> tuple[bytes, bytes]:
    """Fill the matrix of a RecordBatch (storage.record_batch); rows and hashes of its keys."""

def chains_are_sound(slots: memoryview, entries: memoryview, /) -> bool:
    """Whether every entry but the first, unused one is reached once, from its own slot."""

def units_match(
    units: memoryview,
    rows: memoryview,
    offsets: memoryview,
    sizes: memoryview,
    tags_codes: memoryview,
    /,
) -> bool:
    """Whether unit i is that of record ``rows[i]`` of the columns (int64)."""

def tally(keys: Any, sizes: Any, starts: Any, /) -> bytes | None:
    """Rows of segment, key, count and sum (int64) of columns of int64, in the order of segment and
    key; segments begin at ``starts``, which ascend. None if a segment has more than 1,024 keys."""

def bind(message_class: type, /) -> None:
    """Set the class of messages; once, before ``read_run`` and ``read_at``."""

def read_run(
    units: bytes | memoryview,
    log: memoryview,
    first: int,
    topic: str,
    field: bytes,
    queue_id: int,
    queue_offset: int,
    count: int,
    byte_limit: int,
    unusual: int,
    /,
) -> tuple[list[Any], int]:
    """See RecordReader.read_run; ``log`` is a file of it that begins at ``first``."""

def readdressed(
    units: bytes,
    log: memoryview,
    first: int,
    field: bytes,
    queue_id: int,
    queue_offset: int,
    unusual: int,
    topic_name: str,
    queue_name: str,
    refused: str,
    /,
) -> tuple[bytearray, bytes, list[tuple[str, int]], bytes, int] | None:
    """See RecordReader.readdressed."""

def fill_places(
    places: Any,
    log: memoryview,
    first: int,
    buffers: tuple[bytearray | None, ...],
    rows: int,
    most_rows: int,
    size: int,
    most_bytes: int,
    row_bytes: int,
    host_text: Callable[[bytes], str],
    /,
) -> tuple[int, int, int, bool]:
    """See storage.read.place_table."""

def fill_table(
    units: memoryview,
    log: memoryview,
    first: int,
    name: bytes,
    queue_id: int,
    queue_offset: int,
    begin: int,
    end: int,
    buffers: tuple[bytearray | None, ...],
    rows: int,
    most_rows: int,
    size: int,
    most_bytes: int,
    row_bytes: int,
    host_text: Callable[[bytes], str],
    /,
) -> tuple[int, int, int, bool]:
    """Add messages of one log file to a table (storage.read.message_table): how many units were
    taken, rows and size of the table, whether it is full."""

def read_bodies(
    units: bytes | memoryview,
    log: memoryview,
    first: int,
    field: bytes,
    queue_id: int,
    queue_offset: int,
    byte_limit: int,
    unusual: int,
    /,
) -> tuple[list[bytes], bytes] | None:
    """See ColumnReader._block: bodies; times, places, sizes and flags, as many as units of each."""

def read_at(log: memoryview, position: int, limit: int, offset: int, unusual: int, /) -> Any:
    """See RecordReader.look; None for records that the reference must read."""

def number_table(
    data: bytes, start: int, make: Callable[[tuple[int, int | None]], Any] | None, /
) -> tuple[dict[str, dict[int, Any]], int] | None:
    """See storage.configs.number_tables; None for another form."""

def offsets_in(row: Mapping[int, tuple[int, int | None]], /) -> dict[int, int] | None:
    """See storage.configs.progress_table; None for an unusual row."""

def note_changes(
    rows: list[list[tuple[int, int | None]]], offsets: list[int | None], at: int, /
) -> None:
    """See storage.configs.offset_samples."""

def sums_known(
    queues: Any, /
) -> (
    tuple[int, int | None, int | None, int, int, int | None, int, int | None, Any, bool, bool]
    | None
):
    """See analytics.lag.totals; None where add_up must look at each queue."""

def rates_out(
    changes: list[Sequence[tuple[int, int | None]]],
    offsets: list[int | None],
    start: int,
    known_from: int | None,
    span_s: float | None,
    one: Callable[[Sequence[tuple[int, int | None]], int | None], float | None],
    /,
) -> list[float | None]:
    """See analytics.lag.trend."""

def unread_of(
    queues: list[Any],
    committed: list[int | None],
    changes: list[Sequence[tuple[int, int | None]]],
    as_of: int,
    patience: int,
    ok: Any,
    stuck: Any,
    one: Callable[[Any, int | None, Sequence[tuple[int, int | None]]], tuple[Any, ...]],
    /,
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """See analytics.lag.lag_snapshot."""

def parse_properties(data: bytes, /) -> dict[str, str]:
    """See storage.format.properties.parse_properties."""

def bind_message(message_class: type, /) -> None:
    """Set the class of messages to send; see storage.format.message."""

def bind_inner(inner_class: type, /) -> None:
    """Set the class of stored messages; see storage.format.plain_message."""

def make_late(pure: Callable[..., None], /) -> Any:
    """The ``properties`` of Message, which are made at the first read from then on; ``pure`` is its
    own ``__init__``. After ``bind_message``."""

class Made:
    """The base of Message: its ``__init__`` does what the one that was given to make_late does."""

    def __init__(self, *args: Any, **by_name: Any) -> None: ...

class CalledAtOnce(type):
    """The metaclass of Message: after ``make_late`` calls of Message go to compiled code."""

def look_at(message: Any, largest_body: int, /) -> int:
    """See storage.format.plain_message; the same for the others."""

def have_topic(messages: Any, topic: str, /) -> bool: ...
def look_over(messages: Any, topic: str, largest_body: int, /) -> tuple[int, int] | None: ...
def give_ids(messages: Any, ids: bytes, width: int, /) -> None: ...
def give_id(message: Any, unique_id: str, /) -> None: ...
def has_unique_id(message: Any, /) -> bool: ...
def inner_message(
    topic: str,
    queue_id: int,
    after: bytes,
    largest_body: int,
    origin: tuple[Any, ...],
    message: Any,
    unique_id: str,
    /,
) -> tuple[Any, str] | None: ...
def encode_sent(
    topic: str,
    queue_id: int,
    after: bytes,
    largest: int,
    origin: tuple[Any, ...],
    messages: Any,
    unique_ids: Any,
    /,
) -> tuple[bytearray, bytes, list[tuple[str, int]], bytes, str] | None: ...
def unique_id(fixed: str, time: int, counter: int, /) -> str:
    """See storage.format.message_id.unique_id."""

def numbered(prefix: bytes, first: int, end: int, /) -> bytes:
    """See storage.format.message_id.numbered."""

def offset_msg_ids(store_host: bytes, offsets: Any, /) -> str:
    """See storage.format.message_id.offset_msg_ids."""

Encoded = tuple[bytearray, bytes, list[tuple[str, int]], bytes]
"""Buffer, table, queues and key hashes: the arguments of PreparedTable."""

def encode_run(messages: list[Any], /) -> Encoded | None:
    """See storage.format.encode.prepare; None for messages that the reference must encode."""

def encode_column(
    topic: str,
    queue_ids: int | list[int],
    bodies: list[bytes],
    born_timestamp: int,
    born_host: bytes,
    store_host: bytes,
    properties: bytes,
    tags: str | None,
    unique_ids: bytes | None,
    keys: list[str] | None,
    flag: int,
    sys_flag: int,
    delay_ms: int,
    /,
) -> Encoded | None:
    """See storage.format.encode_column.prepare_column; ``unique_ids`` are joined."""

def encode_rows(
    topics: str | list[str],
    queue_ids: list[int],
    bodies: list[bytes],
    properties: list[bytes],
    tags: list[str | None],
    keys: list[str],
    flags: list[int],
    unique_ids: bytes,
    added: bytes,
    born_timestamp: int,
    born_host: bytes,
    store_host: bytes,
    sys_flag: int,
    /,
) -> Encoded | None:
    """See broker.send.rows; ``unique_ids`` are joined."""

def place(
    buffer: bytearray, table: bytes, offset: int, queue_offsets: list[int], store_timestamp: int, /
) -> tuple[list[int], list[int]]:
    """See PreparedRecords.place; gives the records' log offsets as well, first."""

def units(
    table: bytes, queues: int, offset: int, store_timestamp: int, /
) -> list[tuple[int, int, bytes]]:
    """See PreparedRecords.units."""

def key_places(table: bytes, offset: int, /) -> bytes:
    """See PreparedRecords.key_offsets."""

def key_columns(rows: list[tuple[str, Any, int, int]], /) -> tuple[bytes, bytes, bytes] | None:
    """See storage.index.pending_keys.columns_of; None for rows that the reference must read."""

def index_entries(
    mapped: Any, slots: int, hashes: Any, offsets: Any, timestamps: Any, /
) -> tuple[bytes, bytes] | None:
    """See storage.format.index_file.put_keys: the entries, and the argument of ``index_finish``."""

def index_finish(mapped: Any, rest: bytes, /) -> None:
    """Store slots and header of keys whose entries are in the file."""

class PagesAhead:
    """Makes blocks and pages of a mapped file in a thread before the stores; holds the map until
    ``end``."""

    def want(self, position: int, until: int, /) -> None: ...
    def want_first(self, until: int, /) -> None: ...
    def made_to(self, position: int, /) -> int: ...
    def stores_at(self, position: int, /) -> None: ...
    def end(self) -> None: ...

def pages_ahead(mapped: Any, fd: int, piece: int, lead: int, /) -> PagesAhead: ...

class Appending:
    """The compiled forms of FastAppender.append and BatchAppender.append, and their state."""

    def use_words(self, words: memoryview, /) -> None: ...
    def end(self) -> None:
        """Release the shared state, all maps and the arguments of guard(); nothing is put any
        more."""
    def use_log(
        self,
        mapped: Any,
        fd: int,
        first: int,
        limit: int,
        reserved: int,
        now_ms: int,
        largest: int,
        in_run: bool,
        pages: PagesAhead | None,
        /,
    ) -> None: ...
    def learn(
        self,
        topic: str,
        queue_id: int,
        topic_field: bytes,
        word: int,
        mapped: Any,
        first: int,
        last: int,
        /,
    ) -> None: ...
    def use_index(
        self, mapped: Any, name: int, slots: int, most_entries: int, first: int, end: int, /
    ) -> None: ...
    def append(self, message: Any, now_ms: int, body_crc: int | None = None, /) -> Any: ...
    def append_batch(
        self,
        buffer: bytearray,
        table: bytes,
        queues: list[tuple[str, int]],
        hashes: Any,
        now_ms: int,
        /,
    ) -> Any:
        """See BatchAppender: the result of Appender.append, or a number: the reason for none."""
    def guard(
        self,
        write_lock: Any,
        locked: Callable[[], bool],
        lock_file: Any,
        clock: Callable[[], int] | None,
        asked: Callable[[], None],
        notify: Callable[[str], None],
        exclusive: bool,
        syncs: bool,
        /,
    ) -> None: ...
    def put(self, message: Any, /) -> Any: ...
    def put_sent(self, message: Any, queue_id: int, way: Any, /) -> Any:
        """See MessageStore.put_sent."""

    def put_sent_batch(self, messages: Any, queue_id: int, way: Any, /) -> Any:
        """See MessageStore.put_sent_batch."""

    def put_batch(
        self, buffer: bytearray, table: bytes, queues: list[tuple[str, int]], hashes: Any, /
    ) -> Any:
        """See MessageStore.put: its result, or the time, or None."""

def appending(
    result_type: type, put_ok: Any, pending: Any, rows: list[Any], most_pending: int, /
) -> Appending: ...
def die_after(instants: int, /) -> None:
    """Kill this process after so many more stores to maps; for tests."""

def query_key(
    files: tuple[Any, ...],
    slots: int,
    entries: int,
    topic: str,
    key: str,
    begin: int,
    end: int,
    below: int,
    most: int,
    opened: dict[int, Any],
    file_size: int,
    log_end: int,
    unusual: int,
    /,
) -> tuple[list[Any], list[int], int, int] | None:
    """See storage.read.by_key: the arguments of QueryMessageResult; None for records that must be
    read one by one."""

def search_index(
    files: tuple[Any, ...],
    slots: int,
    entries: int,
    topic: str,
    key: str,
    begin: int,
    end: int,
    below: int | None,
    follow_slots: bool,
    most: int,
    hits: list[int],
    /,
) -> bool | None:
    """See _search in storage.index.reader; None for text that is no UTF-8."""

def nearest_at_once(
    steady: Steady,
    place: tuple[Any, ...],
    timestamp: int,
    /,
) -> int | None:
    """See TimeSearch.offset; None where it must be asked. ``place`` is a QueuePlace."""

def pull_at_once(
    steady: Steady,
    place: tuple[Any, ...],
    topic: str,
    field: bytes | None,
    queue_id: int,
    offset: int,
    most: int,
    byte_limit: int,
    unusual: int,
    status: Any,
    /,
) -> tuple[Any, int, int, int, list[Any], int, None] | None:
    """Fields of a GetMessageResult; None where MessageReader must look itself."""

def query_at_once(
    steady: Steady,
    common: tuple[Any, ...],
    files: tuple[Any, ...],
    topic: str,
    key: str,
    begin: int,
    end: int,
    most: int,
    /,
) -> tuple[list[Any], list[int], int, int] | None:
    """Fields of a QueryMessageResult; None where KeyReader.messages must look itself."""

def halve(
    units: memoryview,
    low: int,
    high: int,
    log_min: int,
    timestamp: int,
    file_size: int,
    at: Callable[[int], Any],
    /,
) -> int | None:
    """See storage.read.by_time; ``at`` gives the file of the log that begins at an offset."""

def uncovered(blocks: list[bytes], start: int, end: int, /) -> list[tuple[int, int]]: ...
def list_offsets(folders: list[str], file_size: int, /) -> list[list[int] | None]: ...
def read_each(
    paths: list[str], positions: list[int], counts: list[int], /
) -> list[bytes | None]: ...
def written_ends(
    folders: list[str], file_size: int, head: int, kept: int, /
) -> list[tuple[list[int], int, bytes, tuple[int, int, int] | None] | None]: ...
def changed_ns(fd: int, /) -> int:
    """The value of os.fstat(fd).st_ctime_ns."""

def notify(mapped: Any, wanted: int, /) -> bool: ...
def arm(mapped: Any, slot: int, topics: int, /) -> int: ...
def woken(mapped: Any, slot: int, seen: int, timeout_ms: int, /) -> bool: ...
def wake(mapped: Any, slot: int, /) -> None: ...
def wake_one(mapped: Any, at: int, /) -> int:
    """See storage.coordination.write_lock_line."""

def sleep_on_word(mapped: Any, at: int, seen: int, timeout_us: int, /) -> bool:
    """See storage.coordination.write_lock_line."""

def has_futex_wakers() -> bool:
    """Whether the other functions of wakeup.c work here, see storage.coordination.wakeup."""

def now_ms() -> int:
    """Milliseconds since the epoch."""
