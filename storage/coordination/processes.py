"""Process entries: the processes on one store that accept messages from others, and their liveness.

``<store>/rmqctl/members/`` holds five things of each process entry, named after it:

    NAME.life   locked by the process entry while it lives (the kernel releases it at its death)
    NAME.json   its information about itself, replaced as a whole
    NAME.in/    its control messages: JSON files, renamed into place, read and removed by it alone
    NAME.sock   a datagram socket: one byte announces a control message
    NAME.notes  progress of its consumers that is in no other file yet (configs.pending_commits)

``.life`` gets its name when it is locked, so an entry whose file is not locked is dead. That of a
process that only waits for an answer keeps the name before that one, so it is in no list. The byte
may get lost when the socket's queue is full, because then the process has been woken. A control
message is never lost while its process entry lives. Stopped processes keep their control messages
until they go on; of control messages that repeat each other one is kept. Any process may remove
what a dead process has left.

Names are unique to each process entry, so an entry that was found dead stays dead.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.bounded import NO_FILE, read_bounded
from storage.files.creating import adopt, make_folders, put_whole, remove_left
from storage.format.names import MEMBERS_FOLDER, OURS
from storage.format.shapes import (
    MAX_LONG,
    MAX_TIME,
    ShapeError,
    anything,
    check,
    members,
    number,
    rows,
    table,
    text,
    whole,
)
from storage.format.strict_json import loads_strict
from storage.platform.sockets import CAN_END_POLLS, new_socket, socket_folder

from .locks import ForkAware, LockFile, at_fork

if TYPE_CHECKING:
    import socket

    from storage.platform.sockets import SocketFolder

_SAYS: Final = ".json"
_LIFE: Final = ".life"
_CONTROL_MESSAGES: Final = ".in"
_SOCKET: Final = ".sock"
_NOTES: Final = ".notes"
_STAGED: Final = "."
_ONCE: Final = "!"  # sorts before digits
_RING: Final = b"!"
_POLL_MS: Final = None if CAN_END_POLLS else 500
"""How long a poll lasts where no other thread can end it."""
_TRIES: Final = 5
_UNFINISHED_S: Final = 60.0

_TIME: Final = whole(0, MAX_TIME)
_CLIENT: Final = members(
    {},
    {
        "id": text,
        "since": _TIME,
        "last_heartbeat": _TIME,
        "beat": number(0, MAX_LONG),
        "producers": rows(text),
        "consumers": table(anything),
    },
)
"""Required fields of a client's member. The information about a consumer may be of a newer rmqctl;
the broker's rules read it, one consumer at a time."""
_SAID: Final = members({}, {"pid": whole(0), "host": text, "clients": rows(anything)})
_CONTROL_MESSAGE: Final = table(anything)

ControlMessage = dict[str, Any]


class ProcessInfo(NamedTuple):
    """A process entry and its information about itself."""

    name: str
    content: dict[str, Any]


class ProcessEntries:
    """The process entries of one store, as any process may see them. Reading takes no lock and
    creates nothing.

    Safe for threads; keeps nothing but one socket, from the first control message on.
    """

    def __init__(self, root: Path) -> None:
        self.folder = root / OURS / MEMBERS_FOLDER
        self._lock = threading.Lock()  # guards the three fields below
        self._socket: socket.socket | None = None
        self._sockets: SocketFolder | None = None
        self._closed = False

    def path(self, name: str, suffix: str) -> Path:
        """The path of one file of a process entry."""
        return self.folder / (name + suffix)

    def life_path(self, name: str) -> Path:
        """The path of the file that a living process entry keeps locked."""
        return self.path(name, _LIFE)

    def living(self) -> list[ProcessInfo]:
        """Give all living process entries, by name."""
        return [info for name in self._names() if self.lives(name) and (info := self._read(name))]

    def dead(self) -> list[ProcessInfo]:
        """Give the dead process entries that are not removed yet, with their last information
        (perhaps none)."""
        dead = [name for name in self._names() if not self.lives(name)]
        return [self._read(name) or ProcessInfo(name, {}) for name in dead]

    def lives(self, name: str) -> bool:
        """Tell whether a process entry lives."""
        try:
            life = LockFile(self.life_path(name), create=False, writable=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            if error.errno in NO_FILE:  # circular links and a socket are no process entry
                return False
            raise
        try:
            # A failure detector holds a shared lock for a moment: that is no sign of life.
            return life.holder(0, exclusive=False) is not None
        finally:
            life.close()

    def send(self, name: str, control_message: ControlMessage, *, once: bool = False) -> bool:
        """Leave a control message with a process entry and wake it; False if it is not there.

        With ``once`` it replaces an equal one that was not read yet, and is read before other
        control messages. That is for news that every process can read elsewhere, so that a process
        that is stopped for a day does not find thousands of them.
        """
        control_messages = self.path(name, _CONTROL_MESSAGES)
        file = f"{time.monotonic_ns():020d}-{os.urandom(4).hex()}"
        content = json.dumps(control_message, separators=(",", ":")).encode()
        if once:
            import hashlib  # takes 3 ms, which a process alone on its store does not need

            file = _ONCE + hashlib.sha256(content).hexdigest()
        try:
            put_whole(control_messages / file, content)
        except FileNotFoundError:
            return False
        self.notify(name)
        return True

    def notify(self, name: str) -> None:
        """Wake a process entry to read its control messages; does nothing after :meth:`close`."""
        with self._lock:
            if self._closed:
                return
            if self._socket is None or self._sockets is None:
                folder = socket_folder(self.folder)
                try:
                    made = new_socket()
                except BaseException:
                    folder.close()
                    raise
                self._socket, self._sockets = made, folder
            # Full: it has been woken. Refused, gone or shut: it is dead, or closing.
            with suppress(
                BlockingIOError, ConnectionRefusedError, FileNotFoundError, BrokenPipeError
            ):
                self._sockets.send(self._socket, _RING, name + _SOCKET)

    def remove(self, name: str) -> None:
        """Remove the files of a process entry; other processes may do so at the same time."""
        for path in (
            self.path(name, _SAYS),
            self.path(name, _SOCKET),
            self.path(name, _NOTES),
        ):
            _remove(path)
        remove_left(self.folder, name + _SAYS)
        control_messages = self.path(name, _CONTROL_MESSAGES)
        for _ in range(_TRIES):  # a control message may come in between
            try:
                for path in control_messages.iterdir():
                    path.unlink(missing_ok=True)
                control_messages.rmdir()
            except FileNotFoundError:
                break
            except OSError:
                continue
        _remove(self.life_path(name))

    def remove_unfinished(self) -> None:
        """Remove the files of process entries whose process died before they had a name.

        Such a file is a minute old or more; a process that takes longer to lock it opens no entry.
        Those of a process that waited for an answer are removed, too.
        """
        for path in self.folder.glob(f"{_STAGED}*{_LIFE}"):
            with suppress(FileNotFoundError):
                staged = path.name.removesuffix(_LIFE)
                old = time.time() - path.stat().st_mtime > _UNFINISHED_S
                if old and not self.lives(staged):
                    path.unlink()  # first: its entry is opened no more
                    self.remove(staged.removeprefix(_STAGED))

    def close(self) -> None:
        """Release the socket."""
        with self._lock:
            self._closed = True
            # First: after the close its number may belong to another file at the next call.
            known, folder = self._socket, self._sockets
            self._socket = self._sockets = None
            try:
                if known is not None:
                    known.close()
            finally:
                if folder is not None:
                    folder.close()

    def _names(self) -> list[str]:
        try:
            files = [path.name for path in self.folder.iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(
            file.removesuffix(_LIFE)
            for file in files
            if file.endswith(_LIFE) and not file.startswith(_STAGED)
        )

    def _read(self, name: str) -> ProcessInfo | None:
        try:
            content = loads_strict(read_bounded(self.path(name, _SAYS)), escaped_bytes=True)
            check(content, _SAID)
        except (FileNotFoundError, ValueError, CorruptFileError):
            return None  # a power loss empties what was never synced
        if "clients" in content:
            content["clients"] = [client for client in content["clients"] if _is_client(client)]
        return ProcessInfo(name, content)


class ProcessEntry(ForkAware):
    """The process entry of this process. :meth:`control_messages` belongs to one thread, the rest
    to any."""

    __slots__ = ("_ended", "_inherited", "_life", "_listed", "_socket", "name", "processes")

    def __init__(
        self, processes: ProcessEntries, content: Mapping[str, Any], *, listed: bool = True
    ) -> None:
        """Open a process entry; other processes see it when this returns.

        One that is not ``listed`` only gets answers: no process counts or watches it. Raises
        StoreNotWritableError.
        """
        self.processes = processes
        self._listed = listed
        self._inherited = self._ended = False
        self.name = f"{os.getpid()}-{os.urandom(6).hex()}"
        self._socket = new_socket()
        self._life: LockFile | None = None
        try:
            make_folders(processes.folder)
            self._life = LockFile(processes.life_path(_STAGED + self.name))
            self._life.lock(0)
            if listed:
                self._life.path.rename(processes.life_path(self.name))
            make_folders(processes.path(self.name, _CONTROL_MESSAGES))
            folder = socket_folder(processes.folder)
            try:
                folder.bind(self._socket, self.name + _SOCKET)
            finally:
                folder.close()
            adopt(processes.path(self.name, _SOCKET))
            if listed:
                self.say(content)
        except BaseException as error:
            with suppress(OSError):  # or it would look alive without a process
                self.close()
            if isinstance(error, OSError):
                reason = error.strerror or str(error)
                raise StoreNotWritableError(processes.folder, reason) from error
            raise
        at_fork(self)

    def say(self, content: Mapping[str, Any]) -> None:
        """Replace the process entry's information about itself; after an OSError the old one
        stays."""
        if self._inherited:
            return
        data = json.dumps(content, separators=(",", ":")).encode()
        put_whole(self.processes.path(self.name, _SAYS), data)

    def sleep(self) -> None:
        """Sleep until another thread or process wakes it."""
        import select

        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        while not poller.poll(_POLL_MS) and not self._ended:
            pass
        with suppress(BlockingIOError):
            while self._socket.recv(16):
                pass

    def end_sleep(self) -> None:
        """Make :meth:`sleep` return, now and from now on. Reads nothing in the store's folder,
        which may have been moved or deleted."""
        import socket

        self._ended = True
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RD)

    def control_messages(self) -> list[ControlMessage]:
        """Take the control messages that have come, oldest first.

        None is removed before all are read: an OSError leaves them for the next time.
        """
        folder = self.processes.path(self.name, _CONTROL_MESSAGES)
        try:
            paths = sorted(path for path in folder.iterdir() if not path.name.startswith(_STAGED))
            found = [
                control_message
                for path in paths
                if (control_message := _control_message(path)) is not None
            ]
        except FileNotFoundError:  # the store's folder was removed
            return []
        # An equal control message that comes between the two goes as well. Its event happened
        # before it came, so a reader of the first one now observes it.
        for path in paths:
            path.unlink(missing_ok=True)
        return found

    def close(self) -> None:
        """Close; others see that as a death with nothing left to do."""
        try:
            if not self._inherited:
                self.processes.remove(self.name)
                if not self._listed:
                    _remove(self.processes.life_path(_STAGED + self.name))
        finally:
            self._socket.close()
            if self._life is not None:
                self._life.close()

    def after_fork(self) -> None:
        """Leave the inherited process entry to the parent."""
        self._inherited = True
        self._socket.close()


def _is_client(value: Any) -> bool:
    try:
        check(value, _CLIENT)
    except ShapeError:
        return False
    return True


def _remove(path: Path) -> None:
    """Remove a file of a process entry. A folder in its place is left: it is not ours."""
    with suppress(FileNotFoundError, IsADirectoryError):
        path.unlink()


def _control_message(path: Path) -> ControlMessage | None:
    """Read a control message; None for a file that no process entry sends."""
    try:
        control_message = loads_strict(read_bounded(path), escaped_bytes=True)
        check(control_message, _CONTROL_MESSAGE)
    except (ValueError, CorruptFileError):
        return None
    found: ControlMessage = control_message
    return found
