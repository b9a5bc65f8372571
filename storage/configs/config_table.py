"""A table of named settings with a data version: what topics.json and subscriptionGroup.json hold.

The parsed document is the source: settings are read from it and written into it, so that members of
other versions survive a change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from storage.coordination.shared_state import Word
from storage.coordination.write_lock_idle import change_unmapped
from storage.errors import CorruptFileError, go_on_without
from storage.files.fs import FileSystem
from storage.format.java_numbers import java_int, java_long, next_java_long
from storage.format.shapes import MAX_QUEUES

from .config_file import ConfigFile, FileIdent, JsonObject

T = TypeVar("T")
C = TypeVar("C", bound="ConfigTable[Any]")


class DataVersion(NamedTuple):
    """When a table changed last (ms), and how often since it began."""

    timestamp: int
    counter: int = 0

    def next_version(self, now_ms: int) -> Self:
        """Give the version after one more change (DataVersion.nextVersion)."""
        return self._replace(timestamp=now_ms, counter=next_java_long(self.counter))

    @classmethod
    def from_json(cls, value: Any, now_ms: int) -> Self:
        """Read the member ``dataVersion``; a missing one is that of a table that begins now.

        Raises ValueError or TypeError for members that are no numbers.
        """
        if not isinstance(value, dict):
            return cls(now_ms)
        timestamp, counter = value.get("timestamp"), value.get("counter")
        return cls(
            now_ms if timestamp is None else java_long(timestamp),
            0 if counter is None else java_long(counter),
        )

    def into_json(self, value: Any) -> dict[str, Any]:
        """Write it over the old member, keeping what 5.x adds."""
        if not isinstance(value, dict):
            return {"counter": self.counter, "timestamp": self.timestamp}
        return {**value, "counter": self.counter, "timestamp": self.timestamp}


class TooManyQueues(NamedTuple):
    """A number of queues in a file that is more than MAX_QUEUES, and so a wrong one."""

    name: str
    member: str
    queues: int


class ConfigTable(ABC, Generic[T]):
    """Named settings, in the order of the file; new ones go to the end.

    Not safe for threads: one that is shared is replaced as a whole, never changed.
    """

    table_member: str
    """Name of the JSON member that holds the table."""
    queue_counts: Mapping[str, str]
    """Members of a row that ``queue_count`` reads, and their fields."""
    kind: str
    """What a row is: topic or group."""

    def __init__(
        self, document: JsonObject, now_ms: int, queues_of: Callable[[str], int] = lambda _: 0
    ) -> None:
        """Take a document. ``queues_of`` gives the number of queues that a name is known to have,
        which holds where the document's number is a wrong one."""
        self._document = document
        self._items: dict[str, T] = {}
        self.data_version = DataVersion.from_json(document.get("dataVersion"), now_ms)
        rows = document.get(self.table_member)
        for name, row in rows.items() if isinstance(rows, dict) else ():
            if isinstance(row, dict):
                self._items[str(name)] = self._read(str(name), row)
        self.too_many_queues: Final = tuple(self._too_many_queues())
        """The numbers of queues in the file that are more than MAX_QUEUES."""
        for name, member, _ in self.too_many_queues:
            item: Any = self._items[name]
            field = self.queue_counts[member]
            count = max(getattr(item, field), min(queues_of(name), MAX_QUEUES))
            self._items[name] = item._replace(**{field: count})

    @staticmethod
    @abstractmethod
    def _read(name: str, row: JsonObject) -> T:
        """Make one name's settings from their JSON; ValueError for what Java could not read."""

    @staticmethod
    @abstractmethod
    def _write(item: T) -> JsonObject:
        """Give the JSON members of one name's settings, in alphabetical order."""

    @classmethod
    def keeps(cls, name: str, item: T) -> bool:
        """Whether settings that are written are read as the same ones."""
        try:
            return cls._read(name, cls._write(item)) == item
        except (ValueError, TypeError):
            return False

    @property
    def items(self) -> Mapping[str, T]:
        """All settings by name."""
        return self._items

    def get(self, name: str) -> T | None:
        """Read the settings of one name; None if it has none."""
        return self._items.get(name)

    def put(self, name: str, item: T, now_ms: int) -> bool:
        """Add or replace settings; False, and no new data version, if they are so already."""
        if self._items.get(name) == item:
            return False
        self._items[name] = item
        self.data_version = self.data_version.next_version(now_ms)
        return True

    def add_missing(self, items: Mapping[str, T]) -> None:
        """Add what the table lacks without a new data version, as a broker does at its start."""
        for name, item in items.items():
            self._items.setdefault(name, item)

    def remove(self, name: str, now_ms: int) -> bool:
        """Forget the settings of one name; False if there were none."""
        if self._items.pop(name, None) is None:
            return False
        self.data_version = self.data_version.next_version(now_ms)
        return True

    def _too_many_queues(self) -> Iterator[TooManyQueues]:
        rows = self._document.get(self.table_member)
        for name, row in rows.items() if isinstance(rows, dict) else ():
            for member in self.queue_counts if isinstance(row, dict) else ():
                value = row.get(member)
                if type(value) is int and value <= MAX_QUEUES:
                    continue  # as in nearly every row
                count = number(row, member, 0)
                if count > MAX_QUEUES:
                    yield TooManyQueues(str(name), member, count)

    def document(self) -> JsonObject:
        """Give the file's content: the members of a 4.9 broker, and other members that were
        there; of wrong numbers of queues, those of the table."""
        rows = self._document.get(self.table_member)
        old: JsonObject = rows if isinstance(rows, dict) else {}
        bounded = {found.name for found in self.too_many_queues}
        table: JsonObject = {}
        for name, row in old.items():
            # A member that is no object is unreadable here, so it is kept.
            if str(name) in self._items or not isinstance(row, dict):
                table[name] = row
        for name, item in self._items.items():
            row = table.get(name)
            kept = row if isinstance(row, dict) else {}
            # The file's text is written back unchanged, unless its meaning has changed.
            if not kept or name in bounded or self._read(name, kept) != item:
                table[name] = {**kept, **self._write(item)}
        document = dict(self._document)
        version = document.get("dataVersion")
        if version is None or DataVersion.from_json(version, 0) != self.data_version:
            document["dataVersion"] = self.data_version.into_json(version)
        document[self.table_member] = table
        return document


def number(row: JsonObject, member: str, default: int) -> int:
    """Read an integer as fastjson does: missing and null give the default, text is parsed.

    Raises ValueError for anything else, and for what a Java int does not hold.
    """
    value = _given(row, member)
    return default if value is None else java_int(value)


def queue_count(row: JsonObject, member: str, default: int) -> int:
    """Read a number of queues as ``number`` does; more than MAX_QUEUES give the default, too."""
    count = number(row, member, default)
    return count if count <= MAX_QUEUES else default


def flag(row: JsonObject, member: str, *, default: bool) -> bool:
    """Read a boolean member as fastjson does: missing and null give the default.

    Of numbers 1 is true. Raises ValueError for anything else.
    """
    value = _given(row, member)
    if value is None:
        return default
    if isinstance(value, (int, float)):
        return int(value) == 1
    if isinstance(value, str):
        if value.lower() in ("true", "1", "y") or value == "T":
            return True
        if value.lower() in ("false", "0", "f") or value == "N":
            return False
    raise ValueError(f"{member} is neither true nor false")


def _given(row: JsonObject, member: str) -> Any:
    """A member; None for the texts that are null to fastjson, too (TypeUtils.castToBoolean)."""
    value = row.get(member)
    return None if value in ("", "null", "NULL") else value


class ConfigTableFile(Generic[C]):
    """A configuration file and the table in it, read again whenever the file was replaced."""

    def __init__(
        self, path: Path, table: Callable[[JsonObject, int], C], fs: FileSystem | None = None
    ) -> None:
        self._file = ConfigFile(path, fs, check=lambda document: table(document, 0))
        self._table = table
        self._cached: tuple[FileIdent | None, C] | None = None

    @property
    def path(self) -> Path:
        """The file."""
        return self._file.path

    def read(self, now_ms: int) -> C:
        """Give the file's table: one object while the file is unchanged. Do not change it.

        Costs a stat when nothing changed. Raises CorruptFileError. DamagedFileWarning for a number
        of queues beyond MAX_QUEUES.
        """
        cached = self._cached
        if cached is None or cached[0] != self._file.ident():
            loaded = self._file.load()
            cached = self._cached = loaded.ident, self._table(loaded.document, now_ms)
            _warn_of_counts(self.path, cached[1])
        return cached[1]

    def read_for_change(self, now_ms: int) -> C:
        """Read the file whatever the cache says; the caller may change the table. Hold the write
        lock."""
        return self._table(self._file.load().document, now_ms)

    def save(self, table: C) -> bool:
        """Replace the file; False if its bytes are the same already. Hold the write lock.

        Processes that cache its content are notified (CONFIGS of the shared state). Raises
        StoreNotWritableError, and nothing has changed then, unless only the sync of the folder
        failed.
        """
        changed = True  # also if it fails: the new file may have its name
        try:
            changed = self._file.save(table.document())
        finally:
            self._cached = None
            if changed:
                change_unmapped(self.path.parent.parent, Word.CONFIGS)
        return changed


def _warn_of_counts(path: Path, table: ConfigTable[Any]) -> None:
    """Warn of the first number of queues that is too large, once a file."""
    found = table.too_many_queues
    if not found:
        return
    name, member, count = found[0]
    used = getattr(table.get(name), table.queue_counts[member])
    others = len({each.name for each in found}) - 1
    more = f", and {others} more have such a number" if others else ""
    go_on_without(
        CorruptFileError(path, 0, f"{member} of {table.kind} {name} is {count}{more}"),
        f"{used} is taken for it; the next change of a {table.kind} writes that",
    )
