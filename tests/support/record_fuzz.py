"""Damaged records, consume queue units and index files, and every reader on them.

A rich store is made once. Each round damages one place of the log, of a queue or of the index,
some rounds in a store that was not closed cleanly or that only a Java broker knew; it runs some
commands in this process, and puts everything back. ``python -m tests.support.record_fuzz FOLDER
FIRST COUNT COMMANDS`` runs rounds FIRST, FIRST + 1, ... and prints what went wrong as JSON, with
the most memory that was used.
"""

import random
import re
import shutil
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.embedded.broker import EmbeddedBroker
from rmqctl import Message
from storage.format.encode import MessageInner, prepare
from storage.format.properties import encode_properties
from storage.format.record import CheckKind, check_record, decode_record
from storage.format.sys_flag import MessageSysFlag
from tests.support.cli import Result, run
from tests.support.every_command import CALLS
from tests.support.kept_store import KeptStore
from tests.support.own_files_fuzz import (
    MOST_MEMORY,
    MOST_SECONDS,
    CallMemory,
    Lost,
    called,
    main,
)
from tests.support.record_damages import bombs, damage, packed, record_places
from tests.support.rich_store import GROUP, TOPIC, make_rich_store

BOMBS: Final = "bombs"
_CODES: Final = frozenset({0, 3, 4, 5, 7, 8})
_JUDGED: Final = (
    f"consume {TOPIC} -e -o jsonl",
    f"message export -t {TOPIC} --as jsonl",
    f"message search -t {TOPIC} --jobs 1 -o jsonl --min-size 0",
    f"message query -t {TOPIC} --key all --scan -o jsonl",
)
"""Calls that give messages one a line: fewer than there are need an exit code other than 0."""
_UNREAD: Final = re.compile(r"(\d+) messages? lies? in queue.* not read as readQueueNums is")
"""What `consume` says about messages that are in no queue that the topic's settings have read."""
_READING: Final = (
    "lag report --engine local -q",
    "lag report --engine local -q --exact --by tag",
    "lag report --engine local -q --by minute",
    f"consume {BOMBS} -e",
    f"consume {BOMBS} -e -o jsonl",
    "consume %RETRY%readers -e",
    f"consume {TOPIC} -e -g {GROUP}",
    f"consume {TOPIC} -e -g new --from-where first",
    f"consume {BOMBS} -e -g new --from-where first",
    f"consume {TOPIC} -e --exec true -g other",
    f"consume {TOPIC} --offset 0:3 --queue 0",
    f"consume {TOPIC} --from -1d -e",
    f"message search -t {BOMBS} nothing --jobs 1",
    "message search red --jobs 1",
    "message export --as raw",
    f"message export -t {BOMBS} --as csv",
    "message query --key half-1",
    f"message query -t {TOPIC} --key all --index",
    f"message query --tag plain -t {TOPIC}",
    "message stats --by hour",
    "store fsck --fast",
    "store fsck --only queue,index",
    "store fsck -o json",
    "topic queues -o jsonl",
    "topic stats --by hour",
    "dlq browse readers --all -o json",
    "dlq browse readers --from -1h",
    "dlq export readers",
    "dlq redrive readers --all",
    "dlq redrive readers --all --execute --yes",
    f"store carve {{new}} -t {TOPIC} -t {BOMBS} -g {GROUP} --execute --yes",
    "store snapshot --save {new}",
    "store snapshot --save {new}.tar.gz",
    "store repair --execute --yes",
    "store repair --only queue,index --execute --yes",
    "store rebuild queue --execute --yes",
    "store rebuild index --execute --yes",
    "store recover-offsets --execute --yes",
    "store tail -e",
    "store dump {log}",
    "store dump {queue}",
    "store dump {index}",
    "store du --by day",
    "store clean --execute --yes",
    "broker status",
    "lag check",
    "lag risk --within 99d",
    f"lag histogram {GROUP} --of tag",
    f"lag histogram {GROUP} --of size",
    f"produce {TOPIC}",
    "retry now readers {retry_id} --yes",
    "retry dead readers {retry_id} --yes",
    f"offset reset -g {GROUP} -t {TOPIC} --to-datetime -1h",
)
_NOT_HERE: Final = (
    *("store init", "store restore", "store diff", "store snapshot", "store carve"),
    *("cheat", "explain", "mqadmin", "version", "doctor", "context", "config", "completion"),
    *("lag report", "audit", "broker config", "produce"),
)
_ALWAYS: Final = ("store fsck",)


class RecordFuzz:
    """The store, its records, and rounds of damage."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "s"
        self.most = 0
        self._captured = 0
        self.words = _make_store(folder)
        self.words["new"] = str(folder / "new")
        self._away = folder / "away"
        self._kept = KeptStore(self.root)
        self.names = [str(path.relative_to(self.root)) for path in self._kept.files]
        self._places = {
            path: [
                (at, decode_record(path.read_bytes(), at).topic == TOPIC)
                for at, _ in record_places(path)
            ]
            for path in (self.root / "commitlog").iterdir()
        }
        lines = [
            " ".join(call.words(self.words))
            for call in CALLS
            if not call.line.startswith(_NOT_HERE) and " -- -leading" not in call.line
        ]
        self.commands = [*(line.format(**self.words) for line in _READING), *lines]
        self._least = {
            (state, line): self._messages_of(state, line) for state in _STATES for line in _JUDGED
        }
        self._memory = CallMemory()

    def _messages_of(self, state: str, line: str) -> int:
        """How many messages a command gives of the store without damage."""
        self._have_state(state)
        result = called(self.root, line)
        self.put_back()
        assert isinstance(result, Result)
        assert result.code == 0, (state, line, result.err)
        count = result.raw.count(b"\n")
        assert count > 20, (line, result)
        return count

    def rounds(self, first: int, count: int, commands: int) -> Iterator[Lost]:
        """Run rounds; each is determined by its number alone."""
        for number in range(first, first + count):
            yield from self._round(number, commands)

    def _round(self, number: int, commands: int) -> Iterator[Lost]:
        chance = random.Random(number)
        state = chance.choices(_STATES, (6, 2, 1, 1))[0]
        name, how = damage(self.root, chance)
        self._have_state(state)
        lines = [*_ALWAYS, _JUDGED[number % len(_JUDGED)]]
        first = number * commands
        lines += [self.commands[n % len(self.commands)] for n in range(first, first + commands)]
        try:
            for line in lines:
                begun = time.monotonic()
                what = self._wrong(state, name, how, line)
                took = time.monotonic() - begun
                most = self._memory.most() - self._captured
                if what is None and most > MOST_MEMORY:
                    what = f"it took {most >> 20} MiB"
                self.most = max(self.most, most)
                if what is None and took > MOST_SECONDS:
                    what = f"it took {took:.1f} s"
                if what is not None:
                    yield Lost(number, name, f"{how}; {state}", line, what)
        finally:
            self.put_back()

    def _wrong(self, state: str, name: str, how: str, line: str) -> str | None:
        """What is wrong with a call, None if nothing is."""
        self._memory.begin()
        self._captured = 0
        result = called(self.root, line)
        if isinstance(result, str):
            return result
        # A body of 60 MiB is 360 MiB of JSON, which this process holds and a pipe would not.
        self._captured = len(result.raw) * 9 // 8
        if "internal error" in result.err or "Traceback" in result.err:
            return result.err[-300:]
        least = self._least.get((state, line), 0) - self._elsewhere(line)
        if line.startswith("consume") and self._is_silent(state, name, how):
            least = 0
        if state in ("lost power", "java, killed") and not self._is_last_whole():
            least -= 1  # it was being written, as far as the bytes show
        left_out = _UNREAD.search(result.err)
        if left_out:
            least -= int(left_out[1])
        if result.code == 0 and result.raw.count(b"\n") < least:
            found = result.raw.count(b"\n")
            return f"{found} of {least} messages, and exit code 0: {result.err[-200:]}"
        if result.code not in _CODES and not line.startswith("lag check"):
            return f"exit code {result.code}: {result.err[-300:]}"
        return None

    def _elsewhere(self, line: str) -> int:
        """Records that are whole, and say now that they are of another topic or key: no sum covers
        these. A queue leads to them all the same."""
        if line.startswith("consume"):
            return 0
        count = 0
        for path, places in self._places.items():
            data = _beginning(path)
            for at, was in places:
                if check_record(data, at, len(data)).kind is not CheckKind.MESSAGE:
                    continue
                now = decode_record(data, at)
                wanted = now.topic == TOPIC and ("--key" not in line or "all" in now.keys)
                count += was and not wanted and now.commitlog_offset == at
        return count

    def _is_last_whole(self) -> bool:
        path = max(path for path, places in self._places.items() if places)
        data, (at, _) = _beginning(path), self._places[path][-1]
        return check_record(data, at, len(data)).kind is CheckKind.MESSAGE

    def _is_silent(self, state: str, name: str, how: str) -> bool:
        """Whether a store that lacks messages looks like one that never had them, to a reader that
        does not go through the log: units at the end of a queue that no shared state has, and a log
        file of another name, in front of which all seems to be deleted. fsck reports both."""
        moved = name.startswith("commitlog") and how.startswith("moved")
        return moved or (name.startswith("consumequeue") and state == "java, closed")

    def _have_state(self, state: str) -> None:
        """Have the store as after a clean end, a power loss, or as a Java broker leaves it."""
        if state in ("lost power", "java, killed"):
            (self.root / "abort").touch()
        if state.startswith("java"):
            (self.root / "rmqctl").rename(self._away)

    def put_back(self) -> None:
        """Have the store as it was."""
        if self._away.exists():
            shutil.rmtree(self.root / "rmqctl", ignore_errors=True)
            self._away.rename(self.root / "rmqctl")
        self._kept.put_back()
        shutil.rmtree(self.words["new"], ignore_errors=True)
        Path(self.words["new"] + ".tar.gz").unlink(missing_ok=True)


def _beginning(path: Path) -> bytes:
    """The records of a log file, which may be of any length by now."""
    if not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(1 << 20)


_STATES: Final = ("closed", "lost power", "java, closed", "java, killed")


def _make_store(folder: Path) -> dict[str, str]:
    """A rich store, with compressed bodies and with bodies that are bombs if a flag says so."""
    now = time.time_ns() // 1_000_000
    made = make_rich_store(folder / "s", now - 600_000)
    root, words = made.root, made.words
    v4, v6 = bytes((127, 0, 0, 1, 0, 0, 42, 159)), bytes(15) + b"\1" + bytes((0, 0, 42, 159))
    zipped = MessageSysFlag.COMPRESSED_FLAG | MessageSysFlag.COMPRESSION_ZLIB_TYPE
    some = encode_properties({"KEYS": "all zip", "TAGS": "plain"})
    with EmbeddedBroker.open(root, clock=lambda: now) as broker:
        assert broker.store is not None
        records = [
            MessageInner(
                TOPIC, 0, packed(b"x" * 5000), some, now, v4, v4, 0, zipped, keys=("all",)
            ),
            MessageInner(TOPIC, 1, packed(b"y" * 200), some, now, v6, v6, 0, zipped, keys=("all",)),
            MessageInner(TOPIC, 1, b"plain v6", some, now, v4, v6, keys=("all",)),
            *(MessageInner(BOMBS, 0, body, some, now, v4, v4) for body in bombs()),
        ]
        for record in records:
            broker.store.put(prepare((record,)))
        broker.send(Message(TOPIC, b"the last one", keys="all"), 0)
    words["index"] = f"index/{sorted(path.name for path in (root / 'index').iterdir())[-1]}"
    exported = run("consume", TOPIC, "-e", "-o", "jsonl", "-S", root)
    (folder / "exported.jsonl").write_bytes(exported.raw)
    return words


if __name__ == "__main__":
    warnings.simplefilter("always")  # each call is a process of its own, as it were
    main(RecordFuzz)
