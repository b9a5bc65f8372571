"""What the store remembers of a write: ``<store>/rmqctl/sink/NAME.json``.

    {"version": 1, "write": "2b0c...", "batch": 7, "state": "begun", "commitlog_offset": 123456,
     "rows": 1000, "parts": [{"partition": 0, "path": "/ck/.../part-0-....arrow", "rows": 1000}]}

A write is decided once ``begun`` is on the device: its staged rows then go to the log whatever
happens, each once. ``commitlog_offset`` is the log's end at that moment: the rows that are there
already lie after it, and are known by their ids. ``done`` is written after the log was synced.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from analytics.errors import SinkCommitError
from storage.coordination.locks import LockFile
from storage.files.creating import make_folders, replacing
from storage.format.names import OURS, SINK_FOLDER

from .staging import StagedPart

UNNAMED: Final = "once."
"""How the names of writes begin that have no ``writeId``. None of these has a full stop, and no id
of a stream."""
BEGUN: Final = "begun"
DONE: Final = "done"
_VERSION: Final = 1


def sink_folder(store: Path) -> Path:
    """The store's own folder for markers, and for staged rows if no other is named."""
    return store / OURS / SINK_FOLDER


class Marker(NamedTuple):
    """A batch of a write: what has begun, or was done last."""

    batch: int
    state: str
    commitlog_offset: int
    parts: tuple[StagedPart, ...]

    @property
    def rows(self) -> int:
        """How many messages the batch has."""
        return sum(part.rows for part in self.parts)


class MarkerFile:
    """The marker of one write in a store, locked by this process until it is closed."""

    def __init__(self, store: Path, write: str) -> None:
        """Raises SinkCommitError if another process has it, and OSError."""
        folder = sink_folder(store)
        make_folders(folder)
        self._write = write
        self._path = folder / f"{write}.json"
        self._lock = LockFile(folder / f"{write}.lock")
        if not self._lock.try_lock(0):
            self._lock.close()
            raise SinkCommitError(
                f"another process commits rows of the same write to {store} ({self._path.name}); "
                "end it, or wait for it"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def read(self) -> Marker | None:
        """The last batch; None if there was none. Raises SinkCommitError, and OSError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return _marker(json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SinkCommitError(
                f"{self._path} is no marker of a write ({error}); nothing was written"
            ) from error

    def forget(self) -> None:
        """Remove the marker: no write of this name comes again."""
        self._path.unlink(missing_ok=True)
        self._lock.path.unlink(missing_ok=True)

    def put(self, marker: Marker) -> None:
        """Write the marker; it is on the device when this returns."""
        parts = [part._asdict() for part in marker.parts]
        value = {
            "version": _VERSION,
            "write": self._write,
            "batch": marker.batch,
            "state": marker.state,
            "commitlog_offset": marker.commitlog_offset,
            "rows": marker.rows,
            "parts": parts,
        }
        with replacing(self._path) as file:
            file.write(json.dumps(value).encode() + b"\n")


def has_begun(store: Path, write: str) -> bool:
    """Whether a batch of the write waits to be finished, or that cannot be known."""
    try:
        found = json.loads((sink_folder(store) / f"{write}.json").read_bytes())
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return not isinstance(found, dict) or found.get("state") != DONE


def _marker(value: dict[str, Any]) -> Marker:
    if value["version"] != _VERSION:
        raise ValueError(f"version {value['version']!r}")
    parts = tuple(
        StagedPart(int(part["partition"]), str(part["path"]), int(part["rows"]))
        for part in value["parts"]
    )
    state = value["state"]
    if state not in {BEGUN, DONE}:
        raise ValueError(f"state {state!r}")
    return Marker(int(value["batch"]), state, int(value["commitlog_offset"]), parts)
