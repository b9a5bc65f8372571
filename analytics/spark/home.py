"""A SPARK_HOME of our own, in the user's cache: Spark's jars, and a short way to start its JVM.

Spark's own start takes three detours. Its ``spark-submit`` is a shell script that starts one JVM to
work out the command line of another; its workers unpack a zipped PySpark and compile it anew,
because the home has one; and its JVM loads and links 15,000 classes each time. So this home

* links the jars of the installed PySpark and has no ``python`` folder: workers import the
  installed one;
* has a ``bin/spark-submit`` that becomes the JVM at once;
* may hold a class-data archive (``rmqctl lag warmup`` makes it), which the JVM uses if it fits.

The folder is named after PySpark's version, Java's, and the paths of both, so nothing gets stale;
``lag warmup`` removes unused folders.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from analytics.errors import SparkNotFoundError

from .java import Java

ARCHIVE: Final = "classes.jsa"
LOG: Final = "spark.log"
_UNUSED_S: Final = 30 * 86_400

_PACKAGES: Final = (
    "java.base/java.lang",
    "java.base/java.lang.invoke",
    "java.base/java.lang.reflect",
    "java.base/java.io",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/jdk.internal.ref",
    "java.base/sun.nio.ch",
    "java.base/sun.nio.cs",
    "java.base/sun.security.action",
    "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)
"""Modules of the JDK that Spark opens (org.apache.spark.launcher.JavaModuleOptions). The module
of vector instructions, which it adds too, is for machine learning, not in every Java, and warns."""
_OPTIONS: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:-UsePerfData",
    "-Xlog:disable",
    "-Xlog:all=off",
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
_SUBMIT: Final = """\
#!/bin/sh
# Becomes Spark's JVM. Made by rmqctl (analytics/spark/home.py).
exec {java} ${{RMQCTL_SPARK_JVM:+"@$RMQCTL_SPARK_JVM"}} {options} -cp {jars} \\
  org.apache.spark.deploy.SparkSubmit "$@"
"""


class SparkHome(NamedTuple):
    """The folder, and its contents."""

    path: Path

    @property
    def archive(self) -> Path:
        """The class-data archive, if ``lag warmup`` has made it."""
        return self.path / ARCHIVE


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of data that can be rebuilt: ``rmqctl`` in the XDG cache folder."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "/tmp")) / ".cache")
    return Path(base) / "rmqctl"


def spark_home(
    java: Java, environ: Mapping[str, str] | None = None, *, instead: Path | None = None
) -> SparkHome:
    """The home for a Java and the installed PySpark; made if it does not exist.

    SparkNotFoundError without PySpark. Where the cache cannot be written it is made in the folder
    ``instead``; OSError without one.
    """
    try:
        import pyspark
    except ImportError:
        raise SparkNotFoundError("PySpark") from None
    package = Path(pyspark.__file__).resolve().parent
    identity = f"{package}\0{java.program}\0{java.version}\0{_SUBMIT}\0{_OPTIONS}\0{_PACKAGES}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
    name = f"spark-{pyspark.__version__}-java{java.major}-{digest}"
    try:
        return _made(cache_folder(environ) / name, package, java)
    except OSError:
        if instead is None:
            raise
        return _made(instead / name, package, java)


def remove_unused(home: SparkHome, now_s: float) -> list[Path]:
    """Remove other homes beside this one that cannot be used any more, because their PySpark is
    gone, or that were not used for a month; gives their paths."""
    removed = []
    for path in sorted(home.path.parent.glob("spark-*-java*-*")):
        submit = path / "bin" / "spark-submit"
        if path == home.path or not submit.is_file():
            continue
        is_unused = now_s - submit.stat().st_mtime > _UNUSED_S
        if is_unused or not (path / "jars").is_dir():
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
    return removed


def _made(path: Path, package: Path, java: Java) -> SparkHome:
    submit = path / "bin" / "spark-submit"
    if submit.is_file() and (path / "jars").is_dir():
        with suppress(OSError):
            os.utime(submit)  # it is in use
        return SparkHome(path)
    submit.parent.mkdir(parents=True, exist_ok=True)
    jars = path / "jars"
    if not jars.is_dir():
        jars.unlink(missing_ok=True)
        jars.symlink_to(package / "jars")
    options = [*_OPTIONS, *(f"--add-opens={package}=ALL-UNNAMED" for package in _PACKAGES)]
    # Another process may be making the same one: both files are whole.
    handle, new = tempfile.mkstemp(dir=submit.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        program, classes = shlex.quote(str(java.program)), shlex.quote(f"{jars}/*")
        file.write(_SUBMIT.format(java=program, options=" ".join(options), jars=classes))
    Path(new).chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
    Path(new).replace(submit)
    return SparkHome(path)
