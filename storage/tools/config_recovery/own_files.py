"""Damaged files of rmqctl's own, and the sources to rebuild them from.

    queues              the names of the shared state: the next writer makes them from the queues
    store.json          the lengths of the store's files
    settings.json       the journal, which has every change, store.json, whole parts of the file
    deleted.json        the names in the file and in the journal, and where their queues begin
    handled.json        the journal, which has every mark and the deletions of topics, and the
                        receipts of redrives
    delays-ended.json   nothing: messages sent before their time come once more
    deliveries          no damage to report: a slot with a wrong sum is empty, and the next
                        delivery writes it
    journal             its lines that are whole
    samples             their lines before the first damaged one, on which the later ones build
    redrives            their lines that are whole; nothing without the first one, the task
    offsets.json        nothing: its content is always the same, beside offsets.log

``offsets.log`` is not here, but for a line that a crash has cut short: evidence of progress is read
in broker.offset_recovery. Nothing here writes; ``store fsck`` reports the damage and ``store
repair`` writes the new content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from storage.config import FIXED_FIELDS, StoreConfig
from storage.configs.checksummed_json import SealError, examine, seal
from storage.configs.deleted_topics import DELETED_FILE, deleted_entry, read_deleted_topics
from storage.configs.dlq_acks import Change, DlqAcksFile, handled_entry
from storage.configs.early_deliveries import EarlyDeliveries
from storage.configs.journal import JOURNAL_ENTRY, Journal, is_topic_deletion
from storage.configs.journal_marks import (
    Journalled,
    TimedDeletion,
    TimedMark,
    journalled_marks,
    marks_before_sends,
)
from storage.configs.offset_samples import SAMPLE, OffsetSamples
from storage.configs.progress_log import ProgressLog
from storage.configs.progress_reader import MARK, OFFSETS_FILE, check_mark
from storage.configs.progress_rows import KnownRows
from storage.configs.redrive_runs import RECEIPT, TASK, RedriveRuns
from storage.configs.store_settings import (
    SETTINGS_FILE,
    StoreSettings,
    read_store_settings,
    settings_entry,
    settings_error,
)
from storage.coordination.shared_state import SHARED_STATE_MAGIC, SharedState, Word
from storage.detect import recorded_config
from storage.errors import CorruptFileError, StoreVersionError
from storage.files.bounded import read_bounded, read_with_status
from storage.files.fs import FileSystem
from storage.format.message import dlq_topic
from storage.format.names import OURS
from storage.format.partial_json import loads_torn
from storage.layout import given_settings, read_sizes, sizes_record

if TYPE_CHECKING:
    from storage.format.shapes import Shape
    from storage.readonly import StoreView


class OwnDamage(NamedTuple):
    """A damaged file, or lines of it.

    ``content`` is its new content; None: it goes to the quarantine. ``made_of`` names the sources,
    and ``cost`` what is lost, "" for nothing. ``torn`` is a line that a crash left incomplete:
    harmless, and readers skip it.
    """

    file: str
    position: int
    what: str
    content: Callable[[], bytes | None]
    made_of: str
    cost: str = ""
    torn: bool = False


_Made = Callable[["StoreView", CorruptFileError], OwnDamage]
BrokerCheck = Callable[[dict[str, Any]], object]
"""Raises ValueError for settings of a broker that none can have: storage has no list of them."""


def damaged_own_files(
    view: StoreView, check_broker: BrokerCheck | None = None
) -> Iterator[OwnDamage]:
    """Check each file of a store's ``rmqctl`` folder except ``offsets.log``.

    ``content`` reads more of the store when it is called. Raises OSError; files of a later rmqctl
    are left alone.
    """
    root = view.root
    whole_files: tuple[tuple[Callable[[Path], object], _Made], ...] = (
        (read_sizes, _sizes),
        (lambda root: _read_settings(root, check_broker), partial(_settings, check_broker)),
        (read_deleted_topics, _deleted),
        (lambda root: DlqAcksFile(root).all(), _handled),
        (lambda root: EarlyDeliveries(root).all(), _ended),
        (check_mark, _mark),
        (_read_names, _names),
    )
    for read, made in whole_files:
        try:
            read(root)
        except CorruptFileError as error:
            yield made(view, error)
        except StoreVersionError:
            continue
    yield from _end_of_log(root)
    for path in Journal(root).files():
        yield from _lines(root, path, _OF_JOURNAL)
    for path in OffsetSamples(root).files():
        yield from _lines(root, path, _OF_SAMPLES)
    runs = RedriveRuns(root)
    for name in runs.names():
        yield from _lines(root, runs.path_of(name), _OF_REDRIVE)


# -- files of one entry -----------------------------------------------------------------------


def _damage(
    error: CorruptFileError,
    content: Callable[[], bytes | None],
    made_of: str,
    cost: str = "",
) -> OwnDamage:
    reason = error.reason.partition(" ('")[0].partition(" (the next process")[0]
    return OwnDamage(f"{OURS}/{error.path.name}", error.position, reason, content, made_of, cost)


def _sizes(view: StoreView, error: CorruptFileError) -> OwnDamage:
    def content() -> bytes:
        return sizes_record(view.config)

    return _damage(error, content, "the lengths that the store's files have")


def _read_settings(root: Path, check_broker: BrokerCheck | None) -> None:
    recorded_config(root)
    try:
        if check_broker is not None:
            check_broker(read_store_settings(root).broker)
    except ValueError as error:
        raise settings_error(root, error) from error


def _settings(
    check_broker: BrokerCheck | None, view: StoreView, error: CorruptFileError
) -> OwnDamage:
    def content() -> bytes:
        return seal(settings_entry(salvaged_settings(view.root, check_broker)))

    return _damage(
        error,
        content,
        "the journal, and what is whole of the file",
        "settings of the broker that were given when the store was made may be the defaults",
    )


def salvaged_settings(root: Path, check_broker: BrokerCheck | None = None) -> StoreSettings:
    """Rebuild the changed settings: the journal takes precedence over the file."""
    left = _left_of(root / OURS / SETTINGS_FILE).get("store")
    of_file = left.items() if isinstance(left, dict) else ()
    of_store = {field.name for field in fields(StoreConfig)}
    found: dict[str, dict[str, Any]] = {
        "store": {
            **given_settings(root),
            **{name: value for name, value in of_file if name in of_store},
        },
        "broker": {},  # which has no other source than changes
    }
    for entry in Journal(root).entries():
        name, new = entry.get("what"), entry.get("new")
        if not str(entry.get("command")).startswith("broker config") or not isinstance(name, str):
            continue
        values = found["store" if name in of_store else "broker"]
        values.pop(name, None)
        if isinstance(new, (bool, int, float, str)):
            values[name] = new
    checks = {"store": StoreConfig.from_record, "broker": check_broker}
    return StoreSettings(*(_possible(found[part], checks[part]) for part in ("store", "broker")))


def _possible(values: dict[str, Any], check: BrokerCheck | None) -> dict[str, Any]:
    """Leave out invalid values of settings."""
    kept = {}
    for name, value in values.items():
        with suppress(ValueError):
            if check is not None:
                check({name: value})
            if name not in FIXED_FIELDS:
                kept[name] = value
    return kept


def _deleted(view: StoreView, error: CorruptFileError) -> OwnDamage:
    def content() -> bytes:
        return seal(deleted_entry(salvaged_deleted_topics(view)))

    return _damage(
        error,
        content,
        "the names that are left and the journal, and the places where the topics' queues begin",
        "a topic without any evidence may come back when queues are rebuilt",
    )


def salvaged_deleted_topics(view: StoreView) -> dict[str, int]:
    """Give the deleted topics of a damaged file, and the log offset from which each counts.

    Records before the first one that a queue has belong to the deleted topic. A topic without a
    queue is deleted up to the end of the log.
    """
    topics = _left_of(view.root / OURS / DELETED_FILE).get("topics")
    names = {str(name) for name in topics} if isinstance(topics, dict) else set()
    names.update(e["topic"] for e in Journal(view.root).entries() if is_topic_deletion(e))
    firsts: dict[str, int] = {}
    for topic, queue_id in view.files.queue_folders():
        if topic in names:
            low, high = view.queue_bounds(topic, queue_id)
            unit = view.unit(topic, queue_id, low) if low < high else None
            # Where the first messages are gone, so are those before them.
            place = view.log_max_offset() if unit is None else 0 if low else unit[0]
            firsts[topic] = min(place, firsts.get(topic, place))
    return {topic: firsts.get(topic, view.log_max_offset()) for topic in sorted(names)}


def _handled(view: StoreView, error: CorruptFileError) -> OwnDamage:
    def content() -> bytes:
        return seal(handled_entry(_marks(view.root)))

    return _damage(error, content, "the journal, and the receipts of redrives")


def _marks(root: Path) -> dict[str, dict[int, list[Change]]]:
    """Replay the marks in the order of the journal; those of redrives come where these were made.
    Those before the deletion of their topic are left out: the offsets of its queues came again."""
    file: dict[str, dict[int, list[Change]]] = {}
    journalled = list(journalled_marks(Journal(root)))
    done = [*_redriven(root, journalled), *enumerate(journalled)]
    for _, one in sorted(done, key=itemgetter(0)):
        if isinstance(one, TimedDeletion):
            file.pop(one.topic, None)
        elif isinstance(one, TimedMark):
            file.setdefault(one.topic, {}).setdefault(one.queue_id, []).append(one.change)
    return file


def _redriven(root: Path, journalled: list[Journalled]) -> Iterator[tuple[int, TimedMark]]:
    """The marks of redrives, each with the number of journalled ones before it."""
    runs = RedriveRuns(root)
    for name in runs.names():
        task, receipts = runs.read(name) or ({}, [])
        sent = {
            (receipt["queue_id"], receipt["queue_offset"]): receipt["redriven_timestamp"] or 0
            for receipt in receipts
            if receipt.get("applied")
        }
        if sent:
            topic = dlq_topic(task["group"])
            handled = [(queue_id, offset) for queue_id, offset in task.get("handled", ())]
            before = marks_before_sends(journalled, topic, task["run"], sent, handled)
            for (queue_id, offset), at in sent.items():
                change = (True, offset, offset + 1)
                yield before[queue_id, offset], TimedMark(at, topic, queue_id, change)


def _ended(view: StoreView, error: CorruptFileError) -> OwnDamage:
    return _damage(
        error,
        lambda: None,
        "nothing: it goes to the quarantine",
        "messages that were sent before their time come once more",
    )


def _mark(view: StoreView, error: CorruptFileError) -> OwnDamage:
    return _damage(error, lambda: MARK, "nothing: it marks a store with a log of progress")


def _end_of_log(root: Path) -> Iterator[OwnDamage]:
    """The end of the log of progress, where a crash has left a line there."""
    path = root / OURS / OFFSETS_FILE
    try:
        data, status = read_with_status(path)
        end = ProgressLog(path, data, status.st_ino, KnownRows).ending.end
    except (FileNotFoundError, NotADirectoryError, CorruptFileError, StoreVersionError):
        return  # reported with the offsets
    if end < len(data):
        what = f"the last {len(data) - end} bytes are no whole line"
        yield OwnDamage(
            f"{OURS}/{OFFSETS_FILE}", end, what, lambda: data[:end], "its whole lines", torn=True
        )


def _read_names(root: Path) -> None:
    """Read the names of the shared state's slots, if the shared state is valid."""
    try:
        shared = SharedState(FileSystem(), root, writable=False)
    except OSError:
        return
    try:
        if shared.words[Word.MAGIC] == SHARED_STATE_MAGIC:
            shared.queues()
    finally:
        shared.close()


def _names(view: StoreView, error: CorruptFileError) -> OwnDamage:
    return _damage(error, lambda: b"", "the queues, by the next process that writes")


def _left_of(path: Path) -> dict[Any, Any]:
    """Give the whole parts of the entry of a sealed file."""
    try:
        data = read_bounded(path)
    except (OSError, CorruptFileError):
        return {}
    entry = loads_torn(data.decode("utf-8", "replace")).document.get("entry")
    return entry if isinstance(entry, dict) else {}


# -- files of lines ---------------------------------------------------------------------------


class _Lines(NamedTuple):
    """What lines a file has, and what is lost with a damaged one."""

    first: Shape
    others: Shape
    cost: str
    cost_of_first: str | None = None
    """The same of the first line, where it is another."""
    needs_first: bool = False
    """Without the first line the others say nothing."""
    builds: bool = False
    """A line says nothing without those before it."""


_OF_JOURNAL: Final = _Lines(JOURNAL_ENTRY, JOURNAL_ENTRY, "changes in these lines")
_OF_SAMPLES: Final = _Lines(
    SAMPLE,
    SAMPLE,
    "what was sampled of groups from then on, up to the next file",
    needs_first=True,
    builds=True,
)
_OF_REDRIVE: Final = _Lines(
    TASK,
    RECEIPT,
    "receipts; what was sent is found in the log",
    "the task and its receipts: what it has sent without a mark is sent again by the next one",
    needs_first=True,
)


def _lines(root: Path, path: Path, kind: _Lines) -> Iterator[OwnDamage]:
    """Check the lines of a file."""
    name = str(path.relative_to(root))
    cost_of_first = kind.cost_of_first or kind.cost
    try:
        data = read_bounded(path)
    except FileNotFoundError:
        return
    except CorruptFileError as error:
        yield OwnDamage(name, error.position, error.reason, lambda: None, _AWAY, cost_of_first)
        return
    bad: list[tuple[int, SealError]] = []
    good: list[bytes] = []
    has_first = True
    position = 0
    for number, line in enumerate(data.split(b"\n")):
        try:
            if line.strip():
                examine(line, kind.others if number else kind.first)
                if not (bad and kind.builds):
                    good.append(line)
        except SealError as wrong:
            bad.append((position + wrong.position, wrong))
            has_first &= number > 0
        position += len(line) + 1
    if not bad:
        return
    rest = b"".join(line + b"\n" for line in good) if has_first or not kind.needs_first else None
    first, found = next(((at, each) for at, each in bad if not each.torn), bad[0])
    lines = "1 line is" if len(bad) == 1 else f"{len(bad)} lines are"
    yield OwnDamage(
        name,
        first,
        f"{lines} damaged: {found.reason}",
        lambda: rest,
        _AWAY if rest is None else _BEFORE if kind.builds else "its lines that are whole",
        kind.cost if has_first else cost_of_first,
        torn=found.torn,
    )


_AWAY: Final = "nothing: it goes to the quarantine"
_BEFORE: Final = "its lines before the first damaged one"
