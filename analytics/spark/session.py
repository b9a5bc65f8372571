"""A Spark that starts in seconds, prints nothing, and leaves no files."""

from __future__ import annotations

import logging
import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from analytics.errors import SparkFailedError, SparkNotFoundError

from .home import LOG, spark_home
from .interrupts import Interrupts, own_handler, put_off
from .java import find_java
from .launch import SparkJvm, environment

if TYPE_CHECKING:
    from pyspark import SparkContext

LOCAL: Final = "local[*]"
_REACH_S: Final = 5.0
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
_SOCKETS: Final = "spark.python.unix.domain.socket"
_LONGEST_FOLDER: Final = 60
"""Bytes of a folder's path that leave room for the name of a socket in it (108 in all)."""
_ON_A_CLUSTER: Final = {
    "spark.locality.wait": "0s",
    "spark.executor.memory": "512m",  # little is done in its JVM
}
_JVM: Final = ("-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class SparkSession:
    """A context of Spark's for one report. A context manager; one at a time in a process.

    ``master`` is Spark's: ``local[*]`` runs in this machine, ``spark://...`` elsewhere: there
    rmqctl must be installed in the Python of PYSPARK_PYTHON (python3 unless set), and the stores
    must be under the same paths. ``jvm`` are more options for the JVM, without the class-data
    archive. ``orderly``: let the JVM end by itself.
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
        self._environ = environ
        self._conf = {**_CONF, **self._usual(master), **(conf or {})}
        self._more_jvm = jvm
        self._work: tempfile.TemporaryDirectory[str] | None = None
        self._context: SparkContext | None = None
        self._jvm: SparkJvm | None = None
        self._interrupts = Interrupts()

    @property
    def log(self) -> Path | None:
        """Output of Spark and its workers; removed with the session."""
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
            self._interrupts.begin(self._kill)
            self._start(Path(self._work.name))
        except BaseException as error:
            self.close()
            self._raise_if_interrupted(error)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        self._raise_if_interrupted(error)

    def close(self) -> None:
        """End Spark: at once if it runs in this machine, else by its own shutdown.

        An interrupt may be raised anywhere in it, also one that Python has ignored before.
        """
        try:
            self._end_spark()
        except BaseException:
            self._kill()
            raise
        finally:
            self._context = self._jvm = None
            _forget_context()
            if self._work is not None:
                self._work.cleanup()
                self._work = None
            self._interrupts.end()

    def _end_spark(self) -> None:
        context: Any = self._context
        if context is not None:
            # It prints a traceback when the JVM goes first.
            context._accumulatorServer.handle_error = _say_nothing
            if self._orderly:
                context.stop()
            else:  # no finalizer calls a JVM that has ended
                context._gateway._gateway_client.is_connected = False
        if self._jvm is not None:
            # Nothing of it must stay, and its workers end with it.
            self._jvm.end(at_once=not self._orderly)
        if context is not None and not self._orderly:
            context._gateway.shutdown()  # it would wait for the answer of a JVM that runs

    def _kill(self) -> None:
        """End the JVM without a wait, unless it is to end by itself."""
        if self._jvm is not None and not self._orderly:
            self._jvm.kill()

    def _raise_if_interrupted(self, error: BaseException | None) -> None:
        """After Ctrl-C other errors are ignored."""
        if self._interrupts.came and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error

    @property
    def is_local(self) -> bool:
        """Whether everything runs in this machine's JVM, and ends with it."""
        return self.master.startswith("local")

    def output(self) -> str:
        """Spark's output so far."""
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
        return {**(_LOOPBACK if loopback else {}), **_ON_A_CLUSTER}

    def _sockets(self, work: Path) -> dict[str, str]:
        """Let Spark talk to Python through sockets that are removed with the folder: Spark leaves
        them."""
        if not self.is_local or len(os.fsencode(work)) > _LONGEST_FOLDER:
            return {f"{_SOCKETS}.enabled": "false"}
        return {f"{_SOCKETS}.enabled": "true", f"{_SOCKETS}.dir": str(work)}

    def _start(self, work: Path) -> None:
        _check_reachable(self.master)
        try:
            from pyspark import SparkConf, SparkContext
        except ImportError as error:
            raise SparkNotFoundError(str(error.name or error)) from None
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        home = spark_home(self.java, self._environ, instead=work)
        log = work / LOG
        (work / "log4j2.properties").write_text(_LOG4J.format(log=log), "utf-8")
        conf = SparkConf(loadDefaults=False)
        settings = {
            "spark.master": self.master,
            "spark.local.dir": str(work),
            **self._sockets(work),
            **self._conf,
        }
        for name, value in settings.items():
            conf.set(name, value)
        jvm = [
            *_JVM,
            *self._more_jvm,
            f"-Dlog4j2.configurationFile={work}/log4j2.properties",
            f"-Djava.io.tmpdir={work}",  # it is killed, and would leave its libraries there
        ]
        if home.archive.is_file() and not self._more_jvm:
            jvm += [f"-XX:SharedArchiveFile={home.archive}", "-Xshare:auto"]
        options = work / "jvm.options"
        options.write_bytes(os.fsencode("".join(map(_option_line, jvm))))
        python = sys.executable if self.is_local else os.environ.get("PYSPARK_PYTHON")
        variables = {
            "SPARK_HOME": str(home.path),
            "RMQCTL_SPARK_JVM": str(options),
            "SPARK_LOCAL_IP": "127.0.0.1" if "spark.driver.host" in settings else None,
            "PYSPARK_PYTHON": python,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_CONF_DIR": None,
        }
        with log.open("ab") as output, environment(variables):
            try:
                submit = home.path / "bin" / "spark-submit"
                with put_off():
                    self._jvm = SparkJvm(submit, settings, work, output)
                with own_handler():
                    self._context = SparkContext(conf=conf, gateway=self._jvm.gateway(conf))
            except Exception as error:
                what = f"Spark did not start: {_last_line(self.output()) or _first_line(error)}"
                raise SparkFailedError(what) from error


def _option_line(option: str) -> str:
    """One line of an argument file of ``java``; paths may have blanks in them."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"\n'


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


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _say_nothing(*_: object) -> None:
    pass


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def _forget_context() -> None:
    """Let the next session of this process begin anew (PySpark keeps its last one)."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    if context is not None:
        context._active_spark_context = None
        context._gateway = None
        context._jvm = None
    sql: Any = getattr(sys.modules.get("pyspark.sql"), "SparkSession", None)
    if sql is not None:
        sql._instantiatedSession = None
