"""Damaged files of rmqctl's own and of settings, and every command on them.

A store with all such files is made once. Each round damages one file, runs some commands in this
process, and puts everything back. ``python -m tests.support.own_files_fuzz FOLDER FIRST COUNT
COMMANDS`` runs rounds FIRST, FIRST + 1, ... and prints what went wrong as JSON, with the most
memory that was used.
"""

import ctypes
import gc
import json
import os
import random
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.configs.checksummed_json import seal, unseal
from storage.configs.pending_commits import PendingCommits
from storage.configs.progress_table import QueueProgress
from storage.coordination.queue_names import name_line
from tests.support.cli import Result, run
from tests.support.every_command import CALLS
from tests.support.kept_store import KeptStore
from tests.support.rich_store import GROUP, TOPIC, make_rich_store

MOST_SECONDS: Final = 20
MOST_MEMORY: Final = 300 << 20
_CODES: Final = frozenset({0, 2, 3, 4, 5, 6, 7, 8})
_NOT_HERE: Final = (
    *("store init", "store carve -- {new}", "store restore", "store diff", "store snapshot"),
    *("cheat", "explain", "mqadmin", "version", "doctor", "context", "config", "completion"),
    *("lag report",),
)
"""Calls that need no store, or another one, or that take long by themselves."""
_MORE: Final = (
    f"consume {TOPIC} -e -g {GROUP}",
    f"consume {TOPIC} -e -g new --from-where first",
    f"produce {TOPIC}",
    "produce brandnew",
    "lag check",
    "lag show readers",
    "offset history readers",
    "group describe readers",
    f"topic describe {TOPIC}",
    "dlq redrive readers --resume last",
    "dlq redrive readers --resume last --execute --yes",
    "dlq ack readers --undo",
    "dlq ack readers --undo --yes",
    "audit show 1",
    "audit show 7",
    "store recover-offsets --execute --yes",
    "store recover-config --execute --yes",
    "store repair --execute --yes",
    "store fsck --fast",
    "store dump rmqctl/queues",
    "store dump rmqctl/offsets.log",
    "store dump rmqctl/offsets.json",
    "store dump rmqctl/settings.json",
    "store dump rmqctl/journal/00000001.jsonl",
    "store dump rmqctl/handled.json",
    "store dump rmqctl/shared",
    "store dump config/topics.json",
    "store dump checkpoint",
    "broker config set fileReservedTime 99 --yes",
    "broker config unset fileReservedTime --yes",
    "topic create fresh",
    "group create fresh",
    "topic delete %odd%|name --confirm %odd%|name -y",
    "lag report --engine local -q",
    "broker status",
    "doctor",
    "store snapshot --save {new}",
)
_ALWAYS: Final = (f"consume {TOPIC} -e", "store fsck")
"""What runs in every round."""


class Lost(NamedTuple):
    """What went wrong in a round."""

    number: int
    file: str
    how: str
    command: str
    what: str


class Fuzz:
    """The store, its files, and rounds of damage."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "s"
        self.most = 0
        self.words = _make_store(folder)
        self.words["new"] = str(folder / "new")
        self._kept = KeptStore(self.root)
        self.names = sorted(str(p.relative_to(self.root)) for p in self._kept.files if _is_ours(p))
        self.commands = [*_lines(self.words), *(line.format(**self.words) for line in _MORE)]
        self._whole = self._consumed()
        assert self._whole.code == 0, self._whole
        self._memory = CallMemory()

    def rounds(self, first: int, count: int, commands: int) -> Iterator[Lost]:
        """Run rounds; each is determined by its number alone."""
        for number in range(first, first + count):
            yield from self._round(number, commands)

    def _round(self, number: int, commands: int) -> Iterator[Lost]:
        chance = random.Random(number)
        name = self.names[number % len(self.names)]
        how = damage(self.root / name, chance)
        lines = list(_ALWAYS)
        for turn in range(commands):
            # Each file meets each command in turn.
            at = number // len(self.names) * commands + turn
            lines.append(self.commands[(at + number) % len(self.commands)])
        try:
            for line in lines:
                self._memory.begin()
                begun = time.monotonic()
                what = self._wrong(line)
                took = time.monotonic() - begun
                most = self._memory.most()
                if what is None and most > MOST_MEMORY:
                    what = f"it took {most >> 20} MiB"
                self.most = max(self.most, most)
                if what is None and took > MOST_SECONDS:
                    what = f"it took {took:.1f} s"
                if what is not None:
                    yield Lost(number, name, how, line, what)
        finally:
            self.put_back()

    def _wrong(self, line: str) -> str | None:
        """What is wrong with a call, None if nothing is."""
        result = called(self.root, line)
        if isinstance(result, str):
            return result
        if "internal error" in result.err or "Traceback" in result.err:
            return result.err[-300:]
        if line == _ALWAYS[0] and result.code == 0 and result.raw != self._whole.raw:
            return f"not all messages, and exit code 0: {result.err[-200:]}"
        if "use a newer rmqctl" in result.err:
            return None
        if result.code not in _CODES and not line.startswith("lag check"):
            return f"exit code {result.code}: {result.err[-300:]}"
        return None

    def _consumed(self) -> Any:
        return called(self.root, _ALWAYS[0])

    def put_back(self) -> None:
        """Have the store as it was."""
        self._kept.put_back()
        shutil.rmtree(self.words["new"], ignore_errors=True)


_CALLS_OF_A_SEARCH: Final = 100
"""How often all of this process is searched for garbage, which takes longer than a call."""


class CallMemory:
    """Memory of calls in this process: what it held when this was made counts as the program's, and
    what earlier calls left since then does not."""

    def __init__(self) -> None:
        self._program = _resident("VmRSS")
        self._left = 0
        self._begun = 0

    def begin(self) -> None:
        """Count from here on (proc_pid_clear_refs); free memory is no call's, and goes first."""
        if self._begun % _CALLS_OF_A_SEARCH == 0:
            gc.unfreeze()
        self._begun += 1
        gc.collect()
        gc.freeze()  # the next collections look at what is new since then only
        ctypes.CDLL(None).malloc_trim(0)
        self._left = max(0, _resident("VmRSS") - self._program)
        Path("/proc/self/clear_refs").write_text("5")

    def most(self) -> int:
        """Most resident bytes since ``begin``; `ru_maxrss` would count the parent's, too."""
        return _resident("VmHWM") - self._left


def _resident(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) << 10


def called(root: Path, line: str) -> Result | str:
    """Call a command on a store; the traceback of what got out of it, or of where it hangs."""

    def give_up(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGUSR1, give_up)
    watch = threading.Timer(
        MOST_SECONDS, signal.pthread_kill, (threading.main_thread().ident, signal.SIGUSR1)
    )
    watch.start()
    try:
        return run(*line.split(), "-S", root, "--no-input", stdin=b"a line\n")
    except BaseException:  # noqa: BLE001 - whatever gets out is what is looked for
        return traceback.format_exc()[-600:]
    finally:
        watch.cancel()
        watch.join()
        signal.signal(signal.SIGUSR1, before)


# -- damage -----------------------------------------------------------------------------------

_VALUES: Final = (
    *("1e400", "-1", "1" + "0" * 30, str(1 << 63), str(1 << 31), "4294967295", "0", "9" * 5000),
    *('"x"', "null", "true", "[]", "{}", "NaN", "1.5", '"' + "y" * 300 + '"', '"\\u001b[31m"'),
    *("[" * 5000 + "]" * 5000, '{"a":' * 60 + "1" + "}" * 60, '"\\ud800"', "-1e308", "[[1,2]]"),
)


def damage(path: Path, chance: random.Random) -> str:
    """Damage a file; gives a word for how."""
    how: Callable[[Path, random.Random], str] = chance.choices(
        (_bytes, _tokens, _sealed, _whole_file), (4, 3, 4, 1)
    )[0]
    return how(path, chance)


def _bytes(path: Path, chance: random.Random) -> str:
    data = bytearray(path.read_bytes() or b"\0")
    # Settings and names are short; what is mapped has its content in its first pages.
    at = chance.randrange(min(len(data), 20_000))
    how = chance.choice(("flip", "set", "delete", "insert", "cut", "zeros", "double"))
    if how == "flip":
        data[at] ^= 1 << chance.randrange(8)
    elif how == "set":
        data[at] = chance.randrange(256)
    elif how == "delete":
        del data[at : at + chance.choice((1, 2, 7, 50))]
    elif how == "insert":
        data[at:at] = chance.randbytes(chance.choice((1, 3, 40)))
    elif how == "cut":
        del data[at:]
    elif how == "zeros":
        length = chance.choice((1, 8, 100, 5000))
        data[at : at + length] = bytes(len(data[at : at + length]))
    else:
        data += data[at:]
    _write(path, bytes(data))
    return f"{how} at {at}"


def _tokens(path: Path, chance: random.Random) -> str:
    data = path.read_bytes()
    text, how = _one_token(data.decode("utf-8", "surrogateescape"), chance)
    _write(path, text.encode("utf-8", "surrogateescape"))
    return how


def _one_token(text: str, chance: random.Random) -> tuple[str, str]:
    """Replace a number or a string by another value."""
    import re

    found = list(re.finditer(r'-?\d+|"[^"]*"|true|false|null', text))
    if not found:
        return text + "1e400", "appended"
    token, value = chance.choice(found), chance.choice(_VALUES)
    if chance.random() < 0.3:
        value = str(chance.choice((1, 2, 9, 99, 300, 1 << 40)))
    return text[: token.start()] + value + text[token.end() :], f"{token[0][:30]} -> {value[:30]}"


def _sealed(path: Path, chance: random.Random) -> str:
    """Damage below the check sum: it is right for what is wrong."""
    data = path.read_bytes()
    if path.name == "queues":
        lines = data.split(b"\n")
        at = chance.randrange(len(lines) or 1)
        topic = chance.choice(("", "x" * 300, "orders", "a\nb", "\udcff"))
        lines[at] = name_line(at, topic, chance.choice((0, 7, 1 << 31, 1 << 62))).rstrip(b"\n")
        _write(path, b"\n".join(lines))
        return f"line {at} is another one"
    lines = data.split(b"\n")
    whole = [n for n, line in enumerate(lines) if unseal(line) is not None]
    if not whole:
        return _tokens(path, chance)
    at = chance.choice(whole)
    body = lines[at][len(b'{"crc":"00000000","entry":') : -1]
    text, how = _one_token(body.decode("utf-8", "surrogateescape"), chance)
    from zlib import crc32

    body = text.encode("utf-8", "surrogateescape")
    lines[at] = b'{"crc":"%08x","entry":%s}' % (crc32(body), body)
    _write(path, b"\n".join(lines))
    return f"line {at}, sum right: {how}"


def _whole_file(path: Path, chance: random.Random) -> str:
    how = chance.choice(("empty", "zeros", "missing", "folder", "pipe", "link", "huge", "noise"))
    if how in ("missing", "folder", "pipe", "link"):
        path.unlink()
        if how == "folder":
            path.mkdir()
        elif how == "pipe":
            os.mkfifo(path)
        elif how == "link":
            path.symlink_to(path.name)
    elif how == "huge":
        os.truncate(path, 400 << 20)
    else:
        content = {"empty": b"", "zeros": bytes(300), "noise": chance.randbytes(300)}[how]
        _write(path, content)
    return how


def _write(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


# -- the store --------------------------------------------------------------------------------


def _make_store(folder: Path) -> dict[str, str]:
    """A rich store in which every file of rmqctl's own exists."""
    now = time.time_ns() // 1_000_000
    made = make_rich_store(folder / "s", now - 600_000)
    root, words = made.root, made.words
    words |= {"snapshot": "-", "other": "-"}
    (folder / "exported.jsonl").write_bytes(
        run("consume", TOPIC, "-e", "-o", "jsonl", "-S", root).raw
    )
    for line in (
        "broker config set fileReservedTime 24 --yes",
        "broker config set brokerName broker-b --yes",
        "produce gone",
        "topic delete gone --confirm gone -y",
        "dlq ack readers {dead_id} --yes",
        "dlq redrive %g|x --all --execute --yes",
        "dlq redrive readers --all --execute --yes",
        f"consume {TOPIC} -e -g {GROUP}",
        "lag show",
    ):
        words_of = line.format(**words).split()
        result = run(*words_of, "-S", root, "--no-input", stdin=b"x\n")
        assert result.code == 0, (line, result)
    note = PendingCommits(root / "rmqctl" / "members" / "1-0123456789ab.notes")
    note.path.parent.mkdir(parents=True, exist_ok=True)
    note.write((f"{TOPIC}@{GROUP}", 0), QueueProgress(9, 4))
    note.close()
    client = {"id": "c", "since": now, "last_heartbeat": now, "beat": 1.0}
    client |= {"producers": [], "consumers": {}}
    said = {"pid": 1, "host": "h", "clients": [client]}
    (root / "rmqctl" / "members" / "1-0123456789ab.json").write_text(json.dumps(said))
    (root / "rmqctl" / "members" / "1-0123456789ab.life").touch()
    samples = root / "rmqctl" / "samples"
    samples.mkdir(exist_ok=True)
    key = f"{TOPIC}@{GROUP}"
    first = {"at": now - 60_000, "committed": {key: {"0": 1}}, "ends": {TOPIC: {"0": 9}}}
    later = {"at": now - 30_000, "committed": {key: {"0": 2}}, "ends": {}}
    (samples / "00000001.jsonl").write_bytes(seal(first) + b"\n" + seal(later) + b"\n")
    ended = {"version": 1, "queues": {"17": [[0, 0]]}}
    path = root / "rmqctl" / "delays-ended.json"
    if not path.exists():
        path.write_bytes(seal(ended))
    return words


def _lines(words: dict[str, str]) -> list[str]:
    """The calls of all commands that read or change this store."""
    return [
        " ".join(call.words(words))
        for call in CALLS
        if not call.line.startswith(_NOT_HERE) and " -- -leading" not in call.line
    ]


def _is_ours(path: Path) -> bool:
    """What the rounds damage: not the log, queues, index, and not the shared state."""
    parts = path.parts
    mapped = {"commitlog", "consumequeue", "index"} & set(parts)
    return not mapped and path.name not in ("shared", "lock") and path.suffix != ".lock"


def main(make: Callable[[Path], Any]) -> None:
    """Run rounds in a process of their own."""
    folder, first, count, commands = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"):
        os.environ[name] = str(folder / "home")
    fuzz = make(folder)
    found = [lost._asdict() for lost in fuzz.rounds(first, count, commands)]
    sys.stdout.write(json.dumps({"lost": found, "memory": fuzz.most, "files": fuzz.names}) + "\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Fuzz)
