"""Calls of the program that change something, each as a process with streams of its own.

``python -m tests.support.change_calls FILE`` reads ``{"kept": FOLDER, "place": FOLDER, "calls":
[...]}`` as JSON and prints a list of results. Each call is a child of this process, which has
imported what all of them need. Before a call ``place`` is as ``kept`` is, but for what the call's
``state`` does to it.
"""

import gc
import hashlib
import json
import os
import pty
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from rmqctl import app
from tests.support.copies import restore_copy

_OLD_S: Final = 400 * 24 * 3600
ROOT: Final = Path(__file__).resolve().parents[2]


def _expired(store: Path) -> None:
    """Log files that a clean deletes."""
    for path in (store / "commitlog").iterdir():
        os.utime(path, (path.stat().st_mtime - _OLD_S,) * 2)


def _damaged(store: Path) -> None:
    """A unit of a queue that repair puts right."""
    path = store / "consumequeue" / "orders" / "0" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    data[60:80] = bytes(20)
    path.write_bytes(data)


def _lost(store: Path) -> None:
    """No file with the progress of groups."""
    for path in (*(store / "config").glob("consumerOffset.json*"), store / "rmqctl/offsets.log"):
        path.unlink(missing_ok=True)


def _torn(store: Path) -> None:
    """Cut files of settings."""
    path = store / "config" / "topics.json"
    path.write_bytes(path.read_bytes()[:-40])
    path.with_name("topics.json.bak").unlink(missing_ok=True)


STATES: Final[Mapping[str, Callable[[Path], None]]] = {
    "": lambda store: None,
    "expired": _expired,
    "damaged": _damaged,
    "lost": _lost,
    "torn": _torn,
}


class Seen(NamedTuple):
    """What a call did."""

    code: int
    out: str
    err: str
    """What it printed on stderr, or on the terminal."""
    changed: list[str]
    """Files below ``place`` that it changed, made or removed."""


def main() -> None:
    """Run all calls of a file."""
    for module in _modules():
        import_module(module)
    gc.freeze()
    given = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    runner = _Runner(Path(given["kept"]), Path(given["place"]))
    results = [[seen._asdict() for seen in runner.run(call)] for call in given["calls"]]
    sys.stdout.write(json.dumps(results))


def _modules() -> Iterator[str]:
    """All modules that calls may import: a child that imports them again takes longer for that
    than for its work."""
    for package in ("storage", "broker", "rmqctl", "analytics.lag", "analytics.report"):
        folder = ROOT / package.replace(".", "/")
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not name.startswith("rmqctl.console") and path.stem not in {"__main__", "__init__"}:
                yield name


class _Runner:
    def __init__(self, kept: Path, place: Path) -> None:
        self._kept, self._place = kept, place
        shutil.rmtree(place)  # its snapshot has hard links to files of its store
        shutil.copytree(kept, place, symlinks=True)
        self._state: str | None = None
        self._folder = "."
        self._files: dict[str, str] = {}

    def run(self, call: Mapping[str, Any]) -> list[Seen]:
        """Run the command lines of a call one after the other, in the same folder."""
        self._folder = call.get("folder", ".")
        if self._state != call["state"]:
            restore_copy(self._kept, self._place, shutil.copy2)
            STATES[call["state"]](self._place / "s")
            self._state, self._files = call["state"], _files(self._place)
        seen = [
            self._one(words, answer, call["form"])
            for words, answer in zip(call["lines"], call["answers"], strict=True)
        ]
        if any(one.changed for one in seen):
            self._state = None
        return seen

    def _one(self, words: Sequence[str], answer: str | None, form: str) -> Seen:
        before = self._files
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            folder = self._place / self._folder
            if answer is None:
                code, shown = _without_terminal(words, form, folder, out.fileno(), err), ""
            else:
                code, shown = _on_terminal(words, form, folder, out.fileno(), answer)
            out.seek(0)
            err.seek(0)
            text, said = out.read().decode(), err.read().decode() or shown
        self._files = _files(self._place)
        changed = {p for p, _ in set(before.items()) ^ set(self._files.items())}
        return Seen(code, text, said, sorted(changed))


def _files(place: Path) -> dict[str, str]:
    """All files and folders, with a digest of the content."""
    found = {}
    for folder, folders, files in os.walk(place):
        within = os.path.relpath(folder, place)
        found.update({os.path.normpath(f"{within}/{name}"): "folder" for name in folders})
        for name in files:
            with open(f"{folder}/{name}", "rb") as file:  # noqa: PTH123 - 60,000 files
                digest = hashlib.blake2b(file.read()).hexdigest()
            found[os.path.normpath(f"{within}/{name}")] = digest
    return found


def _without_terminal(words: Sequence[str], form: str, place: Path, out: int, err: Any) -> int:
    pid = os.fork()
    if pid == 0:
        nothing = os.open(os.devnull, os.O_RDONLY)
        _become(words, form, place, nothing, out, err.fileno())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _on_terminal(
    words: Sequence[str], form: str, place: Path, out: int, answer: str
) -> tuple[int, str]:
    """Run on a terminal, where the answer has been typed; stdout is a file."""
    pid, master = pty.fork()
    if pid == 0:
        _become(words, form, place, 0, out, 2)
    os.write(master, answer.encode())
    shown = bytearray()
    while True:
        try:
            piece = os.read(master, 1 << 16)
        except OSError:  # the child has ended
            break
        if not piece:
            break
        shown += piece
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return code, shown.decode().replace("\r\n", "\n")


def _become(words: Sequence[str], form: str, place: Path, *streams: int) -> None:
    code = 70
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # The objects of the parent remember whether its streams can seek.
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout, sys.stderr = (os.fdopen(fd, "w", closefd=False) for fd in (1, 2))
        if form:
            os.environ["RMQCTL_OUTPUT"] = form
        os.chdir(place)
        code = app.main(words)
    except BaseException:  # noqa: BLE001 - the parent shows it
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
