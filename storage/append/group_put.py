"""Single messages of many threads that must be on the device: appended and synced together.

A thread that comes while no group is being put becomes the leader: it takes the write lock, appends
its message, syncs, and returns. A thread that comes meanwhile leaves its message and sleeps. When
that sync is over, one of these threads appends all messages that were left, under the write lock
once, does one sync for them, and wakes the others. If each thread took the write lock, the threads
would pass the interpreter to each other some twenty times a message, which takes longer than the
device does.

A message is acknowledged after a sync that covers it, as if its own thread had done everything. If
the leader fails, each of the others goes on by itself from the state of its message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from storage.coordination.shared_state import Word
from storage.errors import (
    CorruptFileError,
    InvalidMessageError,
    StoreBrokenError,
    StoreNotWritableError,
)
from storage.results import PutMessageResult, PutMessageStatus

if TYPE_CHECKING:
    from storage.coordination.wakeup import Notifier
    from storage.format.encode import MessageInner
    from storage.session import Session

    from .flush import Flusher

_MOST_TOGETHER: Final = 64
"""Messages that are appended in one go: other processes wait for the write lock meanwhile."""
_FAILED: Final = Word.FAILED
_STAGE: Final = Word.STAGE
_LOG_END: Final = Word.LOG_END
_PUT_OK: Final = PutMessageStatus.PUT_OK
_OwnError = InvalidMessageError | CorruptFileError | StoreNotWritableError
"""What may refuse one message of a group before anything of it is written."""


class _State(Enum):
    """The state of a message."""

    LEFT = auto()
    APPENDING = auto()
    """Or a leader had it, and did not come back."""
    APPENDED = auto()
    ANSWERED = auto()


class _Put:
    __slots__ = ("by", "error", "group", "message", "result", "state", "woken")

    def __init__(self, message: MessageInner) -> None:
        self.message = message
        self.state = _State.LEFT
        self.result: PutMessageResult | None = None
        self.error: _OwnError | None = None
        self.group: list[_Put] = []  # of a leader: the other puts of its group
        self.by: _Put | None = None  # the leader that has taken it into its group
        self.woken = threading.Lock()
        self.woken.acquire()

    def answer(self) -> PutMessageResult:
        """Give the result of the put, or raise its error."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


class GroupPut:
    """Puts single messages for all threads of a process. Safe for threads.

    ``recover_from`` puts the files in order after an error. ``at_once`` appends a message in one
    step (FastAppender.put_alone), ``alone`` puts one by itself.
    """

    def __init__(
        self,
        session: Session,
        flusher: Flusher,
        ringer: Notifier,
        clock: Callable[[], int],
        *,
        recover_from: Callable[[BaseException, int | None], None],
        note_full_index: Callable[[], None],
        at_once: Callable[[MessageInner], PutMessageResult | None] | None,
        alone: Callable[[MessageInner], PutMessageResult],
    ) -> None:
        self._write_lock = session.write_lock
        self._write_lock.never_bias()  # other processes use it during our sync
        self._appender = session.appender
        self._append_one = session.appender.one.quick
        self._shared = session.shared
        self._clock = clock
        self._recover_from = recover_from
        self._note_full_index = note_full_index
        self._sync = flusher.sync_put
        self._ringer = ringer
        self._at_once = at_once
        self._alone = alone
        self._timeout = flusher.timeout
        self._lock = threading.Lock()  # guards the two fields below; held for no time
        self._leader: _Put | None = None
        self._left: list[_Put] = []

    @property
    def waiting(self) -> int:
        """Number of messages that no leader has taken."""
        return len(self._left)

    def put(self, message: MessageInner) -> PutMessageResult:
        """Put a message; returns when the device has it.

        FLUSH_DISK_TIMEOUT if it is stored and the device takes longer than syncFlushTimeout.
        Raises what MessageStore.put_message raises.
        """
        own = _Put(message)
        try:
            try:
                return self._put(own)
            finally:
                self._leave(own)
        except BaseException:  # a signal may have come when it was about to leave
            self._leave(own)
            raise

    def _put(self, own: _Put) -> PutMessageResult:
        with self._lock:
            if self._leader is None:
                self._leader = own
            else:
                self._left.append(own)
        in_time = self._leader is own or self._sleep(own)
        if self._leader is own:
            return self._lead(own)
        return self._end_of(own, in_time=in_time)

    def _sleep(self, own: _Put) -> bool:
        """Wait to be woken; False if that takes too long and no leader will take ``own``, or its
        sync takes too long."""
        while not own.woken.acquire(timeout=self._timeout):
            with self._lock:
                if self._leader is own:
                    return True
                if own in self._left:
                    self._left.remove(own)
                    return False
                if self._leader is not own.by:
                    return True  # a signal ended its leader before the leader woke it
            if own.state is _State.APPENDED:
                return False
        return True

    def _end_of(self, own: _Put, *, in_time: bool) -> PutMessageResult:
        """Give the answer for a message that was left to other threads."""
        match own.state:
            case _State.ANSWERED:
                return own.answer()
            case _State.LEFT:
                return self._alone(own.message)
            case _State.APPENDING:
                raise StoreBrokenError(
                    "the thread that was storing this message with its own was interrupted; "
                    "it may be stored or not"
                )
            case _State.APPENDED:
                result = own.answer()
                late = PutMessageStatus.FLUSH_DISK_TIMEOUT
                return _with_status(
                    result, self._sync(self._shared.words[_LOG_END]) if in_time else late
                )

    def _lead(self, own: _Put) -> PutMessageResult:
        if not self._left and self._append_at_once(own):  # a later message is for the next leader
            result = _with_status(own.answer(), self._sync(self._shared.words[_LOG_END]))
            if result.status is _PUT_OK and self._ringer.has_waiters():
                self._ringer.wake_for(own.message.topic)
            return result
        with self._lock:
            taken = self._left[: _MOST_TOGETHER - 1]
            for put in taken:
                put.by = own
            own.group, self._left = taken, self._left[_MOST_TOGETHER - 1 :]
        group = [own, *taken]
        with self._write_lock.held():
            self._append_all(group)
        self._acknowledge(group, self._sync(self._shared.words[_LOG_END]))
        return own.answer()

    def _append_at_once(self, put: _Put) -> bool:
        """Append a message without a group; False: nothing is done.

        After the device all caches are cold: the path through the write lock takes several times as
        long.
        """
        if self._at_once is None:
            return False
        try:
            put.result = self._at_once(put.message)
        except OSError as error:
            with self._write_lock.held():
                self._recover_from(error, None)
            raise
        return put.result is not None

    def _append_all(self, group: list[_Put]) -> None:
        """Append under the write lock."""
        for put in group:
            self._append(put)
        if self._appender.index.full:
            self._note_full_index()

    def _append(self, put: _Put) -> None:
        words, appender = self._shared.words, self._appender
        put.state = _State.APPENDING
        begin = words[_LOG_END]
        try:
            if words[_FAILED] or words[_STAGE]:
                appender.get_ready()
            now = self._clock()
            put.result = self._append_one(put.message, now)
            if put.result is None:
                put.result = appender.append_message(put.message, now)
        except BaseException as error:
            refusal = self._own_error(error, begin)
            if refusal is None:
                raise
            put.error = refusal  # the others of the group are stored, and go on
        put.state = _State.APPENDED

    def _own_error(self, error: BaseException, begin: int) -> _OwnError | None:
        """The error of one message of which nothing is written; None if it may be that of others.

        ``begin``: where the log ended before it. Raises what ``recover_from`` does.
        """
        words = self._shared.words
        try:
            self._recover_from(error, begin)
        except StoreNotWritableError as not_begun:
            error = not_begun
        is_untouched = words[_LOG_END] == begin and not words[_STAGE] and not words[_FAILED]
        return error if is_untouched and isinstance(error, _OwnError) else None

    def _acknowledge(self, group: list[_Put], status: PutMessageStatus) -> None:
        topics = set()
        for put in group:
            if put.result is not None:
                put.result = _with_status(put.result, status)
                if put.result.status is _PUT_OK:
                    topics.add(put.message.topic)
        if topics and self._ringer.has_waiters():
            self._ringer.notify(topics)
        for put in group:
            put.state = _State.ANSWERED

    def _leave(self, own: _Put) -> None:
        """Wait no longer, lead no longer: wake the threads that wait for ``own``; one of those that
        came since leads next. Twice is fine."""
        with self._lock:
            if self._leader is own and not self._left and not own.group:
                self._leader = None  # nearly always
                return
            if own in self._left:
                self._left.remove(own)
            if self._leader is not own:
                return
            group = [*self._left[:1], *own.group]
            following = self._left[0] if self._left else None
            # At once: if a signal comes now, they wake by themselves when their time is over.
            self._left, self._leader = self._left[1:], following
        for put in group:
            put.woken.release()
        own.group = []


def _with_status(result: PutMessageResult, status: PutMessageStatus) -> PutMessageResult:
    """Give the result with the status of its sync."""
    if status is _PUT_OK or result.status is not _PUT_OK:
        return result
    return result._replace(status=status)
