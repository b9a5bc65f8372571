"""Apache RocketMQ's own classes: fetched once by Maven, run in JVMs that answer JSON lines."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

SOURCES = Path(__file__).resolve().parent.parent / "interop" / "java"
"""Our few lines of Java: common/ and what differs, release49/ and release53/."""

_MODULES = ("broker", "namesrv", "store", "client", "tools")

_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rmqctl.tests</groupId>
  <artifactId>rocketmq</artifactId>
  <version>{version}</version>
  <packaging>pom</packaging>
  <dependencies>{dependencies}
  </dependencies>
  <build><plugins><plugin>
    <groupId>org.apache.maven.plugins</groupId>
    <artifactId>maven-dependency-plugin</artifactId>
    <version>3.6.1</version>
  </plugin></plugins></build>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>org.apache.rocketmq</groupId>
      <artifactId>rocketmq-{module}</artifactId>
      <version>{version}</version>
    </dependency>"""

SHORT_LIVED = ("-XX:-UsePerfData", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of JVMs that live for seconds: they start fast and leave no files."""

# RocketMQ 4.9 unmaps files and counts direct memory with classes that JDK 9+ keeps to itself.
_JVM_OPTIONS = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    *SHORT_LIVED,
    "-Xmx512m",
    "-Dfile.encoding=UTF-8",
    "-Drocketmq.client.logUseSlf4j=true",
    "-Dtls.server.mode=disabled",  # each server would make a key and a certificate: seconds
)

_LOG_LINES_SHOWN = 40


class JavaError(AssertionError):
    """What RocketMQ threw, or how its JVM ended; with the end of its log."""


@dataclass(frozen=True, slots=True)
class Release:
    """One RocketMQ release, ready to run: its jars and our compiled classes."""

    version: str
    jars: Path
    classes: Path

    def command(self, main: str, *arguments: str, home: Path) -> list[str]:
        """Give the command line that runs a class; `home` takes what RocketMQ leaves in files."""
        class_path = f"{self.classes}:{self.jars}/*"
        places = (f"-Duser.home={home}", f"-Djava.io.tmpdir={home}")
        return ["java", *_JVM_OPTIONS, *places, "-cp", class_path, main, *arguments]


def cache_folder() -> Path:
    """Give the folder for jars and classes: $RMQCTL_TEST_CACHE or ~/.cache/rmqctl-tests."""
    given = os.environ.get("RMQCTL_TEST_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "rmqctl-tests"


def prepare(version: str) -> Release:
    """Fetch the jars of a release and compile our classes, unless that was done before."""
    folder = cache_folder() / f"rocketmq-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock"):
        return Release(version, jars := _fetch(version, folder), _compile(version, folder, jars))


def _fetch(version: str, folder: Path) -> Path:
    dependencies = "".join(_DEPENDENCY.format(module=m, version=version) for m in _MODULES)
    pom = _POM.format(version=version, dependencies=dependencies)
    jars = folder / f"jars-{_digest(pom.encode())}"
    if not jars.exists():
        (folder / "pom.xml").write_text(pom)
        partial = _empty(folder / "partial")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={partial}"]
        quiet = ["-q", "--batch-mode", "--strict-checksums", "-DincludeScope=runtime"]
        _run(["mvn", *quiet, *copy], folder)
        partial.rename(jars)
    return jars


def _compile(version: str, folder: Path, jars: Path) -> Path:
    major, minor, _ = version.split(".")
    parts = (SOURCES / "common", SOURCES / f"release{major}{minor}")
    files = sorted(file for part in parts for file in part.iterdir())
    javac = ["javac", "-Xlint:all,-processing,-classfile", "-Werror"]
    content = b"".join(file.name.encode() + file.read_bytes() for file in files)
    classes = folder / f"classes-{_digest(repr(javac).encode() + jars.name.encode() + content)}"
    if not classes.exists():
        partial = _empty(folder / "partial")
        sources = [str(file) for file in files if file.suffix == ".java"]
        _run([*javac, "-d", str(partial), "-cp", f"{jars}/*", *sources], folder)
        for file in files:
            if file.suffix != ".java":
                shutil.copy(file, partial)
        partial.rename(classes)
    return classes


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JavaError(f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class JavaProcess:
    """A JVM that answers one JSON line on standard output to each on standard input.

    It ends with this object, at the latest when its standard input ends with this process.
    """

    def __init__(self, command: list[str], log: Path) -> None:
        """Start it; `log` takes what RocketMQ logs. Returns when the JVM is ready."""
        self.log = log
        with log.open("ab") as stderr:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
            )
        self._unread = b""
        try:
            assert self._answer("start", 30.0) == {"ready": True}
        except BaseException:
            self.kill()
            raise

    @property
    def pid(self) -> int:
        """Process id of the JVM itself."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the JVM still runs."""
        return self._process.poll() is None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def ask(
        self, what: str, request: Mapping[str, Any] | None = None, *, deadline: float = 60.0
    ) -> Any:
        """Send a request and give the answer.

        Raises JavaError for what RocketMQ throws. A JVM that does not answer within `deadline`
        seconds is killed: its late answer would be taken for the next one's.
        """
        assert self._process.stdin is not None
        if not self.alive:
            raise JavaError(f"{what}: the JVM is gone{self._log_end()}")
        line = json.dumps({"do": what, **(request or {})}) + "\n"
        try:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise JavaError(f"{what}: the JVM is gone{self._log_end()}") from None
        reply = self._answer(what, deadline)
        if "error" in reply:
            raise JavaError(f"{what}: {reply['error']}{self._log_end()}")
        return reply["answer"]

    def kill(self) -> None:
        """End the JVM as by SIGKILL, as it stands; nothing happens if it has ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):  # by what a killed JVM did not read any more
                pipe.close()

    def _answer(self, what: str, deadline: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end = time.monotonic() + deadline
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if not selector.select(end - time.monotonic()):
                    self.kill()
                    raise JavaError(f"{what}: no answer in {deadline} s{self._log_end()}")
                chunk = os.read(self._process.stdout.fileno(), 1 << 20)
                if not chunk:
                    code = self._process.wait()
                    raise JavaError(f"{what}: the JVM ended with {code}{self._log_end()}")
                self._unread += chunk
        line, self._unread = self._unread.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _log_end(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()[-_LOG_LINES_SHOWN:]
        return "\n" + "\n".join(lines)
