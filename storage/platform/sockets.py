"""Datagram sockets in a folder whose path may be longer than a socket address (104 bytes).

Linux: through the descriptor of the folder. Any POSIX system: by the path, and for a long one by a
symbolic link in a folder of temporary files, which is there for the time of the call. The sockets
are the same, so processes of both forms reach each other.
"""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import LINUX, form

if TYPE_CHECKING:
    import socket

_LONGEST: Final = 100
"""Bytes of an address that any system takes."""


def new_socket() -> socket.socket:
    """A datagram socket without a name, which never blocks and is not inherited."""
    import socket  # takes 1 ms, which a check of liveness does not need

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.setblocking(False)
    return made


@contextmanager
def full_is_busy() -> Iterator[None]:
    """Raise BlockingIOError for a full queue on all systems: some have ENOBUFS for it."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOBUFS:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
        raise


class SocketFolder(ABC):
    """A folder of sockets. Its methods raise OSError."""

    def bind(self, made: socket.socket, name: str) -> None:
        """Give a socket its name."""
        with self._address(name) as address:
            made.bind(address)

    def connect(self, made: socket.socket, name: str) -> None:
        """Connect a socket to the one of a name."""
        with self._address(name) as address:
            made.connect(address)

    def send(self, made: socket.socket, data: bytes, name: str) -> None:
        """Send to the socket of a name; BlockingIOError if its queue is full."""
        with self._address(name) as address, full_is_busy():
            made.sendto(data, address)

    @abstractmethod
    def close(self) -> None:
        """Release it. Twice is fine."""

    @abstractmethod
    def _address(self, name: str) -> AbstractContextManager[str]:
        """The address of a socket, for a block."""


class _OpenFolder(SocketFolder):
    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def _address(self, name: str) -> AbstractContextManager[str]:
        return nullcontext(f"/proc/self/fd/{self._fd}/{name}")

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _NamedFolder(SocketFolder):
    def __init__(self, path: Path) -> None:
        self._path = path.absolute()

    def _address(self, name: str) -> AbstractContextManager[str]:
        address = str(self._path / name)
        if len(os.fsencode(address)) <= _LONGEST:
            return nullcontext(address)
        return self._short(name)

    @contextmanager
    def _short(self, name: str) -> Iterator[str]:
        import tempfile

        made = Path(tempfile.mkdtemp(prefix="rmqctl-"))
        link = made / "s"
        try:
            link.symlink_to(self._path)
            yield f"{link}/{name}"
        finally:
            with suppress(OSError):
                link.unlink()
            made.rmdir()

    def close(self) -> None:
        """Nothing is open."""


def _open_folder(path: Path) -> SocketFolder:
    return _OpenFolder(path)


def _name_folder(path: Path) -> SocketFolder:
    return _NamedFolder(path)


socket_folder: Final = form(_open_folder, _name_folder)
"""A folder of sockets that is there. Raises OSError."""
CAN_END_POLLS: Final = LINUX
"""Whether shutting a socket without a peer ends the polls of other threads."""
