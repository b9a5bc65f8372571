"""Settings of topics and groups as changes: what creating and altering have in common."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from broker.tables.shared_table import Check, Update
from rmqctl.errors import CliError
from rmqctl.exit_codes import CHANGED
from storage.coordination.config_lock import config_lock

from .changes import Change, Outcome
from .java_writers import refuse_beside_java

if TYPE_CHECKING:
    from broker.tables.shared_table import WriteLockScope
    from storage.readonly import StoreView

T = TypeVar("T", bound=tuple[Any, ...])


class Manager(Protocol[T]):
    """Settings by name: broker.tables.topics.TopicManager, or GroupManager."""

    def all(self) -> dict[str, T]:
        """All settings."""
        ...

    def get(self, name: str, /) -> T | None:
        """Settings of one name."""
        ...

    def update_all(self, updates: Iterable[Update[T]]) -> set[str]:
        """Create or change many, all or none; gives the names of those that changed."""
        ...

    def delete(self, name: str, note: Mapping[str, Any], check: Check[T], /) -> bool:
        """Remove settings; False if there are none."""
        ...


class SettingsTable(ABC, Generic[T]):
    """What topics and groups differ in. The first setting is the name."""

    noun: ClassVar[str]
    created_row: type
    changed_row: type
    manager: Manager[T]

    def __init__(self, view: "StoreView") -> None:
        """The table of a store. No lock is held between the reads and writes."""
        self.view = view
        self.manager = self.open(lambda: config_lock(view.root))

    @abstractmethod
    def open(self, write_lock: "WriteLockScope") -> Manager[T]:
        """The table for writes under a lock."""

    @abstractmethod
    def check_changeable(self, name: str) -> None:
        """Raise for an illegal name, and for what belongs to the system."""

    @abstractmethod
    def missing(self, name: str) -> CliError:
        """The error about a name that has no settings."""

    @abstractmethod
    def conflict(self, item: T, known: T) -> CliError | None:
        """Why ``item`` cannot be created beside settings of the same name."""

    @abstractmethod
    def created(self, item: T, created: bool | None) -> Any:
        """The row of a creation."""

    @abstractmethod
    def consequence(self, setting: str, old: T, new: T) -> str | None:
        """What a changed setting means for messages."""

    def consequence_of_creation(self, item: T, known: T | None) -> str | None:
        """What created settings mean for messages that are there; ``known`` are derived ones."""
        return None

    def check_new(self, item: T) -> Check[T]:
        """A check that ``item`` may be created."""

        def check(known: T | None) -> None:
            conflict = None if known in (None, item) else self.conflict(item, known)
            if conflict is not None:
                raise conflict

        return check

    def check_unchanged(self, seen: T) -> Check[T]:
        """A check that settings are those of the plan; CliError (6) if they are not."""

        def check(now: T | None) -> None:
            if now != seen and not (now is None and self.is_derived(seen)):
                what = f"{self.noun} {seen[0]}"
                sentence = f"{what} was changed since the plan was made; nothing was written"
                raise CliError(sentence, CHANGED)

        return check

    def is_derived(self, item: T) -> bool:
        """Whether no file has these settings: they follow from queues."""
        return False


class GuardedChange(Change):
    """A change of a store that no Java broker may use meanwhile.

    The first ``check`` looks for one, a second long if files are recent. Each later one, and that
    of ``apply``, also finds what was written since.
    """

    view: "StoreView"
    _java_check: Callable[[], None] | None = None

    def check(self) -> None:
        """StoreInUseError beside a Java broker, or another program that writes."""
        if self._java_check is None:
            self._java_check = refuse_beside_java(self.view.root)
        else:
            self._java_check()


class SettingsCreation(Change, Generic[T]):
    """Creates what does not exist, all or none. What exists with the same settings stays."""

    def __init__(self, table: SettingsTable[T], items: Sequence[T]) -> None:
        """Raises for an illegal name, and Refused for one that exists with other settings."""
        known = table.manager.all()
        for item in items:
            table.check_changeable(item[0])
            table.check_new(item)(known.get(item[0]))
        self._table = table
        self._items = items
        self._new = [item for item in items if known.get(item[0]) != item]
        plan = [table.created(item, None if item in self._new else False) for item in items]
        notes = (table.consequence_of_creation(item, known.get(item[0])) for item in self._new)
        summary = [note for note in notes if note is not None]
        super().__init__(table.created_row, plan, summary=summary, has_effect=bool(self._new))

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Create them. Refused if one was created with other settings meanwhile."""
        table = self._table
        done = table.manager.update_all(
            Update(item, note, table.check_new(item)) for item in self._new
        )
        return Outcome([table.created(item, item[0] in done) for item in self._items])


class SettingsAlteration(GuardedChange, Generic[T]):
    """Changes settings of what exists, all or none. A row of the plan is one changed setting."""

    def __init__(
        self, table: SettingsTable[T], names: Iterable[str], values: Mapping[str, Any]
    ) -> None:
        """NotFound for a name without settings; errors of ``check_changeable``."""
        self._table = table
        self.view = table.view
        self._changes: list[tuple[T, T]] = []
        names = list(names)
        for name in names:
            table.check_changeable(name)
            old = table.manager.get(name)
            if old is None:
                raise table.missing(name)
            new = old._replace(**values)  # type: ignore[attr-defined]  # settings are NamedTuples
            if old != new:
                self._changes.append((old, new))
        plan = [row for old, new in self._changes for row in self._rows(old, new)]
        question = f"Change {', '.join(names)}?"
        super().__init__(table.changed_row, plan, question=question, has_effect=bool(plan))

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Write all changes and read them back. CliError (6) if one was changed since the plan."""
        self.check()
        table = self._table
        table.manager.update_all(
            Update(new, note, table.check_unchanged(old)) for old, new in self._changes
        )
        return Outcome([self._done(row) for row in self.plan])

    def _rows(self, old: T, new: T) -> Iterator[Any]:
        for setting, before, after in zip(_fields(old), old, new, strict=True):
            if before != after:
                note = self._table.consequence(setting, old, new)
                values = (_text(before), _text(after))
                yield self._table.changed_row(old[0], setting, *values, note, None)

    def _done(self, row: Any) -> Any:
        now = self._table.manager.get(row[0])
        held = None if now is None else getattr(now, row.setting)
        return row._replace(applied=_text(held) == row.new)


def _fields(item: Any) -> Sequence[str]:
    fields: Sequence[str] = item._fields
    return fields


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def now_ms() -> int:
    """The clock of journal entries."""
    return time.time_ns() // 1_000_000
