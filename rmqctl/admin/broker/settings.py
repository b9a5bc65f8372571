"""The settings of one store that rmqctl keeps, and the matching lines of broker.conf."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from broker.config import BrokerConfig
from broker.java_store import config_of
from rmqctl.admin.changes import Change, JavaCheck, Outcome
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.errors import CliError, Refused, UsageProblem
from rmqctl.exit_codes import CHANGED
from rmqctl.parse.meanings import meanings
from storage.clock import now_ms as clock_ms
from storage.config import FIXED_FIELDS, FlushDiskType, StoreConfig
from storage.configs.journal import Journal
from storage.configs.store_settings import (
    SETTINGS_FILE,
    StoreSettings,
    read_store_settings,
    write_store_settings,
)
from storage.coordination.config_lock import config_lock
from storage.format.names import OURS
from storage.format.strict_json import is_utf8

from .rows import BrokerSettingRow

if TYPE_CHECKING:
    from storage.readonly import StoreView

_MODULES: Final = {"StoreConfig": "storage.config", "BrokerConfig": "broker.config"}
_OTHER_JAVA_NAMES: Final = {
    "file_reserved_time_hours": "fileReservedTime",
    "transaction_timeout_ms": "transactionTimeOut",
    "max_transfer_count_in_memory": "maxTransferCountOnMessageInMemory",
    "max_transfer_bytes_in_memory": "maxTransferBytesOnMessageInMemory",
    "schedule_async_deliver_max_resend_num_to_blocked": "scheduleAsyncDeliverMaxResendNum2Blocked",
}
_NOT_JAVAS: Final = frozenset(
    {
        *("max_inflated_body_size", "disk_space_clean_forcibly_ratio", "min_free_bytes"),
        *("store_host", "born_host", "keep_failure_reasons", "zero_when_young"),
        *("max_suspend_timeout_ms", "offset_moved_event_enable", "refuse_equal_client_ids"),
    }
)
_RECORD: Final = f"{OURS}/{SETTINGS_FILE}"
_TRUE: Final = frozenset({"true", "yes", "on", "1"})
_FALSE: Final = frozenset({"false", "no", "off", "0"})


class BrokerSettings:
    """All settings of a store and its broker, as of construction."""

    def __init__(self, view: StoreView) -> None:
        """Raises what reading settings raises."""
        self.root = view.root
        self.record = read_store_settings(view.root)
        broker = config_of(view.root, reading=True)
        self._values = {**_values(view.config), **_values(broker)}
        self._defaults = {**_values(StoreConfig()), **_values(BrokerConfig())}
        self._fields: dict[str, Field[Any]] = {
            field.name: field for kind in (StoreConfig, BrokerConfig) for field in fields(kind)
        }
        self._meanings = {
            found.name: " ".join(found.text.split())
            for owner, module in _MODULES.items()
            for found in meanings(module, owner)
        }

    def name_of(self, text: str) -> str:
        """The setting with this name of ours or of RocketMQ's. UsageProblem if there is none."""
        wanted = text.replace("-", "_")
        known = {name: name for name in self._values}
        known |= {java: name for name in self._values if (java := java_name(name)) is not None}
        if wanted in known:
            return known[wanted]
        near = get_close_matches(wanted, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UsageProblem(f"there is no broker setting {text!r}{hint}")

    def rows(self, names: list[str]) -> Iterator[BrokerSettingRow]:
        """Some or all settings, those of the store first."""
        for name in names or self._values:
            yield self._row(name, self._values[name], None)

    def java_lines(self) -> list[str]:
        """The lines of broker.conf for a Java broker with the same settings."""
        return [
            f"{java}={text_of(value)}"
            for name, value in self._values.items()
            if value != self._defaults[name] and (java := java_name(name)) is not None
        ]

    def plan(self, name: str, text: str | None) -> list[BrokerSettingRow]:
        """The plan of setting a value; empty if it is set already. None restores the default.

        Refused for a setting that is fixed for the life of a store, UsageProblem for an invalid
        value.
        """
        if name in FIXED_FIELDS:
            raise Refused(
                f"{name} is fixed for the life of a store; create a new store to use other sizes"
            )
        value = self._defaults[name] if text is None else self._parsed(name, text)
        record = {**self.record.store, **self.record.broker}
        same = value == self._values[name] and record.get(name, value) == value
        if same and (text is not None or name not in record):
            return []
        row = self._row(name, value, self._values[name])
        return [row._replace(origin="built-in" if text is None else _RECORD)]

    def change_of(self, name: str, text: str | None) -> tuple[Any, Any]:
        """The current value of a setting, and the value of a text; None is the default."""
        return self._values[name], self._defaults[name] if text is None else self._parsed(
            name, text
        )

    def with_value(self, name: str, text: str | None) -> tuple[StoreSettings, Any]:
        """The file's content with a value, and the value in it; None for the default."""
        store, broker = dict(self.record.store), dict(self.record.broker)
        part = store if name in {field.name for field in fields(StoreConfig)} else broker
        if text is None:
            part.pop(name, None)
        else:
            part[name] = self._parsed(name, text)
        return StoreSettings(store, broker), part.get(name)

    def _row(self, name: str, value: Any, old: Any) -> BrokerSettingRow:
        java = java_name(name)
        if name in FIXED_FIELDS:
            origin = "the store's files"
        elif name in self.record.store or name in self.record.broker:
            origin = _RECORD
        else:
            origin = "built-in"
        return BrokerSettingRow(
            name,
            text_of(old),
            text_of(value),
            origin,
            None if java is None or value is None else f"{java}={text_of(value)}",
            name in FIXED_FIELDS,
            self._meanings.get(name, ""),
            None,
        )

    def _parsed(self, name: str, text: str) -> Any:
        """The value of a text, with the checks of the setting's class and its readers."""
        default = self._defaults[name]
        if not is_utf8(text):
            raise UsageProblem(f"{name}: {text!r} has bytes that are no UTF-8")
        try:
            # A setting whose default is None depends on the store; it is a boolean.
            value = _as_kind_of(False if default is None else default, text)
            kind = StoreConfig if name in StoreConfig.__dataclass_fields__ else BrokerConfig
            kind(**{name: value})
        except ValueError as error:
            named = str(error).startswith(name)
            raise UsageProblem(str(error) if named else f"{name}: {error}") from None
        return value


class SettingChange(Change):
    """A change of one setting."""

    def __init__(
        self, settings: BrokerSettings, name: str, text: str | None, java_check: JavaCheck | None
    ) -> None:
        self.name = name
        self._settings = settings
        self._text = text
        self._java_check = java_check
        plan = settings.plan(name, text)
        self.old, self.new = settings.change_of(name, text)
        super().__init__(BrokerSettingRow, plan, question=f"Change {name}?", entry={"what": name})

    def check(self) -> None:
        """CliError (6) if settings were changed since, StoreInUseError beside a Java broker."""
        (self._java_check or refuse_beside_java(self._settings.root))()
        self._check()

    def _check(self) -> None:
        if read_store_settings(self._settings.root) != self._settings.record:
            raise CliError(
                "settings were changed since the plan was made; nothing was written", CHANGED
            )

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Write it and read it back. Raises what ``check`` raises; nothing has changed then."""
        settings, name = self._settings, self.name
        if not self.plan:
            return Outcome([])
        (self._java_check or refuse_beside_java(settings.root))()
        content, value = settings.with_value(name, self._text)
        with config_lock(settings.root):
            self._check()
            entry = {**note, **self.entry, "old": self.old, "new": value}
            Journal(settings.root).append(entry, clock_ms())
            write_store_settings(settings.root, content)
        now = read_store_settings(settings.root)
        applied = {**now.store, **now.broker}.get(name) == value
        return Outcome([row._replace(applied=applied) for row in self.plan])


def set_setting(
    view: StoreView, name: str, text: str | None, *, java_check: JavaCheck | None = None
) -> SettingChange:
    """Set a setting of a store's broker; None restores the default.

    ``name`` is ours or RocketMQ's. It applies to each process that opens the store afterwards.
    UsageProblem for an unknown name or an invalid value, Refused for a setting that is fixed for
    the life of a store. No row if it is set already.
    """
    settings = BrokerSettings(view)
    return SettingChange(settings, settings.name_of(name), text, java_check)


def java_name(name: str) -> str | None:
    """RocketMQ's name of a setting; None if it does not have it."""
    if name in _NOT_JAVAS:
        return None
    head, *rest = name.removesuffix("_ms").split("_")
    return _OTHER_JAVA_NAMES.get(name) or head + "".join(part.capitalize() for part in rest)


def text_of(value: Any) -> str | None:
    """A value in the form of broker.conf; None if it depends on the store."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(config: Any) -> dict[str, Any]:
    return {field.name: getattr(config, field.name) for field in fields(config)}


def _as_kind_of(default: Any, text: str) -> Any:
    if isinstance(default, bool):
        if text.lower() not in _TRUE | _FALSE:
            raise ValueError(f"{text!r} is neither true nor false")
        return text.lower() in _TRUE
    if isinstance(default, StrEnum):
        if text not in set(FlushDiskType):
            raise ValueError(f"{text!r} is not one of {', '.join(FlushDiskType)}")
        return FlushDiskType(text)
    if isinstance(default, int):
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise ValueError(f"{text!r} is not a number from 0 on")
        return int(text)
    if isinstance(default, float):
        number = float(text)
        if not 0 <= number <= 1:
            raise ValueError(f"{text!r} is not a fraction from 0 to 1")
        return number
    return text
