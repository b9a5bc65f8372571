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
    NotKnownError               the requested state was deleted with its files
    StoreChangedError           the store is not any more what a plan was made for
    CorruptFileError            bytes that the format does not allow
      DamagedSnapshotError      a snapshot differs from its manifest
        SnapshotTooLargeError   ... or claims to hold more than there is room for
    InvalidMessageError         a message breaks a limit of the format (also a ValueError)

IncompleteStoreWarning          the read data is not complete (a Python warning, not an error)
DamagedFileWarning              a file of rmqctl's own is damaged, and was not needed

Each error says in one sentence what happened, to which thing, and what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_OURS: Final = "rmqctl"
"""The folder of rmqctl's own files; ``storage.format.names`` may not be imported here."""
_CHECKED: Final = frozenset({"offsets.log", "offsets.json"})
"""The files of rmqctl's own without which a check cannot even begin; it reports the others
itself."""


class RocketMQError(Exception):
    """Root of all errors that rmqctl raises on purpose."""


class StoreError(RocketMQError):
    """An error of a store folder or its files."""


_EMPTY: Final = frozenset({"no such folder", "it is empty"})
"""Reasons with which a store can be made there: 'store init' takes no folder with other content."""


class StoreNotFoundError(StoreError):
    """The folder does not exist, or holds nothing that makes it a store."""

    def __init__(
        self, path: Path, reason: str = "no such folder", below: Path | None = None
    ) -> None:
        """``below``: a store that lies in the folder, and was probably intended."""
        remedy = f"make one with 'rmqctl store init {path}' or name another with --store"
        if below is not None:
            remedy = f"a store lies below it: name {below} with --store"
        elif reason not in _EMPTY:
            remedy = "name another with --store"
        super().__init__(f"{path} is not a RocketMQ store ({reason}); {remedy}")
        self.path = path


class NoSnapshotError(StoreNotFoundError):
    """The named snapshot does not exist, or has no manifest."""

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
    """This user cannot write the folder, or the file system does not allow it."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}")
        self.path = path


class StoreNotReadableError(StoreNotWritableError):
    """This user cannot even read the folder, or a file in it."""

    def __init__(self, path: Path) -> None:
        StoreError.__init__(self, f"{path} cannot be read: no permission")
        self.path = path


class StoreClosedError(StoreError):
    """The store object is closed. It does not mean that the store is damaged."""


class StoreBrokenError(StoreError):
    """A write or a sync failed, so the state of the device is unknown.

    Nothing that was acknowledged is lost; the data being written is not acknowledged. All processes
    refuse to write until every one of them has closed the store and it is opened anew.
    """


class StoreContradictionError(StoreBrokenError):
    """Files of a store and the shared state of its writers do not agree; nothing was written.

    The next writer that opens the store alone makes queues, index and shared state anew from the
    log.
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
    """The store holds no information any more about a time."""

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

    Raised for data that was whole once, so it means damage after the fact, never a torn tail. For
    rmqctl's own files ``reason`` names the remedy: a check of the store may need them itself.
    """

    def __init__(self, path: Path, position: int, reason: str) -> None:
        sentence = f"{path} is damaged at byte {position}: {reason}"
        if path.parent.name != _OURS or path.name in _CHECKED:
            sentence += "; 'rmqctl store fsck' lists all damage"
        super().__init__(sentence)
        self.path = path
        self.position = position
        self.reason = reason


class RecoveryNeededError(CorruptFileError):
    """A store was not closed cleanly, and lacks so much that only recovery can restore it."""

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
    """The data read of a store is surely not complete. Shown once for each store."""


class DamagedFileWarning(UserWarning):
    """A file of rmqctl's own, or of settings, is damaged; the command goes on without it."""

    path: Path | None = None
    """The file, where one is known."""


def go_on_without(error: CorruptFileError, instead: str) -> None:
    """Warn of a damaged file that a reader can do without, and of what it uses ``instead``."""
    import warnings

    warning = DamagedFileWarning(
        f"{error.path} is damaged at byte {error.position}: {error.reason}; {instead}"
    )
    warning.path = error.path
    warnings.warn(warning, stacklevel=3)


class DamagedSnapshotError(CorruptFileError):
    """A file of a snapshot differs from the one that was taken, or is missing."""

    def __init__(self, path: Path, position: int, reason: str) -> None:
        StoreError.__init__(self, f"{path} is not as the snapshot was taken: {reason}")
        self.path = path
        self.position = position
        self.reason = reason


class SnapshotTooLargeError(DamagedSnapshotError):
    """A snapshot claims to hold more than there is room for."""

    def __init__(self, path: Path, needed: int, folder: Path, free: int) -> None:
        reason = f"it says that its files have {needed} bytes"
        StoreError.__init__(
            self,
            f"{path} cannot be restored: {reason}, and {folder} has room for {free}; free some "
            "space, or do not trust the snapshot",
        )
        self.path = path
        self.position = 0
        self.reason = reason


class InvalidMessageError(StoreError, ValueError):
    """A message breaks a limit of the format (RocketMQ's MESSAGE_ILLEGAL and its kin)."""
