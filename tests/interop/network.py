"""A loopback device of one's own, so that no port of the machine is taken or seen."""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator

_IN_NAMESPACE = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")


@functools.cache
def own_network() -> tuple[str, ...]:
    """Give what to put before a command, so that it runs in a network namespace of its own.

    The command replaces it (same process id). Empty where the system has no such thing or
    forbids it: then the command shares the machine's loopback device.
    """
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return ()
    done = subprocess.run([*_IN_NAMESPACE, "true"], capture_output=True, check=False)
    return _IN_NAMESPACE if done.returncode == 0 else ()


_FIRST_PORT, _PORTS_OF_A_WORKER = 12_000, 2_000
"""Below the ports that systems give to outgoing connections, which may come at any moment."""


def _own_ports() -> Iterator[int]:
    """Give ports that no other worker of this run gives; each process begins elsewhere."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 10
    for at in itertools.count(os.getpid() * 8):
        yield _FIRST_PORT + worker * _PORTS_OF_A_WORKER + at % _PORTS_OF_A_WORKER


_ports = _own_ports()


def _is_free(port: int) -> bool:
    """Tell whether a server can listen there on all addresses, as brokers do."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("", port))
        except OSError:
            return False
        return True


def free_ports() -> tuple[int, int]:
    """Give a port for a broker (the second below it, its "fast" port, is free too) and one more."""
    while True:
        fast, _, listen, other = (next(_ports) for _ in range(4))
        if listen == fast + 2 and all(map(_is_free, (fast, listen, other))):
            return listen, other
