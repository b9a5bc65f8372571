"""A Spark that starts in seconds, says nothing, and leaves nothing behind."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from analytics.errors import SparkFailedError, SparkNotFoundError

from .home import LOG, SparkHome, spark_home
from .java import find_java

if TYPE_CHECKING:
    from pyspark import SparkContext

LOCAL: Final = "local[*]"
_REACH_S: Final = 5.0
_END_S: Final = 120.0
_LOG4J: Final = """\
status = off
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {log}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d %p %c: %m%n%ex
"""
_QUIET_LOGGERS: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")
_CONF: Final = {
    "spark.app.name": "rmqctl",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.python.unix.domain.socket.enabled": "true",
}
_LOOPBACK: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
_IN_ONE_PROCESS: Final = {
    "spark.python.daemon.module": "analytics.spark.daemon",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
}
_JVM: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class SparkSession:
    """A context of Spark's for one report. A context manager; one at a time in a process.

    ``master`` is Spark's: ``local[*]`` runs in this machine, ``spark://...`` elsewhere: there
    rmqctl must be installed in the Python that PYSPARK_PYTHON names there (python3 unless set), and
    the stores must be under the same paths. ``jvm`` are more options
    for the JVM, without the class-data archive. ``orderly``: let the JVM end by itself.
    """

    def __init__(
        self,
        master: str = LOCAL,
        *,
        conf: Mapping[str, str] | None = None,
        jvm: tuple[str, ...] = (),
        orderly: bool = False,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.master = master
        self._orderly = orderly or not self.is_local
        self.java = find_java(environ)
        self.home: SparkHome = spark_home(self.java, environ)
        self._conf = {**_CONF, **self._usual(master), **(conf or {})}
        self._more_jvm = jvm
        self._work: tempfile.TemporaryDirectory[str] | None = None
        self._context: SparkContext | None = None
        self._jvm: Any = None

    @property
    def log(self) -> Path | None:
        """What Spark and its workers say; gone with the session."""
        return None if self._work is None else Path(self._work.name) / LOG

    @property
    def context(self) -> SparkContext:
        """Spark's context; only between enter and exit."""
        if self._context is None:
            raise SparkFailedError("this session has not been started")
        return self._context

    def __enter__(self) -> Self:
        """Start Spark. Raises SparkNotFoundError and SparkFailedError."""
        self._work = tempfile.TemporaryDirectory(prefix="rmqctl-spark-", ignore_cleanup_errors=True)
        try:
            self._start(Path(self._work.name))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End Spark: at once if it runs in this machine, politely elsewhere."""
        context, self._context = self._context, None
        if context is not None:
            # It prints a traceback when the JVM goes first.
            server: Any = context._accumulatorServer
            server.handle_error = _say_nothing
            if self._orderly:
                context.stop()
            else:
                gateway: Any = context._gateway
                gateway.shutdown()  # so that nobody talks to a JVM that has gone
        jvm, self._jvm = self._jvm, None
        if jvm is not None:
            if not self._orderly:
                jvm.kill()  # nothing of it is to stay, and its workers end with it
            jvm.stdin.close()  # Spark's JVM ends when its standard input does
            _wait(jvm)
        _forget_context()
        if self._work is not None:
            self._work.cleanup()
            self._work = None

    @property
    def is_local(self) -> bool:
        """Whether everything runs in this machine's JVM, and ends with it."""
        return self.master.startswith("local")

    def said(self) -> str:
        """What Spark has said so far."""
        log = self.log
        try:
            return "" if log is None else log.read_text("utf-8", "replace")
        except OSError:
            return ""

    @staticmethod
    def _usual(master: str) -> dict[str, str]:
        if master.startswith("local"):
            return {**_LOOPBACK, **_IN_ONE_PROCESS}
        loopback = "//127.0.0.1:" in master or "//localhost:" in master
        return {**(_LOOPBACK if loopback else {}), "spark.locality.wait": "0s"}

    def _start(self, work: Path) -> None:
        _check_reachable(self.master)
        try:
            from pyspark import SparkConf, SparkContext, java_gateway
        except ImportError as error:
            raise SparkNotFoundError(str(error.name or error)) from None
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        log = work / LOG
        (work / "log4j2.properties").write_text(_LOG4J.format(log=log), "utf-8")
        conf = SparkConf(loadDefaults=False)
        settings = {"spark.master": self.master, "spark.local.dir": str(work), **self._conf}
        for name, value in settings.items():
            conf.set(name, value)
        jvm = [*_JVM, *self._more_jvm, f"-Dlog4j2.configurationFile=file:{work}/log4j2.properties"]
        if self.home.archive.is_file() and not self._more_jvm:
            jvm += [f"-XX:SharedArchiveFile={self.home.archive}", "-Xshare:auto"]
        with (
            log.open("ab") as said,
            _environment(
                SPARK_HOME=str(self.home.path),
                RMQCTL_SPARK_JVM=" ".join(jvm),
                SPARK_LOCAL_IP="127.0.0.1" if "spark.driver.host" in settings else None,
                PYSPARK_PYTHON=sys.executable
                if self.is_local
                else os.environ.get("PYSPARK_PYTHON"),
                PYSPARK_DRIVER_PYTHON=sys.executable,
                PYSPARK_SUBMIT_ARGS=None,
                SPARK_CONF_DIR=None,
            ),
        ):
            try:
                launch: Any = java_gateway.launch_gateway
                gateway = launch(conf, popen_kwargs={"stdout": said, "stderr": said})
                self._jvm = gateway.proc
                self._context = SparkContext(conf=conf, gateway=gateway)
            except Exception as error:
                what = f"Spark did not start: {_last_line(self.said()) or _first_line(error)}"
                raise SparkFailedError(what) from error


@contextmanager
def _environment(**values: str | None) -> Iterator[None]:
    """Set variables for a block; None takes one away."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        _set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _set(name, value)


def _wait(jvm: Any) -> None:
    try:
        jvm.wait(_END_S)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()


def _check_reachable(master: str) -> None:
    """Spark itself tries for a minute before it gives up."""
    if not master.startswith("spark://"):
        return
    tried = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), _REACH_S).close()
        except (OSError, ValueError) as error:
            tried.append(f"{address}: {getattr(error, 'strerror', None) or error}")
        else:
            return
    raise SparkFailedError(f"no Spark master answers at {', '.join(tried)}")


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _say_nothing(*_: object) -> None:
    pass


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _forget_context() -> None:
    """Let the next session of this process start a JVM of its own (PySpark keeps the last one)."""
    context = sys.modules.get("pyspark.core.context") or sys.modules.get("pyspark")
    kind: Any = getattr(context, "SparkContext", None)
    if kind is not None:
        kind._active_spark_context = None
        kind._gateway = None
        kind._jvm = None
