"""Notices, questions and answers between the brokers of one store, without a daemon.

Each broker that has clients keeps a station (storage.coordination.processes) and one thread that
sleeps until a letter comes. Nothing wakes while nothing happens, and a letter to a living broker is
never lost, also if the sender is killed right behind it.

A station is open before anything is said in it, so that its death is noticed from the first word
on: it tells the others that it is there, whoever stands before it in the ring watches it, and
whoever hears of a newcomer that is dead already does what is to be done after a death.

Questions are answered by threads of their own, because a listener may run for long.
"""

from __future__ import annotations

import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from broker.errors import BrokerError, BrokerSystemError, ResponseCode
from storage.coordination.failure_detector import FailureDetector
from storage.coordination.processes import ControlMessage, ProcessEntries, ProcessEntry, ProcessInfo
from storage.deadlines import MAX_CLOSE_S, Deadline, held_within

from .process_info_json import groups_of

logger = logging.getLogger("rmqctl.broker")

STATIONS: Final = "stations"
MEMBERS: Final = "members"
RESET: Final = "reset"
CHECK: Final = "check"
_QUESTION: Final = "question"
_ANSWER: Final = "answer"

AFTER_FAILURE_S: Final = 1.0
ASK_TIMEOUT_MS: Final = 10_000
"""How long a client may take for an answer (Broker2Client, 10 s)."""


class _Asked:
    """A question that waits for its answer."""

    __slots__ = ("answer", "answered", "station")

    def __init__(self, station: str) -> None:
        self.station = station
        self.answered = threading.Event()
        self.answer: ControlMessage = {"error": "the process of the client has ended"}


class Notices:
    """This broker's station and its thread.

    ``on_notice`` takes letters in the one thread; ``on_question`` answers in a thread of its own,
    in values ready for JSON; ``on_deaths`` gets what the dead said last, in any thread.
    """

    def __init__(
        self,
        root: Path,
        on_notice: Callable[[ControlMessage], None],
        on_question: Callable[[ControlMessage], Any],
        on_deaths: Callable[[list[ProcessInfo]], None],
    ) -> None:
        self.stations = ProcessEntries(root)
        self._on_notice = on_notice
        self._on_question = on_question
        self._on_deaths = on_deaths
        self._lock = threading.Lock()  # guards opening, closing and the table of questions
        self._looking = threading.Lock()  # one looks around at a time; before _lock
        self._station: ProcessEntry | None = None
        self._watch: FailureDetector | None = None
        self._thread: threading.Thread | None = None
        self._to_self: deque[ControlMessage] = deque()
        self._asked: dict[int, _Asked] = {}
        self._questions = 0
        self._closed = False
        self._gone = False  # closed to the end
        self._paused = threading.Event()  # set by ``close``

    @property
    def name(self) -> str | None:
        """The station's name, None while there is none."""
        station = self._station
        return None if station is None else station.name

    def open(self) -> None:
        """Be there for the others; does nothing from the second time on.

        Raises StoreNotWritableError, and RuntimeError if the system gives no thread: then there is
        no station.
        """
        with self._lock:
            if self._station is not None or self._closed:
                return
            station = ProcessEntry(self.stations, _said_by_nobody())
            try:
                thread = threading.Thread(
                    target=self._run, args=(station,), name="notices", daemon=True
                )
                thread.start()
                self._watch = FailureDetector(self.stations, station.name, self.look_around)
                self._thread = thread
                self._station = station  # last: it says that all is there
            except BaseException:
                with suppress(OSError):  # or it would live on with nobody in it
                    station.close()
                raise
        self.tell({"kind": STATIONS})
        self.look_around()

    def say(self, clients: list[dict[str, Any]]) -> None:
        """Say which clients are here, for everybody to read."""
        if self._station is not None:
            self._station.say({**_said_by_nobody(), "clients": clients})

    def tell(self, letter: ControlMessage) -> None:
        """Send news to all stations, this one too; equal ones that wait are one."""
        own = self.name
        for said in self.stations.living():
            if said.name != own:
                try:
                    self.stations.send(said.name, letter, once=True)
                except OSError:  # the disk is full: it sees for itself, with its next rebalance
                    logger.exception("a station could not be told: %s", said.name)
        if own is not None:
            self._to_self.append(letter)
            self.stations.ring(own)

    def send(self, station: str, letter: ControlMessage) -> bool:
        """Send a notice to one station; False if it is not there."""
        if station == self.name:
            self._to_self.append(letter)
            self.stations.ring(station)
            return True
        return self.stations.send(station, letter)

    def ask(self, station: str, question: ControlMessage, timeout_ms: int = ASK_TIMEOUT_MS) -> Any:
        """Ask another station; blocks for the answer, and no longer than its process lives.

        Raises BrokerSystemError with what went wrong there, and BrokerError with code
        CONSUME_MSG_TIMEOUT.
        """
        self.open()
        asked = _Asked(station)
        with self._lock:
            self._questions += 1
            number = self._questions
            self._asked[number] = asked
        letter = {"kind": _QUESTION, **question, "from": self.name, "number": number}
        try:
            if not self.stations.send(station, letter) or not self.stations.lives(station):
                raise BrokerSystemError("the process of the client has ended")
            if not asked.answered.wait(timeout_ms / 1000):
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

    def look_around(self) -> None:
        """Find who has died, do what is to be done, and watch the next one in the ring."""
        with self._looking:
            station, watch = self._station, self._watch
            if station is None or watch is None or self._closed:
                return
            dead = self.stations.dead()
            if dead:
                # Told before it is removed: if we die here, the next one finds them again.
                self._on_deaths(dead)
                for said in dead:
                    self.stations.remove(said.name)
            self.stations.remove_unfinished()
            living = [said.name for said in self.stations.living()]
            watch.follow(living)
        with self._lock:
            lost = [asked for asked in self._asked.values() if asked.station not in living]
        for asked in lost:
            asked.answered.set()

    def close(self, tell_left: Callable[[], None], within_s: float = MAX_CLOSE_S) -> None:
        """Go. ``tell_left`` is called when nobody sees any more what was said here.

        A client that does not come back from a notice is left to the thread after ``within_s``;
        letters behind that notice are lost with the station, which is gone all the same. Twice is
        fine, and goes on where the first time was broken off.
        """
        deadline = Deadline(within_s)
        with self._lock:
            if self._gone:
                return
            self._closed = True
            station, thread = self._station, self._thread
        if station is not None and thread is not None and self._watch is not None:
            self._watch.close()
            self._paused.set()
            station.end_sleep()
            if thread is not threading.current_thread():
                thread.join(deadline.left())
                if thread.is_alive():
                    _log_late("notices", "a client has not come back from a notice", within_s)
            with held_within(self._looking, deadline.left()) as alone:
                if (
                    not alone
                ):  # others find the dead again: they are told of before they are removed
                    _log_late("notices", "the look for dead processes has not ended", within_s)
                station.close()
            tell_left()
            self.tell({"kind": STATIONS})  # for those who wait for an answer from here
        self.stations.close()
        self._gone = True

    # -- the thread ---------------------------------------------------------------------------

    def _run(self, station: ProcessEntry) -> None:
        with self._lock:
            if self._station is not station:
                return  # opening it was broken off
        while not self._closed:
            station.sleep()
            try:
                self._take_all(station)
            except Exception:
                # No descriptors left, for one: the letters are still there.
                logger.exception("letters could not be read")
                self._paused.wait(AFTER_FAILURE_S)
                self.stations.ring(station.name)

    def _take_all(self, station: ProcessEntry) -> None:
        letters = station.letters()
        while self._to_self:
            letters.append(self._to_self.popleft())
        for letter in letters:
            try:
                self._take(letter)
            except Exception:
                logger.exception("a notice could not be followed: kind=%s", letter.get("kind"))
        if any(letter.get("kind") in (STATIONS, MEMBERS) for letter in letters):
            self.look_around()

    def _take(self, letter: ControlMessage) -> None:
        kind = letter["kind"]
        if kind == _QUESTION:
            threading.Thread(
                target=self._answer, args=(letter,), name="answer", daemon=True
            ).start()
        elif kind == _ANSWER:
            with self._lock:
                asked = self._asked.get(letter["number"])
            if asked is not None:
                asked.answer = letter
                asked.answered.set()
        elif kind != STATIONS:
            self._on_notice(letter)

    def _answer(self, question: ControlMessage) -> None:
        answer: ControlMessage = {"kind": _ANSWER, "number": question["number"]}
        try:
            answer["result"] = self._on_question(question)
        except Exception as error:
            logger.exception("a question could not be answered: %s", question.get("what"))
            answer["error"] = f"{type(error).__name__}: {error}"
        self.stations.send(question["from"], answer)


def tell_reset(root: Path, group: str, topic: str, queue_ids: list[int]) -> None:
    """Have running consumers of a group go on from progress that was moved.

    For whoever has moved it, in any process, with the store open or not; to be called when the new
    progress is on the device. Where they go on they read there.
    """
    stations = ProcessEntries(root)
    letter = {"kind": RESET, "group": group, "topic": topic, "queues": queue_ids}
    try:
        for said in stations.living():
            if group in groups_of(said):
                stations.send(said.name, letter, once=True)
    finally:
        stations.close()


def _log_late(thread: str, what: str, seconds: float) -> None:
    logger.warning("%s: %s within %.1f s; it is left to its thread", thread, what, seconds)


def _said_by_nobody() -> Mapping[str, Any]:
    return {"pid": os.getpid(), "host": os.uname().nodename, "clients": []}
