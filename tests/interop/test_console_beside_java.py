"""The console beside a live Java broker with producers and consumers: no error on either side."""

import os
import re
import threading
import time
from pathlib import Path

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from rmqctl.console.looks.look import Place
from rmqctl.console.screens.table import TABLE, spec_of
from storage.config import SMALL_STORE
from storage.format.message import Message
from tests.interop.cluster import Cluster, running_cluster
from tests.interop.store_probe import java_message
from tests.support.cli import run
from tests.support.console import Terminal, terminal
from tests.support.dead_letters import bury, give_back
from tests.support.java import Release

pytestmark = [pytest.mark.interop, pytest.mark.long]

SETTINGS = {
    "mappedFileSizeCommitLog": SMALL_STORE.mapped_file_size_commit_log,
    "mappedFileSizeConsumeQueue": SMALL_STORE.mapped_file_size_consume_queue,
    "maxHashSlotNum": SMALL_STORE.max_hash_slot_num,
    "maxIndexNum": SMALL_STORE.max_index_num,
}
TOPIC, GROUP = "orders", "billing"
ERROR = re.compile(
    r" ERROR (?!RocketmqBroker - (RemotingCommand \[code=|processRequestWrapper response to /))"
)
"""Lines of the broker's log about anything but answers to clients that have gone: each call of the
traffic has its own client."""
WITH_ERRORS = {"trace"}
"""Screens that say what is not there: no producer here writes traces."""


class Traffic(threading.Thread):
    """Java producers and consumers of the cluster, one call after the other until it is ended."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(name="java-traffic")
        self._cluster = cluster
        self._ends = threading.Event()
        self.sent: list[str] = []
        self.read: list[str] = []
        self.failure: Exception | None = None

    def run(self) -> None:
        """Produce and consume; each call has a client of its own."""
        try:
            while not self._ends.is_set():
                self._cycle()
        except Exception as error:  # noqa: BLE001 - raised by end()
            self.failure = error

    def _cycle(self) -> None:
        rows = [
            java_message(TOPIC, n % 4, b'{"n": %d}' % n, {"KEYS": f"key{n}", "TAGS": "new"})
            for n in range(len(self.sent), len(self.sent) + 20)
        ]
        rows += [java_message("later", None, b"later", {"DELAY": "2"})]
        found = self._cluster.produce(rows)
        assert {row["status"] for row in found} == {"SEND_OK"}
        self.sent += [row["msgId"] for row in found[:20]]
        read = self._cluster.consume(TOPIC, GROUP, 20, expression="new", deadline=120.0)
        self.read += [row["msgId"] for row in read]
        self._cluster.consume("later", "mailer", 1, deadline=120.0)

    def end(self) -> None:
        """End after the present cycle; raises what has failed."""
        self._ends.set()
        self.join()
        if self.failure is not None:
            raise self.failure


def prepared(root: Path) -> dict[str, tuple[str, ...]]:
    """A store with dead letters and retries; names of what each screen shows."""
    create_store(root, SMALL_STORE)
    messages = [Message(TOPIC, b"%d" % n, keys=f"k{n}", tags="old") for n in range(6)]
    bury(root, GROUP, messages, ["timeout", "no stock"])
    with EmbeddedBroker.open(root) as broker:
        sent = broker.send(Message(TOPIC, b"again"))
        (stored,) = broker.query_unique(TOPIC, sent.msg_id)
        give_back(broker, GROUP, stored, level=18)
        msg_id = sent.msg_id
    run("offset", "reset", GROUP, "-t", TOPIC, "--to-earliest", "--yes", "-S", root)
    return {
        "GROUP": (GROUP,),
        "TOPIC": (TOPIC,),
        "QUEUE": ("0",),
        "OFFSET": ("0",),
        "ID": (msg_id,),
        "WORDS": ("key1",),
        "CHANGE-ID": ("1",),
    }


def places(names: dict[str, tuple[str, ...]]) -> list[Place]:
    """Every screen; a dead letter is named by its offset, as it has an id of its own."""
    return [
        Place(screen, tuple(names[name][0] for name in ref.names))
        for screen, ref in TABLE.items()
        if screen != "letter"
    ] + [Place("letter", (GROUP, "0"))]


def writable(pid: int, root: Path) -> list[str]:
    """Files of a store that a process has open, or mapped, for writing."""
    found = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        try:
            path, info = fd.readlink(), Path(f"/proc/{pid}/fdinfo/{fd.name}").read_text()
        except FileNotFoundError:
            continue
        flags = re.search(r"^flags:\s+(\d+)", info, re.MULTILINE)
        if flags and path.is_relative_to(root) and int(flags[1], 8) & os.O_ACCMODE:
            found.append(str(path))
    maps = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return found + [line for line in maps if str(root) in line and line.split()[1][1] == "w"]


def clock(console: Terminal) -> str:
    """The time in the first line."""
    found = re.search(r"\d\d:\d\d:\d\d", console.text())
    return found[0] if found else ""


def see(console: Terminal, place: Place) -> None:
    """Go to a screen, and watch it for two seconds of its clock."""
    name = " ".join((place.screen, *place.names))
    console.send(f":{name}\r")
    console.until(f" {spec_of(place.screen).title(place)}"[:60].rstrip())
    for _ in range(2):
        before = clock(console)
        console.until(lambda before=before: clock(console) != before)
    console.until(lambda: "reading ..." not in console.text())
    failed = [line for line in console.text().splitlines() if line.lstrip().startswith("! ")]
    assert not failed or place.screen in WITH_ERRORS, console.text()
    assert "internal error" not in console.text()


def refused(console: Terminal, root: Path) -> None:
    """Plan a reset and a redrive: each is refused with the sentence of its command."""
    for place, keys, command in (
        (
            Place("group", (GROUP,)),
            f"r\x15{TOPIC}\rearliest\r",
            ("offset", "reset", GROUP, "-t", TOPIC, "--to-earliest"),
        ),
        (Place("dlqs"), "R\r", ("dlq", "redrive", GROUP, "--all")),
        (Place("dlqs"), "A", ("dlq", "ack", GROUP, "--all")),
    ):
        see(console, place)
        console.send(keys)
        console.until(lambda: "REFUSED:" in console.words())
        done = run(*command, "--yes", "-S", root)
        assert done.code == 5
        sentence = " ".join(done.err.split()).removeprefix("rmqctl: ")
        assert sentence[:60] in console.words()
        console.send("\r")
        console.until(lambda: "Type " not in console.text())
        console.send("\x1b")
        console.until(lambda: "REFUSED:" not in console.words())
        console.send("\x03")
        console.until("= rmqctl")


@pytest.mark.parametrize("seconds", [20, 600])
def test_all_screens_beside_a_broker_its_producers_and_consumers(
    seconds: int, java49: Release, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    every = places(prepared(root))
    own = sorted(path for path in (root / "rmqctl").rglob("*"))
    with running_cluster(java49, root, tmp_path, SETTINGS) as cluster:
        traffic = Traffic(cluster)
        traffic.start()
        try:
            with terminal(root, "overview", "--every", "500ms", size=(40, 140)) as console:
                console.until("NEEDS ATTENTION")
                pid = console.child.pid
                end = time.monotonic() + seconds
                rounds = 0
                while not rounds or time.monotonic() < end:
                    for place in every:
                        see(console, place)
                        assert writable(pid, root) == []
                        assert traffic.is_alive(), traffic.failure
                    rounds += 1
                console.send(":write store\r")
                console.until("CHANGES ON")
                refused(console, root)
                console.send(":q\r")
                assert console.ended() == 0
                assert b"Traceback" not in console.raw
        finally:
            traffic.end()
        log = (tmp_path / "cluster.log").read_text(errors="replace")
        cluster.stop()
    assert sorted(path for path in (root / "rmqctl").rglob("*")) == own
    assert [line for line in log.splitlines() if ERROR.search(line)] == []
    assert len(traffic.sent) >= 20
    assert sorted(traffic.read) == sorted(traffic.sent)
    assert run("-S", root, "store", "fsck").code == 0
