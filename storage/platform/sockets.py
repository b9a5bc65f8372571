"""Datagram sockets of a store's folder, whose path may be longer than a socket address (108
bytes)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket


def new_socket() -> socket.socket:
    """A datagram socket without a name, which never blocks."""
    import socket  # takes 1 ms, which a check of liveness does not need

    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
    made.setblocking(False)
    return made


def address(folder_fd: int, name: str) -> str:
    """The address of a socket in an open folder."""
    return f"/proc/self/fd/{folder_fd}/{name}"
