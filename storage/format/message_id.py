"""The two ids of a message.

offsetMsgId, made by the broker: store host and commit log offset in upper-case hex, 32 digits for
an IPv4 host, 56 for IPv6 (MessageDecoder.createMessageId). UNIQ_KEY, made by the client
(MessageClientIDSetter), upper-case hex of

    0            4 or 16   +2            +4                      +4         +2
    +------------+---------+-------------+-----------------------+----------+
    | client ip  | pid     | loader hash | ms since month start  | counter  |
    +------------+---------+-------------+-----------------------+----------+
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, overload

from storage import native

if TYPE_CHECKING:
    from datetime import tzinfo

    from .prepared import Ints

_TAIL: Final = Struct(">HIIH")
_COUNTERS: Final = 1 << 16
_COUNTER_DIGITS: Final = 4
_CLOCK_STEP_MS: Final = 1_000_000
_LOW_DIGITS: Final = [b"%02X" % n for n in range(256)]
_HEX: Final = [digits.decode() for digits in _LOW_DIGITS]
"""By byte: looking bytes up takes less than formatting a number."""


def offset_msg_id(store_host: bytes, commitlog_offset: int) -> str:
    """Make the broker's id from a packed store host (8 or 20 bytes) and a commit log offset."""
    return f"{store_host.hex().upper()}{commitlog_offset & 0xFFFFFFFFFFFFFFFF:016X}"


def offset_msg_ids_pure(store_host: bytes, commitlog_offsets: Ints) -> str:
    """Make the broker's ids of many messages, joined by commas."""
    return ",".join([offset_msg_id(store_host, int(offset)) for offset in commitlog_offsets])


offset_msg_ids: Final = native.form("offset_msg_ids", offset_msg_ids_pure)


def parse_offset_msg_id(msg_id: str) -> tuple[bytes, int]:
    """Split the broker's id into packed store host and commit log offset, else ValueError."""
    if len(msg_id) not in (32, 56):
        raise ValueError(f"{msg_id!r} is no offsetMsgId: it needs 32 or 56 hex digits")
    try:
        data = bytes.fromhex(msg_id)
    except ValueError:
        data = b""
    if len(data) * 2 != len(msg_id):  # fromhex skips blanks
        raise ValueError(f"{msg_id!r} is no offsetMsgId: it is not hexadecimal")
    return data[:-8], int.from_bytes(data[-8:], "big", signed=True)


class IdColumn(Sequence[bytes]):
    """UNIQ_KEYs of one length as one piece of bytes: an object a message would cost more."""

    __slots__ = ("joined", "width")

    def __init__(self, joined: bytes, width: int) -> None:
        self.joined = joined
        self.width = width

    def __len__(self) -> int:
        return len(self.joined) // self.width

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return [self[number] for number in numbers]
        start = numbers * self.width
        return self.joined[start : start + self.width]

    def texts(self) -> list[str]:
        """Give all as str."""
        text, width = self.joined.decode("ascii"), self.width
        return [text[start : start + width] for start in range(0, len(text), width)]


class UniqueIds:
    """Makes UNIQ_KEYs; one for a process, safe to share among its threads.

    ``ip`` has 4 or 16 bytes; ``loader_hash`` distinguishes generators of one process id (Java uses
    its class loader's hashCode). ``tz`` None means the machine's time zone: the time field
    counts from the start of the month *there*. Ids differ also if the clock stands still, or steps
    back by less than 1,000 seconds. A forked child needs its own generator. Raises ValueError for
    an address of another length.
    """

    def __init__(self, ip: bytes, pid: int, loader_hash: int, tz: tzinfo | None = None) -> None:
        if len(ip) not in (4, 16):
            raise ValueError(f"an IP address has 4 or 16 bytes, not {len(ip)}")
        fixed = (
            ip + (pid & 0xFFFF).to_bytes(2, "big") + (loader_hash & 0xFFFFFFFF).to_bytes(4, "big")
        )
        self._fixed: Final = fixed.hex().upper()
        self._tz: Final = tz
        self._lock: Final = Lock()  # guards everything below
        self._month_start = self._month_end = 0
        self._counter = 0
        self._now = self._tick = -1  # the clock's last answer; the ms that ids are made for
        self._left = 0  # ids that may still be made for _tick
        self._time = 0  # since the month began

    def next(self, now_ms: int) -> str:
        """Make one id for a message of this moment."""
        with self._lock:
            if now_ms != self._now or not self._left:
                self._move(now_ms)
            self._left -= 1
            counter = self._counter
            self._counter = counter + 1 & 0xFFFF
            return unique_id(self._fixed, self._time, counter)

    def take(self, count: int, now_ms: int) -> IdColumn:
        """Make ``count`` ids as ASCII, in the order in which ``next`` would have made them."""
        made = 0
        pieces: list[bytes] = []
        width = len(self._fixed) + 12
        with self._lock:
            if count > 0 and now_ms != self._now:
                self._move(now_ms)
            first = self._counter
            if 0 < count <= self._left and first + count < _COUNTERS:  # nearly always
                self._left -= count
                self._counter = first + count
                prefix = unique_id(self._fixed, self._time, 0)[:-_COUNTER_DIGITS].encode()
                return IdColumn(numbered(prefix, first, first + count), width)
            while made < count:
                if not self._left:
                    self._move(now_ms)
                first = self._counter
                block = min(count - made, self._left, _COUNTERS - first)
                prefix = unique_id(self._fixed, self._time, 0)[:-_COUNTER_DIGITS].encode()
                pieces.append(numbered(prefix, first, first + block))
                made += block
                self._left -= block
                self._counter = first + block & 0xFFFF
        return IdColumn(b"".join(pieces), width)

    def _move(self, now_ms: int) -> None:
        """Go on to a later millisecond, never back: the counter wraps within one otherwise."""
        self._now = now_ms
        if now_ms > self._tick or now_ms < self._tick - _CLOCK_STEP_MS:
            self._tick = now_ms
            self._left = _COUNTERS
        elif not self._left:
            self._tick += 1
            self._left = _COUNTERS
        if not self._month_start <= self._tick < self._month_end:
            self._month_start, self._month_end = month_bounds(self._tick, self._tz)
        self._time = self._tick - self._month_start


def _unique_id(fixed: str, time: int, counter: int) -> str:
    """Append the digits of a time and a counter to the fixed part of a generator's ids."""
    high = f"{_HEX[time >> 24 & 0xFF]}{_HEX[time >> 16 & 0xFF]}"
    low = f"{_HEX[time >> 8 & 0xFF]}{_HEX[time & 0xFF]}"
    return f"{fixed}{high}{low}{_HEX[counter >> 8]}{_HEX[counter & 0xFF]}"


unique_id: Final = native.form("unique_id", _unique_id)


def _numbered(prefix: bytes, first: int, end: int) -> bytes:
    """Append counters below 65,536, of four digits, to the prefix; the ids are joined."""
    return b"".join([b"%b%04X" % (prefix, counter) for counter in range(first, end)])


numbered: Final = native.form("numbered", _numbered)


def month_bounds(now_ms: int, tz: tzinfo | None = None) -> tuple[int, int]:
    """Give start and end (exclusive) of the month that holds ``now_ms``, in ms; local time zone."""
    from datetime import datetime

    today = datetime.fromtimestamp(now_ms / 1000, tz)
    start = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    year, month = (start.year, start.month + 1) if start.month < 12 else (start.year + 1, 1)
    end = start.replace(year=year, month=month)
    return int(start.timestamp()) * 1000, int(end.timestamp()) * 1000


class UniqueIdParts(NamedTuple):
    """The parts of a UNIQ_KEY. ``born_timestamp`` is a guess: the id does not hold its month."""

    ip: bytes
    pid: int
    loader_hash: int
    born_timestamp: int
    counter: int


def decode_unique_id(unique_id: str, now_ms: int, tz: tzinfo | None = None) -> UniqueIdParts:
    """Take a UNIQ_KEY apart; ValueError if it has not 32 or 56 hex digits.

    The month is taken as the current one, or the one before if the time would lie in the future
    (MessageClientIDSetter.getNearlyTimeFromID).
    """
    try:
        data = bytes.fromhex(unique_id)
    except ValueError:
        data = b""
    if len(data) not in (16, 28) or len(data) * 2 != len(unique_id):
        raise ValueError(f"{unique_id!r} is no UNIQ_KEY: it needs 32 or 56 hex digits")
    pid, loader_hash, span, counter = _TAIL.unpack(data[-12:])
    start, _ = month_bounds(now_ms, tz)
    if start + span >= now_ms:
        start, _ = month_bounds(start - 1, tz)
    return UniqueIdParts(data[:-12], pid, loader_hash, start + span, counter)
