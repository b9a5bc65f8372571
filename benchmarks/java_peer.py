"""Apache RocketMQ 4.9.7 itself as a peer: its store in a JVM, or a broker with its clients.

Jars and JVMs come from the interop tests (``tests.support.java``): Maven fetches the jars once into
a cache outside of this folder. The classes of ``java/`` are compiled beside them. Everything that
talks by TCP lives in a network namespace of its own, where the system allows it.
"""

from __future__ import annotations

import functools
import hashlib
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.interop.network import own_network
from tests.support.java import JavaError, JavaProcess, Release, cache_folder, prepare

from .run import NotMeasurableError

VERSION = "4.9.7"
NAMESRV_PORT = 9876
BROKER_PORT = 10911
NAMESRV = f"127.0.0.1:{NAMESRV_PORT}"
_SOURCES = Path(__file__).with_name("java")
_BOOTED = "boot success"
_PATIENCE_S = 120.0
_MANY_SECONDS = 600.0

# The garbage collector of RocketMQ's own scripts; heaps as a machine of this size has room for.
_OPTIONS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "-XX:+UseG1GC",
    "-XX:-UsePerfData",
    "-Dfile.encoding=UTF-8",
    "-Drocketmq.client.logUseSlf4j=true",
)
SERVER_HEAP = ("-Xms2g", "-Xmx2g")
STORE_HEAP = ("-Xms3g", "-Xmx3g", "-XX:+AlwaysPreTouch")
CLIENT_HEAP = ("-Xms1g", "-Xmx1g")
SHORT_HEAP = ("-Xms1g", "-Xmx1g", "-Xmn256m")
"""Those of RocketMQ's tools.sh."""


@functools.cache
def release() -> Release:
    """Fetch the jars and compile our classes, unless that was done before.

    NotMeasurableError names what is missing.
    """
    for program in ("java", "javac", "mvn"):
        if shutil.which(program) is None:
            raise NotMeasurableError(
                f"{program} is not there; RocketMQ's jars need a JDK and Maven"
            )
    try:
        tests = prepare(VERSION)
    except JavaError as error:
        raise NotMeasurableError(f"RocketMQ's jars: {str(error).splitlines()[-1]}") from None
    sources = sorted(_SOURCES.glob("*.java"))
    content = b"".join(path.read_bytes() for path in (*sources, _SOURCES / "logback.xml"))
    digest = hashlib.sha256(content + tests.classes.name.encode()).hexdigest()[:16]
    classes = cache_folder() / f"rocketmq-{VERSION}" / f"bench-{digest}"
    if not classes.exists():
        with tempfile.TemporaryDirectory(dir=classes.parent) as folder:
            path = f"{tests.classes}:{tests.jars}/*"
            lint = "-Xlint:all,-processing,-classfile"
            command = ["javac", lint, "-Werror", "-d", folder, "-cp", path, *map(str, sources)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotMeasurableError(f"javac: {done.stderr}")
            shutil.copy(_SOURCES / "logback.xml", folder)
            made = Path(folder) / "made"
            made.mkdir()
            for path_ in Path(folder).iterdir():
                if path_ != made:
                    path_.rename(made / path_.name)
            if not classes.exists():
                made.rename(classes)
    return Release(VERSION, tests.jars, classes)


def command(main: str, *arguments: str, heap: tuple[str, ...], home: Path) -> list[str]:
    """Give the command line of a JVM; ``home`` takes what RocketMQ writes beside its store."""
    found = release()
    tests = prepare(VERSION).classes
    path = f"{found.classes}:{tests}:{found.jars}/*"
    places = (f"-Duser.home={home}", f"-Djava.io.tmpdir={home}")
    return ["java", *_OPTIONS, *heap, *places, "-cp", path, main, *arguments]


class Bench:
    """A JVM that does a store's or a client's work on request (``java/Bench.java``)."""

    def __init__(self, process: JavaProcess) -> None:
        self._process = process

    def ask(self, what: str, **request: Any) -> Any:
        """Let it do the work; give its answer."""
        return self._process.ask(what, request, deadline=_MANY_SECONDS)

    def kill(self) -> None:
        """End it as ``kill -9`` does."""
        self._process.kill()


@contextmanager
def running_store(scratch: Path, heap: tuple[str, ...] = STORE_HEAP) -> Iterator[Bench]:
    """A JVM for RocketMQ's store."""
    log = scratch / "java-store.log"
    with JavaProcess(command("Bench", "serve", heap=heap, home=scratch), log) as process:
        yield Bench(process)


@dataclass(frozen=True)
class Cluster:
    """A name server and a broker, each a JVM, and how to start more beside them."""

    scratch: Path
    inside: tuple[str, ...]
    """Prefix of a command, so that it runs in their network."""

    @contextmanager
    def client(self) -> Iterator[Bench]:
        """A JVM with a connected client."""
        java = command("Bench", "serve", heap=CLIENT_HEAP, home=self.scratch)
        log = self.scratch / "java-client.log"
        with JavaProcess([*self.inside, *java], log) as process:
            client = Bench(process)
            client.ask("connect", namesrv=NAMESRV)
            yield client

    def first_message(self, topic: str) -> None:
        """Send one message from a JVM that ends with it."""
        java = command("Bench", "first", NAMESRV, topic, heap=CLIENT_HEAP, home=self.scratch)
        done = subprocess.run(
            [*self.inside, *java], capture_output=True, text=True, check=False, timeout=_PATIENCE_S
        )
        if "acknowledged SEND_OK" not in done.stdout:
            raise NotMeasurableError(f"no message went through: {done.stderr[-500:]}")

    def mqadmin(self, *arguments: str, quiet_s: float | None = None) -> tuple[float, float]:
        """Run a command of mqadmin; seconds until its output was there, and until it ended.

        With ``quiet_s`` it is killed when it has printed nothing more for so long: it only waits
        for three seconds then.
        """
        java = command(
            "org.apache.rocketmq.tools.command.MQAdminStartup",
            *arguments,
            *("-n", NAMESRV),
            heap=SHORT_HEAP,
            home=self.scratch,
        )
        env = {**os.environ, "ROCKETMQ_HOME": str(self.scratch / "home")}
        start = perf_counter()
        with subprocess.Popen(
            [*self.inside, *java], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
        ) as process:
            killer = threading.Timer(_PATIENCE_S, process.kill)
            killer.start()
            assert process.stdout is not None
            assert process.stderr is not None
            printed, last = b"", start
            while True:
                given = None if not printed else quiet_s
                if not select.select([process.stdout], [], [], given)[0]:
                    process.kill()
                    break
                if not (piece := os.read(process.stdout.fileno(), 1 << 16)):
                    break
                printed += piece
                last = perf_counter()
            process.wait()
            end = perf_counter()
            killer.cancel()
            error = process.stderr.read().decode(errors="replace")
        if (
            process.returncode not in {0, -signal.SIGKILL}
            or not printed.strip()
            or "Exception" in error
        ):
            raise NotMeasurableError(f"mqadmin {arguments[0]}: {error[-500:] or 'no output'}")
        return last - start, end - start


@contextmanager
def running_cluster(root: Path, scratch: Path) -> Iterator[Cluster]:
    """Start name server and broker on a store folder; they are killed at the end."""
    home = scratch / "home"
    (home / "conf").mkdir(parents=True, exist_ok=True)
    for name in ("broker", "namesrv", "tools"):
        shutil.copy(_SOURCES / "logback.xml", home / "conf" / f"logback_{name}.xml")
    settings = {
        "namesrvAddr": NAMESRV,
        "brokerIP1": "127.0.0.1",
        "listenPort": BROKER_PORT,
        "storePathRootDir": root,
        "storePathCommitLog": root / "commitlog",
        # A stall of a shared machine is no error of RocketMQ's.
        "waitTimeMillsInSendQueue": 20_000,
        "osPageCacheBusyTimeOutMills": 20_000,
    }
    conf = home / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    network = own_network()
    with ExitStack() as stack:
        started = [*network, *command("Bench", "namesrv", heap=("-Xms256m",), home=scratch)]
        namesrv = stack.enter_context(_server(started, home, scratch / "namesrv.log"))
        inside: tuple[str, ...] = ()
        if network:
            inside = ("nsenter", "-t", str(namesrv), "-U", "-n", "--preserve-credentials")
        broker = command("Bench", "broker", "-c", str(conf), heap=SERVER_HEAP, home=scratch)
        stack.enter_context(_server([*inside, *broker], home, scratch / "broker.log"))
        yield Cluster(scratch, inside)


@contextmanager
def _server(command_: list[str], home: Path, log: Path) -> Iterator[int]:
    """A server that has booted; gives its process id."""
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command_,
            env={**os.environ, "ROCKETMQ_HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as process,
    ):
        killer = threading.Timer(_PATIENCE_S, process.kill)
        killer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if _BOOTED in line:
                    break
            else:
                text = log.read_text(errors="replace")[-500:]
                raise NotMeasurableError(f"a server of RocketMQ did not start: {text}")
            killer.cancel()
            yield process.pid
        finally:
            killer.cancel()
            process.kill()
