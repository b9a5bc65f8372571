"""Changed settings of one store: ``<store>/rmqctl/settings.json``.

    {"version":1,"store":{"file_reserved_time_hours":24},"broker":{"broker_name":"broker-b"}}

Names are those of StoreConfig and BrokerConfig; a missing one has its default. A Java broker
ignores this file; it reads its own broker.conf. The lengths of files are elsewhere (layout.py). One
line with a checksum (checksummed_json), replaced as a whole under the write lock.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.fs import FileSystem
from storage.format.names import OURS
from storage.format.shapes import anything, members, table
from storage.format.versions import FORMATS

from .checksummed_json import read_sealed, seal
from .config_file import replace_file

SETTINGS_FILE: Final = "settings.json"
VERSION: Final = FORMATS[SETTINGS_FILE]
_REMEDY: Final = "'rmqctl store repair' makes it anew of the journal; or remove it for the defaults"


_SHAPE: Final = members({"store": table(anything), "broker": table(anything)})


class StoreSettings(NamedTuple):
    """The changes, by name: of StoreConfig, and of BrokerConfig."""

    store: dict[str, Any]
    broker: dict[str, Any]


def read_store_settings(root: Path) -> StoreSettings:
    """Give the changed settings of a store; none if there is no such file.

    Raises CorruptFileError and StoreVersionError.
    """
    entry = read_sealed(root / OURS / SETTINGS_FILE, VERSION, _SHAPE, remedy=_REMEDY)
    if entry is None:
        return StoreSettings({}, {})
    return StoreSettings(dict(entry["store"]), dict(entry["broker"]))


def settings_error(root: Path, error: ValueError) -> CorruptFileError:
    """Make the error for a setting that is recorded with a value that it cannot have."""
    return CorruptFileError(root / OURS / SETTINGS_FILE, 0, f"{error} ({_REMEDY})")


def settings_entry(settings: StoreSettings) -> dict[str, Any]:
    """Give the content of the file."""
    return {"version": VERSION, "store": settings.store, "broker": settings.broker}


def write_store_settings(root: Path, settings: StoreSettings, fs: FileSystem | None = None) -> None:
    """Replace the changed settings; needs the write lock. On the device when this returns.

    Processes that have the store open keep what they have read. Raises StoreNotWritableError.
    """
    fs = fs or FileSystem()
    path = root / OURS / SETTINGS_FILE
    entry = settings_entry(settings)
    try:
        fs.make_dirs(path.parent)
        replace_file(fs, path, seal(entry))
        fs.sync_dir(path.parent)
    except OSError as error:
        raise StoreNotWritableError(path, error.strerror or str(error)) from error
