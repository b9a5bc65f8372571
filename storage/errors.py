"""Errors of the store.

RocketMQError                   root of everything that rmqctl raises on purpose
  StoreError
    StoreNotFoundError          no such folder, or the folder is not a store
      NoSnapshotError           no such file or folder, or it is not a snapshot
    StoreInUseError             a Java broker holds the store
    StoreNotWritableError       no permission, a read-only file system, a network file system
      StoreNotReadableError     no permission to read
    StoreClosedError            you closed it, or it was inherited over a fork
    StoreBrokenError            a write or sync failed earlier; open the store anew
    WriteLockTimeoutError            another rmqctl process holds the right to append for too long
    UnsupportedStoreError       files of a format that rmqctl names but does not read
    StoreVersionError           rmqctl's own files were written by a newer rmqctl
    NotKnownError               what is asked about was deleted with its files
    StoreChangedError           the store is not any more what a plan was made for
    CorruptFileError            bytes that the format does not allow
      DamagedSnapshotError      a snapshot is not what its manifest says
        SnapshotTooLargeError   ... or says that it holds more than there is room for
    InvalidMessageError         a message breaks a limit of the format (also a ValueError)

IncompleteStoreWarning          what is read is not all (a warning of Python's, not an error)
DamagedFileWarning              a file of rmqctl's own is damaged, and was not needed

Each error says in one sentence what happened, to which thing, and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_OURS: Final = "rmqctl"
"""The folder of rmqctl's own files; ``storage.format.names`` may not be imported here."""
_CHECKED: Final = "offsets.json"
"""The file of rmqctl's own that a check tells of; without others it can not even begin."""


class RocketMQError(Exception):
    """Root of all errors that rmqctl raises on purpose."""


class StoreError(RocketMQError):
    """Something about a store folder or its files."""


_EMPTY: Final = frozenset({"no such folder", "it is empty"})
"""Where a store can be made: 'store init' takes no folder that holds something else."""


class StoreNotFoundError(StoreError):
    """The folder does not exist, or holds nothing that makes it a store."""

    def __init__(
        self, path: Path, reason: str = "no such folder", below: Path | None = None
    ) -> None:
        """``below``: a store that lies in the folder, and was probably meant."""
        remedy = f"make one with 'rmqctl store init {path}' or name another with --store"
        if below is not None:
            remedy = f"a store lies below it: name {below} with --store"
        elif reason not in _EMPTY:
            remedy = "name another with --store"
        super().__init__(f"{path} is not a RocketMQ store ({reason}); {remedy}")
        self.path = path


class NoSnapshotError(StoreNotFoundError):
    """What was named as a snapshot does not exist, or has no manifest."""

    def __init__(self, path: Path, reason: str = "no such file or folder") -> None:
        StoreError.__init__(
            self,
            f"{path} is no snapshot: {reason}; take one with 'rmqctl store snapshot --save'",
        )
        self.path = path


class StoreInUseError(StoreError):
    """A Java broker holds the store: it may be read, never written."""

    def __init__(self, path: Path, holder: str) -> None:
        super().__init__(
            f"{path} is in use by {holder}; "
            "stop that broker before writing (reading works beside it)"
        )
        self.path = path
        self.holder = holder


class StoreNotWritableError(StoreError):
    """The folder can not be written by this user or on this file system."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} can not be written: {reason}")
        self.path = path


class StoreNotReadableError(StoreNotWritableError):
    """The folder, or a file in it, can not even be read by this user."""

    def __init__(self, path: Path) -> None:
        StoreError.__init__(self, f"{path} can not be read: no permission")
        self.path = path


class StoreClosedError(StoreError):
    """The store object is closed. It does not mean that the store is damaged."""


class StoreBrokenError(StoreError):
    """A write or a sync failed, so nobody knows what is on the device.

    Nothing that was acknowledged is lost; what was being written is not acknowledged. All
    processes refuse to write until every one of them has closed the store and it is opened anew.
    """


class StoreContradictionError(StoreBrokenError):
    """Files of a store and what its writers share of it do not agree; nothing was written.

    The next writer that opens the store alone makes queues, index and page anew from the log.
    """


class WriteLockTimeoutError(StoreError):
    """Another rmqctl process has held the right to append for longer than the caller waits.

    It does not mean that the holder is broken: it may be stopped (Ctrl-Z) or very busy.
    """

    def __init__(self, path: Path, waited_ms: int, holder: str) -> None:
        super().__init__(
            f"waited {waited_ms} ms for the right to write {path}, held by {holder}; "
            "let it finish, continue or end it, then try again"
        )
        self.path = path
        self.holder = holder


class UnsupportedStoreError(StoreError):
    """The store uses a format that rmqctl recognises but does not read."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} holds {what}, which this version of rmqctl does not read")
        self.path = path
        self.what = what


class StoreVersionError(StoreError):
    """A file of rmqctl's own needs a newer rmqctl."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path} has version {found}, "
            f"this rmqctl knows up to version {known}; use a newer rmqctl"
        )
        self.path = path
        self.found = found
        self.known = known


class NotKnownError(StoreError):
    """Nothing in the store tells any more what was there at a time."""

    def __init__(self, path: Path, timestamp: int, oldest: int | None) -> None:
        since = "nothing is left" if oldest is None else f"the oldest left is from {oldest}"
        super().__init__(
            f"{path}: what was stored at {timestamp} (ms) may be deleted ({since}); "
            "ask for a later time"
        )
        self.path = path
        self.timestamp = timestamp
        self.oldest = oldest


class StoreChangedError(StoreError):
    """The store is not any more what a plan was made for; nothing else was written."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} has changed since the plan was made; make a new one")
        self.path = path


class CorruptFileError(StoreError):
    """A file of the store holds bytes that the format does not allow.

    Raised for places that were whole once, so it means damage after the fact, never a torn tail.
    Of rmqctl's own files ``reason`` tells the remedy: a check of the store may need them itself.
    """

    def __init__(self, path: Path, position: int, reason: str) -> None:
        sentence = f"{path} is damaged at byte {position}: {reason}"
        if path.parent.name != _OURS or path.name == _CHECKED:
            sentence += "; 'rmqctl store fsck' lists all damage"
        super().__init__(sentence)
        self.path = path
        self.position = position
        self.reason = reason


class RecoveryNeededError(CorruptFileError):
    """A store was not closed cleanly, and so much has to be made up for that only recovery can."""

    def __init__(self, path: Path, messages: int, lost: str = "their places in the queues") -> None:
        StoreError.__init__(
            self,
            f"{path} was not closed cleanly and needs recovery: more than {messages} messages may "
            f"have lost {lost}; open the store for writing, or run "
            "'rmqctl store repair', then read it",
        )
        self.path = path
        self.position = 0
        self.reason = "it needs recovery"


class IncompleteStoreWarning(UserWarning):
    """What is read of a store is surely not all that it held. Shown once for each store."""


class DamagedFileWarning(UserWarning):
    """A file of rmqctl's own, or of settings, is damaged; what was asked for goes on without it."""


def go_on_without(error: CorruptFileError, instead: str) -> None:
    """Warn of a damaged file that a reader can do without, and of what it takes ``instead``."""
    import warnings

    warnings.warn(
        f"{error.path} is damaged at byte {error.position}: {error.reason}; {instead}",
        DamagedFileWarning,
        stacklevel=3,
    )


class DamagedSnapshotError(CorruptFileError):
    """A file of a snapshot is not the one that was taken, or is missing."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        StoreError.__init__(self, f"{path} is not as the snapshot was taken: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class SnapshotTooLargeError(DamagedSnapshotError):
    """A snapshot says that it holds more than there is room for."""

    def __init__(self, path: Path, needed: int, folder: Path, free: int) -> None:
        reason = f"it says that its files have {needed} bytes"
        StoreError.__init__(
            self,
            f"{path} can not be restored: {reason}, and {folder} has room for {free}; free some "
            "space, or do not trust the snapshot",
        )
        self.path = path
        self.position = 0
        self.reason = reason


class InvalidMessageError(StoreError, ValueError):
    """A message breaks a limit of the format (RocketMQ's MESSAGE_ILLEGAL and its kin)."""
