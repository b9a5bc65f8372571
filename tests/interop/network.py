"""A loopback device of one's own, so that no port of the machine is taken or seen."""

from __future__ import annotations

import functools
import shutil
import socket
import subprocess

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


def free_ports() -> tuple[int, int]:
    """Give a port for a broker (the second below it, its "fast" port, is free too) and one more."""
    while True:
        with socket.socket() as fast, socket.socket() as listen, socket.socket() as other:
            fast.bind(("127.0.0.1", 0))
            port: int = fast.getsockname()[1] + 2
            try:
                listen.bind(("127.0.0.1", port))
            except (OSError, OverflowError):
                continue
            other.bind(("127.0.0.1", 0))
            return port, other.getsockname()[1]
