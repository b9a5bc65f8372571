"""Checking settings and consumers' progress against the queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storage.configs.config_file import ConfigFile, ConfigSource, JsonObject
from storage.configs.config_table import ConfigTable
from storage.configs.consumer_offsets import (
    consumer_offset_file,
    decode_offsets,
    load_consumer_offsets,
    split_topic_at_group,
)
from storage.configs.delay_offsets import (
    DELAY_OFFSET_FILE,
    decode_delay_offsets,
    load_delay_offsets,
)
from storage.configs.early_deliveries import EarlyDeliveries
from storage.configs.subscription_groups import SubscriptionGroupTable
from storage.configs.topics import TopicTable
from storage.errors import CorruptFileError, StoreVersionError
from storage.format.delay import parse_delay_levels
from storage.format.message import SCHEDULE_TOPIC
from storage.format.names import CONFIG, CONSUMEQUEUE
from storage.format.shapes import MAX_QUEUES
from storage.layout import was_created_here
from storage.tools.config_recovery.delays import passed_over

from .findings import Checked, Code, Finding, Severity
from .topics import check_topics, may_be_named

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
_CHECKS: Final[dict[str, Callable[[JsonObject], object]]] = {
    "topics.json": lambda document: TopicTable(document, 0),
    "subscriptionGroup.json": lambda document: SubscriptionGroupTable(document, 0),
    "consumerOffset.json": decode_offsets,
    "lmqConsumerOffset.json": decode_offsets,
    "delayOffset.json": decode_delay_offsets,
}
_PROGRESS: Final = f"{CONFIG}/consumerOffset.json"


def check_configs(view: StoreView, emit: Emit, checked: Checked) -> None:
    """Read each settings file as a broker would, and compare the topics with the queues."""
    for name in _CONFIG_FILES:
        path = view.root / CONFIG / name
        if path.exists() or path.with_name(name + ".bak").exists():
            checked.files += 1
            _check_config(path, emit)
    check_topics(view, emit)


def _check_config(path: Path, emit: Emit) -> None:
    name = f"{CONFIG}/{path.name}"
    try:
        loaded = ConfigFile(path, check=_CHECKS.get(path.name)).load()
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
    if isinstance(loaded.made, ConfigTable):
        _check_counts(loaded.made, name, emit)
    if loaded.source is ConfigSource.BAK:
        emit(
            Finding(
                Code.CONFIG_FROM_BAK,
                Severity.WARNING,
                name,
                0,
                "the file is missing or cannot be read, its .bak can",
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


def _check_counts(table: ConfigTable[Any], file: str, emit: Emit) -> None:
    """Numbers of queues that no list of queues could hold."""
    for name, member, count in table.too_many_queues:
        option = "--queues" if table.kind == "topic" else "--retry-queue-nums"
        emit(
            Finding(
                Code.QUEUE_COUNT_WRONG,
                Severity.WARNING,
                file,
                None,
                f"{table.kind} {name} has {count} as {member}",
                f"rmqctl uses the queues that have folders, as more than {MAX_QUEUES} are none; "
                "a Java broker and its clients may use up their memory; the next change of a "
                f"{table.kind} writes another number",
                f"rmqctl {table.kind} alter {name} {option} N" if may_be_named(name) else "",
            )
        )


def _recover(name: str) -> str:
    of_groups = name.lower().endswith("consumeroffset.json")
    return f"rmqctl store {'recover-offsets' if of_groups else 'recover-config'}"


def _holds_anything(bak: Path, source: ConfigSource) -> bool:
    """Whether content was lost: brokers write braces at least, and empty tables by name."""
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
        view.progress.read().read_exported()
    except (CorruptFileError, StoreVersionError) as error:
        emit(_no_progress(view.root, error))
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
            _check_level(view, level, offset, where, emit)
    _check_stranded(view, levels, emit)


def _no_progress(root: Path, error: CorruptFileError | StoreVersionError) -> Finding:
    java = consumer_offset_file(root).path.relative_to(root)
    is_newer = isinstance(error, StoreVersionError)
    effect = "the progress of all groups is unknown"
    if is_newer or _holds_offsets(root):
        effect = f"rmqctl's consumers cannot go on; a Java broker does, with {java}"
    return Finding(
        Code.CONFIG_UNREADABLE,
        Severity.ERROR,
        str(error.path.relative_to(root)),
        0 if isinstance(error, StoreVersionError) else error.position,
        f"it has version {error.found}, this rmqctl knows up to version {error.known}"
        if isinstance(error, StoreVersionError)
        else error.reason,
        effect,
        "a newer rmqctl" if is_newer else "rmqctl store recover-offsets",
    )


def _holds_offsets(root: Path) -> bool:
    """Whether Java's file can be read and has a group."""
    try:
        return bool(load_consumer_offsets(root))
    except CorruptFileError:
        return False


def _check_offset(
    view: StoreView, topic: str, queue_id: int, offset: int, where: str, file: str, emit: Emit
) -> None:
    bounds = view.queue_bounds(topic, queue_id)
    if offset > bounds.max_offset:
        ahead = offset - bounds.max_offset
        what = f"{where}: offset {offset} is {ahead} past the queue's end, {bounds.max_offset}"
        _found(Code.OFFSET_BEHIND_END, what, file, emit)
    elif offset < bounds.min_offset:
        what = f"{where}: offset {offset}, the first message left is {bounds.min_offset}"
        _found(Code.OFFSET_BELOW_START, what, file, emit)


def _check_level(view: StoreView, level: int, offset: int, where: str, emit: Emit) -> None:
    """Progress of a delay level: a broker that finds it past the queue's end sets it there."""
    file, end = f"{CONFIG}/{DELAY_OFFSET_FILE}", view.queue_bounds(SCHEDULE_TOPIC, level - 1)[1]
    if offset <= end:
        _check_offset(view, SCHEDULE_TOPIC, level - 1, offset, where, file, emit)
        return
    waiting = passed_over(view, level, offset)
    messages = "1 message that waits" if waiting == 1 else f"{waiting} messages that wait"
    emit(
        Finding(
            Code.OFFSET_BEHIND_END,
            Severity.WARNING if waiting else Severity.INFO,
            file,
            None,
            f"{where}: offset {offset} is {offset - end} past the queue's end, {end}",
            f"{messages} will not be delivered" if waiting else "none: brokers set it to the end",
            "rmqctl store recover-config" if waiting else "",
        )
    )


def _check_stranded(view: StoreView, saved: Mapping[int, int], emit: Emit) -> None:
    """Messages in delay levels above the number in the settings."""
    delays = len(parse_delay_levels(view.config.message_delay_level))
    counts = {}
    for topic, queue_id in view.queues():
        level = queue_id + 1
        if topic == SCHEDULE_TOPIC and level > delays:
            low, end = view.queue_bounds(topic, queue_id)
            first = max(saved.get(level, low), low)
            counts[level] = max(0, end - first) - _ended_from(view.root, queue_id, first)
    most = max((level for level, count in counts.items() if count > 0), default=0)
    ours = was_created_here(view.root)
    for level, count in sorted(counts.items()):
        if count <= 0:
            continue
        emit(
            Finding(
                Code.DELAY_LEVEL_GONE,
                Severity.WARNING if ours else Severity.INFO,
                f"{CONSUMEQUEUE}/{SCHEDULE_TOPIC}/{level - 1}",
                None,
                f"{'1 message waits' if count == 1 else f'{count} messages wait'} in delay level "
                f"{level}; messageDelayLevel has {delays} levels",
                "nothing delivers them"
                if ours
                else "only a broker whose broker.conf has that many levels delivers them",
                f"'rmqctl broker config set messageDelayLevel' with at least {most} levels",
            )
        )


def _ended_from(root: Path, queue_id: int, first: int) -> int:
    """How many messages of a level from an offset on were sent before their time."""
    try:
        ended = EarlyDeliveries(root).all().get(queue_id, ())
    except (CorruptFileError, StoreVersionError):
        return 0  # reported with rmqctl's own files
    return sum(offset >= first for offset, _ in ended)


def _found(code: Code, what: str, file: str, emit: Emit) -> None:
    effects = {
        Code.OFFSET_BEHIND_END: "new messages up to there will be passed over",
        Code.OFFSET_BELOW_START: "the messages before it were deleted unread",
        Code.OFFSET_WITHOUT_QUEUE: "none",
    }
    emit(Finding(code, Severity.INFO, file, None, what, effects[code], ""))
