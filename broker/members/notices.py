"""Notices, questions and answers between the brokers of one store, without a daemon.

Each broker that has clients keeps a process entry (storage.coordination.processes) and one thread
that sleeps until a control message comes. Nothing wakes while nothing happens. A control message to
a live broker is never lost, even if the sender is killed right after it.

A process entry is open before anything is published in it, so that its death is noticed from the
start. Its process notifies the others, and the process before it in the ring watches it. A process
that is notified by a newcomer that is dead already does the work that follows a death.

Threads of their own answer questions, because a listener may run for long.

A broker that is open for reading only may ask, too. Its entry is in no list and no ring: nothing is
published in it, and what the dead have left is not its to adopt or remove.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from broker.errors import BrokerError, BrokerSystemError, ResponseCode
from storage.coordination.failure_detector import FailureDetector
from storage.coordination.processes import ControlMessage, ProcessEntries, ProcessEntry, ProcessInfo
from storage.deadlines import MAX_CLOSE_S, Deadline, held_within

from .process_info_json import groups_of, topics_of

logger = logging.getLogger("rmqctl.broker")

PROCESSES: Final = "stations"
MEMBERS: Final = "members"
RESET: Final = "reset"
CHECK: Final = "check"
TOPICS: Final = "topics"
_QUESTION: Final = "question"
_ANSWER: Final = "answer"
_LIFE_S: Final = 0.1
"""Seconds between two looks whether the process lives that is asked, where no death is noticed."""

AFTER_FAILURE_S: Final = 1.0
ASK_TIMEOUT_MS: Final = 10_000
"""How long a client may take for an answer (Broker2Client, 10 s)."""


class _Asked:
    """A question that waits for its answer."""

    __slots__ = ("answer", "answered", "process_entry")

    def __init__(self, process_entry: str) -> None:
        self.process_entry = process_entry
        self.answered = threading.Event()
        self.answer: ControlMessage = {"error": "the process of the client has ended"}


class Notices:
    """This broker's process entry and its thread.

    ``on_notice`` takes control messages in the one thread; ``on_question`` answers in a thread of
    its own, in values ready for JSON; ``on_deaths`` gets the last published contents of dead
    processes, in any thread.
    """

    def __init__(
        self,
        root: Path,
        on_notice: Callable[[ControlMessage], None],
        on_question: Callable[[ControlMessage], Any],
        on_deaths: Callable[[list[ProcessInfo]], None],
        *,
        listed: bool = True,
    ) -> None:
        """With ``listed`` False it only asks, and gets nothing but answers."""
        self.processes = ProcessEntries(root)
        self._listed = listed
        self._on_notice = on_notice
        self._on_question = on_question
        self._on_deaths = on_deaths
        self._lock = threading.Lock()  # guards opening, closing and the table of questions
        self._looking = threading.Lock()  # one scan for dead processes at a time; before _lock
        self._process_entry: ProcessEntry | None = None
        self._watch: FailureDetector | None = None
        self._thread: threading.Thread | None = None
        self._to_self: deque[ControlMessage] = deque()
        self._asked: dict[int, _Asked] = {}
        self._questions = 0
        self._closed = False
        self._gone = False  # closed completely
        self._paused = threading.Event()  # set by ``close``

    @property
    def name(self) -> str | None:
        """Name of the process entry, None while there is none in the list."""
        process_entry = self._process_entry
        return process_entry.name if process_entry is not None and self._listed else None

    def open(self) -> None:
        """Make the process entry; does nothing from the second time on.

        Raises StoreNotWritableError, and RuntimeError if the system gives no thread: then there is
        no process entry.
        """
        with self._lock:
            if self._process_entry is not None or self._closed:
                return
            process_entry = ProcessEntry(self.processes, _own_info(), listed=self._listed)
            try:
                thread = threading.Thread(
                    target=self._run, args=(process_entry,), name="notices", daemon=True
                )
                thread.start()
                self._watch = FailureDetector(self.processes, process_entry.name, self.look_around)
                self._thread = thread
                self._process_entry = process_entry  # last: it marks the entry as complete
            except BaseException:
                with suppress(OSError):  # else the entry would stay without a process
                    process_entry.close()
                raise
        if self._listed:
            self.tell({"kind": PROCESSES})
            self.look_around()

    def say(self, clients: list[dict[str, Any]]) -> None:
        """Publish which clients are here, for all processes to read."""
        if self._process_entry is not None:
            self._process_entry.say({**_own_info(), "clients": clients})

    def tell(self, control_message: ControlMessage) -> None:
        """Send news to all process entries, this one too; equal pending ones are merged."""
        own = self.name
        for info in self.processes.living():
            if info.name != own:
                try:
                    self.processes.send(info.name, control_message, once=True)
                except OSError:  # the disk is full: it notices with its next rebalance
                    logger.exception("a process entry could not be notified: %s", info.name)
        if own is not None:
            self._to_self.append(control_message)
            self.processes.notify(own)

    def send(self, process_entry: str, control_message: ControlMessage) -> bool:
        """Send a notice to one process entry; False if it is not there."""
        if process_entry == self.name:
            self._to_self.append(control_message)
            self.processes.notify(process_entry)
            return True
        return self.processes.send(process_entry, control_message)

    def ask(
        self, process_entry: str, question: ControlMessage, timeout_ms: int = ASK_TIMEOUT_MS
    ) -> Any:
        """Ask another process; blocks for the answer, and no longer than the process lives.

        Raises BrokerSystemError with the error of that process, and BrokerError with code
        CONSUME_MSG_TIMEOUT.
        """
        self.open()
        asked = _Asked(process_entry)
        with self._lock:
            own = self._process_entry
            if own is None:
                raise BrokerSystemError("the broker is closed")
            self._questions += 1
            number = self._questions
            self._asked[number] = asked
        control_message = {"kind": _QUESTION, **question, "from": own.name, "number": number}
        try:
            if not self.processes.send(process_entry, control_message) or not self.processes.lives(
                process_entry
            ):
                raise BrokerSystemError("the process of the client has ended")
            if not self._wait(asked, timeout_ms / 1000):
                raise BrokerError(
                    f"the client has not answered within {timeout_ms} ms",
                    ResponseCode.CONSUME_MSG_TIMEOUT,
                )
        finally:
            with self._lock:
                self._asked.pop(number, None)
        if "error" in asked.answer:
            raise BrokerSystemError(asked.answer["error"])
        return asked.answer["result"]

    def _wait(self, asked: _Asked, timeout_s: float) -> bool:
        """Whether the answer came in time, or the process has died."""
        if self._listed:  # a death is noticed
            return asked.answered.wait(timeout_s)
        deadline = Deadline(timeout_s)
        while not asked.answered.wait(min(_LIFE_S, deadline.left())):
            if not self.processes.lives(asked.process_entry):
                return True
            if not deadline.left():
                return False
        return True

    def look_around(self) -> None:
        """Find dead processes, do the work that follows a death, and watch the next one in the
        ring."""
        with self._looking:
            process_entry, watch = self._process_entry, self._watch
            if process_entry is None or watch is None or self._closed or not self._listed:
                return
            dead = self.processes.dead()
            if dead:
                # Reported before removal: if this process dies here, the next one finds them again.
                self._on_deaths(dead)
                for info in dead:
                    self.processes.remove(info.name)
            self.processes.remove_unfinished()
            living = [info.name for info in self.processes.living()]
            watch.follow(living)
        with self._lock:
            lost = [asked for asked in self._asked.values() if asked.process_entry not in living]
        for asked in lost:
            asked.answered.set()

    def close(self, tell_left: Callable[[], None], within_s: float = MAX_CLOSE_S) -> None:
        """Leave. ``tell_left`` is called when no process reads any more what was published here.

        A client that does not return from a notice is left to the thread after ``within_s``;
        control messages after that notice are lost with the process entry, which is removed all the
        same. Calling twice is fine, and goes on where the first close was interrupted.
        """
        deadline = Deadline(within_s)
        with self._lock:
            if self._gone:
                return
            self._closed = True
            process_entry, thread = self._process_entry, self._thread
        if process_entry is not None and thread is not None and self._watch is not None:
            self._watch.close()
            self._paused.set()
            process_entry.end_sleep()
            if thread is not threading.current_thread():
                thread.join(deadline.left())
                if thread.is_alive():
                    _log_late("notices", "a client has not returned from a notice", within_s)
            with held_within(self._looking, deadline.left()) as alone:
                if (
                    not alone
                ):  # others find the dead again: they are reported before they are removed
                    _log_late("notices", "the scan for dead processes has not ended", within_s)
                process_entry.close()
            if self._listed:
                tell_left()
                self.tell({"kind": PROCESSES})  # for processes that wait for an answer from here
        self.processes.close()
        self._gone = True

    # -- the thread ---------------------------------------------------------------------------

    def _run(self, process_entry: ProcessEntry) -> None:
        with self._lock:
            if self._process_entry is not process_entry:
                return  # its opening was interrupted
        while not self._closed:
            process_entry.sleep()
            try:
                self._take_all(process_entry)
            except Exception:
                # For instance no descriptors are left: the control messages are still there.
                logger.exception("control messages could not be read")
                self._paused.wait(AFTER_FAILURE_S)
                self.processes.notify(process_entry.name)

    def _take_all(self, process_entry: ProcessEntry) -> None:
        control_messages = process_entry.control_messages()
        while self._to_self:
            control_messages.append(self._to_self.popleft())
        for control_message in control_messages:
            try:
                self._take(control_message)
            except Exception:
                logger.exception(
                    "a notice could not be followed: kind=%s", control_message.get("kind")
                )
        if any(
            control_message.get("kind") in (PROCESSES, MEMBERS)
            for control_message in control_messages
        ):
            self.look_around()

    def _take(self, control_message: ControlMessage) -> None:
        kind = control_message["kind"]
        if kind == _QUESTION:
            threading.Thread(
                target=self._answer, args=(control_message,), name="answer", daemon=True
            ).start()
        elif kind == _ANSWER:
            with self._lock:
                asked = self._asked.get(control_message["number"])
            if asked is not None:
                asked.answer = control_message
                asked.answered.set()
        elif kind != PROCESSES:
            self._on_notice(control_message)

    def _answer(self, question: ControlMessage) -> None:
        answer: ControlMessage = {"kind": _ANSWER, "number": question["number"]}
        try:
            answer["result"] = self._on_question(question)
        except (Exception, SystemExit) as error:
            logger.exception("a question could not be answered: %s", question.get("what"))
            answer["error"] = f"{type(error).__name__}: {error}"
        self.processes.send(question["from"], answer)


def tell_reset(root: Path, group: str, topic: str, queue_ids: list[int]) -> None:
    """Make running consumers of a group go on from progress that was moved.

    For any process that has moved it, with the store open or not. Call it when the new progress is
    on the device: the consumers read it from there.
    """
    processes = ProcessEntries(root)
    control_message = {"kind": RESET, "group": group, "topic": topic, "queues": queue_ids}
    try:
        for info in processes.living():
            if group in groups_of(info):
                processes.send(info.name, control_message, once=True)
    finally:
        processes.close()


def tell_topics(root: Path, topics: Collection[str]) -> None:
    """Make running consumers of topics ask for their queues again.

    For any process that has made, changed or deleted the topics. The change is made, so it does not
    fail for a notice: without one consumers ask within 20 s.
    """
    processes = ProcessEntries(root)
    try:
        for info in processes.living():
            concerned = sorted(topics_of(info).intersection(topics))
            if concerned:
                processes.send(info.name, {"kind": TOPICS, "topics": concerned}, once=True)
    except OSError:
        logger.exception("consumers of topics could not be notified: %s", ", ".join(topics))
    finally:
        processes.close()


def _log_late(thread: str, what: str, seconds: float) -> None:
    logger.warning("%s: %s within %.1f s; it is left to its thread", thread, what, seconds)


def _own_info() -> Mapping[str, Any]:
    return {"pid": os.getpid(), "host": os.uname().nodename, "clients": []}
