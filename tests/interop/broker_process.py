"""A broker as an operator starts it: RocketMQ's BrokerStartup with a broker.conf."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.network import free_ports, own_network
from tests.interop.store_probe import Settings
from tests.support.java import JavaError, Release

_BOOTED = "boot success"
_BOOT_SECONDS = 60.0


class BrokerProcess:
    """A broker's process that has either booted or ended."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        """Read the process's output until it has booted or ended; limited in time."""
        self._process = process
        self._log = log
        self.booted = False
        killer = threading.Timer(_BOOT_SECONDS, process.kill)
        killer.start()
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line)
                if _BOOTED in line:
                    self.booted = True
                    break
            if not self.booted:
                process.wait()
        finally:
            killer.cancel()
        self.printed = "".join(lines)

    @property
    def pid(self) -> int:
        """Process id of the JVM."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.poll()

    @property
    def logged(self) -> str:
        """What it has printed to standard error, and logged, so far."""
        return self._log.read_text(errors="replace")

    def stop(self) -> int:
        """End it as `mqshutdown` does (SIGTERM: a clean shutdown); give the exit code."""
        self._process.terminate()
        return self._process.wait(60.0)


@contextmanager
def started_broker(
    release: Release, root: Path, scratch: Path, settings: Settings | None = None
) -> Iterator[BrokerProcess]:
    """Start a broker on a store folder and wait until it has booted or failed.

    No name server is there; a broker boots without one. Killed at the end if it still runs.
    """
    port, ha_port = free_ports()
    home = scratch / "rocketmq-home"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    for config in release.classes.glob("*logback.xml"):
        shutil.copy(config, home / "conf" / "logback_broker.xml")
    conf = {
        **(settings or {}),
        "namesrvAddr": "127.0.0.1:9",
        "brokerIP1": "127.0.0.1",
        "listenPort": port,
        "haListenPort": ha_port,
        "storePathRootDir": root,
        "storePathCommitLog": root / "commitlog",
    }
    (home / "broker.conf").write_text("".join(f"{name}={conf[name]}\n" for name in conf))
    command = release.command("BrokerMain", "-c", str(home / "broker.conf"), home=scratch)
    log = scratch / "broker.log"
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            [*own_network(), *command],
            env={**os.environ, "ROCKETMQ_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        try:
            broker = BrokerProcess(process, log)
            if process.returncode == -9:
                raise JavaError(f"no boot in {_BOOT_SECONDS} s\n{broker.logged}")
            yield broker
        finally:
            process.kill()
