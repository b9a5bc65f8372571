"""Settings by name, used and changed by many processes: RocketMQ's tables and their rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from broker.errors import BrokerSystemError, NoPermissionError
from storage.configs.config_table import ConfigTable, ConfigTableFile
from storage.configs.journal import Journal

T = TypeVar("T", bound=tuple[Any, ...])

WriteLockScope = Callable[[], AbstractContextManager[object]]
"""Holds the right to replace config files for a block; MessageStore.write_lock."""

Check = Callable[[T | None], None]
"""Called under the write lock with the current settings, None for none; may refuse by raising."""

_LOOK_NS: Final = 1_000_000
_LOOK_BESIDE_WRITERS_NS: Final = 100_000_000
"""Reports that a file was replaced: for settings that are also edited by hand."""


class Update(NamedTuple, Generic[T]):
    """The new settings of one name, with their entry for the journal."""

    item: T
    note: Mapping[str, Any]
    check: Check[T] | None = None


READ_ONLY = "the store is open for reading only; open it for writing to change it"


class SharedTable(Generic[T]):
    """One table of a store. A change of another process is seen at the next call.

    ``system`` are the settings that a broker makes at its start. They reach the file with the first
    change; settings in the file take precedence. ``write_lock`` None means read-only. ``kind`` and
    ``command`` name changes in the journal. ``changes`` gives another number when settings have
    been replaced. ``changed`` is called with the names after each change, without the write lock;
    ``check_new`` before a new name is added, with that name and all others, and it may refuse it.
    """

    def __init__(
        self,
        file: ConfigTableFile[Any],
        system: Mapping[str, T],
        *,
        kind: str,
        command: str,
        write_lock: WriteLockScope | None,
        journal: Journal,
        now: Callable[[], int],
        changes: Callable[[], int] | None = None,
        changed: Callable[[Collection[str]], None] = lambda _: None,
        check_new: Callable[[str, Iterable[str]], None] = lambda *_: None,
    ) -> None:
        self._file = file
        self._check_new = check_new
        self._changed = changed
        self._kind = kind
        self._command = command
        self._write_lock = write_lock
        self._journal = journal
        self._now = now
        self.system = system
        self.changes: Final = changes or (lambda: 0)
        self._look_ns = _LOOK_NS if changes is None else _LOOK_BESIDE_WRITERS_NS
        self._recent: tuple[int, int, Mapping[str, T]] = (-1, 0, {})  # until when, changes, what

    @property
    def writable(self) -> bool:
        """Whether settings may be changed."""
        return self._write_lock is not None

    def all(self) -> dict[str, T]:
        """Give all settings by name."""
        return {**self.system, **self._read().items}

    def get(self, name: str) -> T | None:
        """Read the settings of one name; None if there are none."""
        return self._read().get(name) or self.system.get(name)

    def recent(self, name: str) -> T | None:
        """The same once a message: the file is checked when ``changes`` shows a change, and now and
        then; without ``changes`` once a millisecond.

        That is as good. A call that changes or removes settings returns a millisecond later, and a
        missing name is looked up at once. An edit by hand is seen a tenth of a second later.
        """
        until_ns, known_changes, table = self._recent
        now_ns, changes = time.monotonic_ns(), self.changes()
        if now_ns > until_ns or changes != known_changes:
            table = self._read().items
            self._recent = now_ns + self._look_ns, changes, table
        return table.get(name) or self.get(name)

    def create(self, name: str, item: T) -> T:
        """Add settings on first use; gives those of another process if it was faster.

        Raises NoPermissionError on a store that is open for reading only.
        """
        with self._changing() as (table, now):
            old = table.get(name)
            if old is not None:
                return old
            self._check_kept(table, name, item)
            self._check_new(name, {*table.items, *self.system})
            table.add_missing(self.system)
            table.put(name, item, now)
            self._file.save(table)
        self._changed((name,))
        return item

    def update_all(self, updates: Mapping[str, Update[T]]) -> set[str]:
        """Add or change the settings of many names at once, deliberately; gives the names of those
        that changed.

        All or none: the file is replaced once, after all checks and journal entries.
        Raises NoPermissionError on a store that is open for reading only, and BrokerSystemError
        for settings that the file cannot hold.
        """
        with self._changing() as (table, now):
            olds = self._checked(table, updates)
            changed = {name for name, update in updates.items() if olds[name] != update.item}
            if not changed:
                return changed
            table.add_missing(self.system)
            entries = []
            for name, update in updates.items():
                if name in changed:
                    table.put(name, update.item, now)
                    entries.append(self._entry(name, olds[name], update.item, update.note))
            self._journal.append_all(entries, now)
            self._file.save(table)
        self._changed(changed)
        time.sleep(_LOOK_NS / 1e9)  # now all processes see it, see ``recent``
        return changed

    def check_all(self, updates: Mapping[str, Update[T]]) -> dict[str, T | None]:
        """Refuse what ``update_all`` would refuse now, and change nothing; gives the current
        settings.

        ``update_all`` checks again, under the write lock. Raises what it raises:
        NoPermissionError, BrokerSystemError.
        """
        if self._write_lock is None:
            raise NoPermissionError(READ_ONLY)
        return self._checked(self._read(), updates)

    def adapt_all(
        self, change: Callable[[str, T], T], notes: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, T]:
        """Change the settings of the names of ``notes`` at once by ``change``, which gets a name
        and its current settings; gives those that hold then.

        A name without settings is left out. All or none, as ``update_all``. Raises
        NoPermissionError on a store that is open for reading only.
        """
        with self._changing() as (table, now):
            table.add_missing(self.system)
            held, changed, entries = {}, [], []
            for name, note in notes.items():
                old = table.get(name)
                if old is None:
                    continue
                new = held[name] = change(name, old)
                if new != old:
                    self._check_kept(table, name, new)
                    table.put(name, new, now)
                    changed.append(name)
                    entries.append(self._entry(name, old, new, note))
            if not changed:
                return held
            self._journal.append_all(entries, now)
            self._file.save(table)
        self._changed(changed)
        time.sleep(_LOOK_NS / 1e9)
        return held

    def remove(self, name: str, note: Mapping[str, Any], check: Check[T] | None = None) -> bool:
        """Remove the settings of one name, noted in the journal first; False if there are none.

        Raises NoPermissionError on a store that is open for reading only.
        """
        with self._changing() as (table, now):
            old = table.get(name)
            if check is not None:
                check(old)
            if old is None:
                return False
            table.add_missing(self.system)
            table.remove(name, now)
            self._journal.append(self._entry(name, old, None, note), now)
            self._file.save(table)
        self._changed((name,))
        time.sleep(_LOOK_NS / 1e9)
        return True

    @contextmanager
    def _changing(self) -> Iterator[tuple[ConfigTable[T], int]]:
        """Give the current settings and the time, while no other process changes them."""
        if self._write_lock is None:
            raise NoPermissionError(READ_ONLY)
        with self._write_lock():
            now = self._now()
            yield self._file.read_for_change(now), now

    def _checked(
        self, table: ConfigTable[T], updates: Mapping[str, Update[T]]
    ) -> dict[str, T | None]:
        """Refuse updates of a table that may not be; gives the settings before them."""
        olds = {name: table.get(name) for name in updates}
        for name, update in updates.items():
            if update.check is not None:
                update.check(olds[name])
            self._check_kept(table, name, update.item)
            if olds[name] is None:
                self._check_new(name, {*table.items, *self.system, *updates})
        return olds

    def _check_kept(self, table: ConfigTable[T], name: str, item: T) -> None:
        """Refuse settings that would make the file one that no broker can read."""
        if not table.keeps(name, item):
            raise BrokerSystemError(
                f"{self._kind} {name} cannot have these settings, as a number is not one of Java's "
                f"int, or text is missing: {item}"
            )

    def _read(self) -> ConfigTable[T]:
        table: ConfigTable[T] = self._file.read(self._now())
        return table

    def _entry(
        self, name: str, old: T | None, new: T | None, note: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Make the journal's entry of a change, before it is done."""
        change = {"command": self._command, self._kind: name}
        values = {
            "old": None if old is None else _members(old),
            "new": None if new is None else _members(new),
        }
        return {**change, **note, **values}


def _members(item: Any) -> dict[str, Any]:
    members: dict[str, Any] = item._asdict()
    return members
