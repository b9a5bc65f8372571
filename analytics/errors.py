"""Errors of reports.

AnalyticsError
  NoSuchStoreError      no folder matches the name
  NotAFolderError       a name with a scheme that is not read there, as s3a://
  ManifestError         a list of stores is malformed
  ObjectStoreError      a store in an object store cannot be read
  KeptError             a folder holds no kept reports
  HistoryVersionError   a kept report is of a later version
  KeptFileError         a file of kept reports cannot be read
  CompactionRunsError   a folder of kept reports is being compacted
  JoinedError           a kept report has been joined with others, and cannot be replaced
  NoArrowError          the [spark] extra's pyarrow is not installed
  JavaNotFoundError     no Java that Spark runs on
  SparkNotFoundError    the [spark] extra is not installed
  SparkFailedError      Spark did not start, or a job of it failed
  SinkError             Spark's rows were not stored
    SinkOptionError     an option is unknown, missing or malformed
    SinkSchemaError     the columns are not those of messages
    SinkRowError        a row is no message that a broker would take
    SinkCommitError     staged rows could not be stored, or it is unknown which were
  GroupProgressError    a stream's position cannot become the progress of a group
"""

from __future__ import annotations

from pathlib import Path


class AnalyticsError(Exception):
    """A report could not be made."""


class NoSuchStoreError(AnalyticsError):
    """No folder matches the name."""

    def __init__(self, text: str) -> None:
        super().__init__(f"no folder matches {text}")


class NotAFolderError(AnalyticsError):
    """A name with a scheme, which is no folder."""

    def __init__(self, text: str, scheme: str, *, is_object_store: bool = False) -> None:
        more = "; Spark's source 'rocketmq' reads it there" if is_object_store else ""
        super().__init__(
            f"{text}: stores are read from folders; {scheme}: is not one of them. Copy the store, "
            f"or a snapshot of it, into a folder, or mount it{more}"
        )


class ObjectStoreError(AnalyticsError):
    """A store in an object store, or in HDFS, cannot be read; the text has the object and the
    cause."""


class ManifestError(AnalyticsError):
    """A list of stores is malformed; the text has the line and the reason."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}, line {line}: {reason}")


class KeptError(AnalyticsError):
    """A folder holds no kept reports, or none as old as an option requests, or only ``later`` ones,
    of which it names a file."""

    def __init__(
        self, folder: str, *, as_old: str | None = None, later: Path | None = None
    ) -> None:
        super().__init__(
            f"{folder} holds only kept reports that are dated later than now, as {later}: the "
            "clock of this machine or of a broker is wrong"
            if later is not None
            else f"{folder} holds no kept reports that are as old as {as_old}"
            if as_old is not None
            else f"{folder} holds no kept reports; make some with "
            f"'rmqctl lag report -o parquet --save {folder}'"
        )


class HistoryVersionError(AnalyticsError, ValueError):
    """A file of kept reports was written by a later version."""

    def __init__(self, path: Path, version: str, known: int) -> None:
        super().__init__(
            f"{path} was written by a later rmqctl (version {version} of kept reports; this one "
            f"reads up to version {known}): install that one"
        )


class KeptFileError(AnalyticsError):
    """A file of kept reports cannot be read."""

    def __init__(self, path: Path, error: Exception) -> None:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        super().__init__(f"{path} cannot be read: {reason}")


class CompactionRunsError(AnalyticsError):
    """Another process compacts the folder."""

    def __init__(self, folder: str) -> None:
        super().__init__(f"another process compacts {folder}; try again when it has ended")


class JoinedError(AnalyticsError):
    """A run cannot be replaced, as its rows lie in a joined file."""

    def __init__(self, broker: str, as_of: int, folder: str) -> None:
        super().__init__(
            f"{folder} has a report of {broker} as of {as_of} ms, which 'lag compact' has joined "
            "with others: it cannot be replaced; give another --as-of or another folder"
        )


class NoArrowError(AnalyticsError):
    """Parquet can be neither written nor read."""

    def __init__(self) -> None:
        super().__init__(
            "Parquet needs the Python package pyarrow; install rmqctl[spark], or use -o json"
        )


class JavaNotFoundError(AnalyticsError):
    """There is no Java that Spark runs on."""

    def __init__(self, tried: str) -> None:
        super().__init__(
            f"Spark needs Java 17 or newer, and there is none ({tried}); set JAVA_HOME, install "
            "'rmqctl[spark]', which brings one, or use --engine local"
        )


class SparkNotFoundError(AnalyticsError):
    """PySpark is not installed."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"{missing} is not installed; pip install 'rmqctl[spark]', or use --engine local"
        )


class SparkFailedError(AnalyticsError):
    """Spark did not start, or a job failed. ``log`` holds its output."""

    def __init__(self, what: str, log: Path | None = None) -> None:
        where = f"; {log} tells more" if log is not None else ""
        super().__init__(f"{what}{where} (--debug shows it, --engine local does without Spark)")
        self.log = log


class SinkError(AnalyticsError):
    """Spark's rows were not stored."""


class SinkOptionError(SinkError, ValueError):
    """An option of the sink is unknown, missing or malformed."""


class SinkSchemaError(SinkError, ValueError):
    """The columns of the rows are not those of messages."""


class SinkRowError(SinkError):
    """A row is no message that a broker would take."""


class SinkCommitError(SinkError):
    """Staged rows could not be stored, or it is unknown which of them were."""


class GroupProgressError(AnalyticsError, ValueError):
    """A stream's position cannot become the progress of a group."""
