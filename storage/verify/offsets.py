"""Checking settings and consumers' progress against the queues."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from storage.configs.config_file import ConfigFile, ConfigSource
from storage.configs.consumer_offsets import split_topic_at_group
from storage.configs.delay_offsets import load_delay_offsets
from storage.errors import CorruptFileError, StoreVersionError
from storage.format.names import CONFIG, CONSUMEQUEUE
from storage.model import LMQ_PREFIX, SCHEDULE_TOPIC

from .findings import Checked, Code, Finding, Severity

if TYPE_CHECKING:
    from storage.readonly import StoreView

Emit = Callable[[Finding], None]

_CONFIG_FILES: Final = (
    "topics.json",
    "subscriptionGroup.json",
    "consumerOffset.json",
    "lmqConsumerOffset.json",
    "delayOffset.json",
    "consumerFilter.json",
)
_PROGRESS: Final = f"{CONFIG}/consumerOffset.json"
_CREATABLE: Final = re.compile(r"(?!RMQ_SYS_|rmq_sys_)[%|a-zA-Z0-9_-]{1,127}")


def check_configs(view: StoreView, emit: Emit, checked: Checked) -> None:
    """Read each settings file as a broker would, and see whether every queue's topic is known."""
    for name in _CONFIG_FILES:
        path = view.root / CONFIG / name
        if path.exists() or path.with_name(name + ".bak").exists():
            checked.files += 1
            _check_config(path, emit)
    try:
        topics = view.topics()
    except CorruptFileError:
        return  # reported above
    if not topics:
        return
    queues = view.files.queue_folders()
    folders = {topic for topic, _ in queues if not topic.startswith(LMQ_PREFIX)}
    for topic in sorted(folders - set(topics)):
        emit(
            Finding(
                Code.TOPIC_UNKNOWN,
                Severity.INFO,
                f"{CONSUMEQUEUE}/{topic}",
                None,
                f"{topic} has queues but is not in topics.json",
                "clients of a Java broker can not read it",
                f"rmqctl topic create {topic}" if _may_be_created(topic) else "",
            )
        )


def _may_be_created(topic: str) -> bool:
    """Whether a person may create it: no topic of the system, no name that brokers refuse."""
    return bool(_CREATABLE.fullmatch(topic)) and topic != SCHEDULE_TOPIC


def _check_config(path: Path, emit: Emit) -> None:
    name = f"{CONFIG}/{path.name}"
    try:
        loaded = ConfigFile(path).load()
    except CorruptFileError as error:
        emit(
            Finding(
                Code.CONFIG_UNREADABLE,
                Severity.ERROR,
                name,
                0,
                f"neither it nor its .bak can be read: {error.reason}",
                "a Java broker starts without these settings, or not at all",
                _recover(name),
            )
        )
        return
    if loaded.source is ConfigSource.BAK:
        emit(
            Finding(
                Code.CONFIG_FROM_BAK,
                Severity.WARNING,
                name,
                0,
                "the file is missing or can not be read, its .bak can",
                "the last change of these settings is lost",
                "rmqctl store repair, or the next change writes the file again",
            )
        )
        return
    bak = path.with_name(path.name + ".bak")
    if path.exists() and not loaded.document and _holds_anything(bak, loaded.source):
        emit(
            Finding(
                Code.CONFIG_EMPTY,
                Severity.WARNING,
                name,
                0,
                "the file holds nothing",
                "a broker goes on without these settings, and writes its defaults",
                _recover(name),
            )
        )


def _recover(name: str) -> str:
    of_groups = name.lower().endswith("consumeroffset.json")
    return f"rmqctl store {'recover-offsets' if of_groups else 'recover-config'}"


def _holds_anything(bak: Path, source: ConfigSource) -> bool:
    """Whether something was lost: brokers write braces at least, and empty tables by name."""
    if source is ConfigSource.NONE:
        return True
    try:
        return bak.exists() and bool(ConfigFile(bak).load().document)
    except CorruptFileError:
        return True


def check_offsets(view: StoreView, emit: Emit, checked: Checked) -> None:
    """Compare committed offsets and the delay levels' progress with the queues' bounds."""
    try:
        table = view.consumer_offsets()
    except (CorruptFileError, StoreVersionError) as error:
        name = str(error.path.relative_to(view.root))
        emit(
            Finding(
                Code.CONFIG_UNREADABLE,
                Severity.ERROR,
                name,
                0,
                str(error),
                "the progress of all groups is unknown",
                "rmqctl store recover-offsets",
            )
        )
        return
    queues = set(view.queues())
    for key in sorted(table):
        parts = split_topic_at_group(key)
        topic, group = parts if parts is not None else (key, "?")
        for queue_id, offset in sorted(table[key].items()):
            checked.offsets += 1
            where = f"group {group}, {topic} queue {queue_id}"
            if (topic, queue_id) in queues:
                _check_offset(view, topic, queue_id, offset, where, _PROGRESS, emit)
            elif offset:
                _found(
                    Code.OFFSET_WITHOUT_QUEUE,
                    f"{where}: offset {offset}, but the store has no such queue",
                    _PROGRESS,
                    emit,
                )
    try:
        levels = load_delay_offsets(view.root)
    except CorruptFileError:
        return  # reported with the settings
    for level, offset in sorted(levels.items()):
        checked.offsets += 1
        where = f"delay level {level}"
        if (SCHEDULE_TOPIC, level - 1) in queues:
            file = f"{CONFIG}/delayOffset.json"
            _check_offset(view, SCHEDULE_TOPIC, level - 1, offset, where, file, emit)


def _check_offset(
    view: StoreView, topic: str, queue_id: int, offset: int, where: str, file: str, emit: Emit
) -> None:
    bounds = view.queue_bounds(topic, queue_id)
    if offset > bounds.max_offset:
        ahead = offset - bounds.max_offset
        what = f"{where}: offset {offset} is {ahead} behind the queue's end, {bounds.max_offset}"
        _found(Code.OFFSET_BEHIND_END, what, file, emit)
    elif offset < bounds.min_offset:
        what = f"{where}: offset {offset}, the first message left is {bounds.min_offset}"
        _found(Code.OFFSET_BELOW_START, what, file, emit)


def _found(code: Code, what: str, file: str, emit: Emit) -> None:
    effects = {
        Code.OFFSET_BEHIND_END: "new messages up to there will be passed over",
        Code.OFFSET_BELOW_START: "the messages before it were deleted unread",
        Code.OFFSET_WITHOUT_QUEUE: "none",
    }
    emit(Finding(code, Severity.INFO, file, None, what, effects[code], ""))
