"""Lost progress of groups, recovered from every file and message that still shows it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from broker.errors import OffsetChangedError
from broker.offset.offset_move import move_offsets_of_store
from broker.offset_recovery.recovery import LostProgress, Recovered, progress_key
from broker.offset_recovery.retry_evidence import given_back
from rmqctl.admin.changes import Change, JavaCheck, Outcome, Warn, no_warning
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.offsets.change import running_sentences
from rmqctl.admin.offsets.move import RunningGroups, members_of
from storage.clock import now_ms as clock_ms
from storage.configs.journal import Journal
from storage.configs.progress import ProgressFile
from storage.coordination.config_lock import config_lock
from storage.errors import CorruptFileError, StoreChangedError
from storage.format.message import TRACE_TOPIC
from storage.readonly import StoreView
from storage.tools.config_recovery.progress_files import (
    FileState,
    own_progress_files,
    read_progress_files,
)
from storage.tools.quarantine import Quarantine

from .recovery_rows import RecoveredOffset, RecoveredOffsetDone
from .trace_evidence import traced

if TYPE_CHECKING:
    from storage.configs.progress import Moves

_WHY: Final = "recover-offsets"
_DAMAGED: Final = (FileState.CUT, FileState.EMPTY)


class OffsetRecovery(Change):
    """A change that writes recovered progress, all or none of it.

    Attributes:
        damage: sentences about the damaged files.
        effect_on_file: what ``apply`` does to a file as a whole, in words, where no progress of a
            group is written; "" else. Such a change may have no rows.
        ours: the name of our file of progress in the store.
        gives_up: whether that is to go on without the file, of whose content nothing is known.
    """

    def __init__(
        self,
        lost: LostProgress,
        found: Sequence[Recovered],
        root: Path,
        *,
        no_live: bool,
        java_check: JavaCheck | None,
    ) -> None:
        self._root = root
        self._lost = lost
        self._found = found
        self._java_check = java_check
        files = lost.files
        self.ours = ours = str(files.ours.path.relative_to(root))
        self._wanted = wanted = [
            row for row in found if row.offset is not None and row.offset != row.present
        ]
        self.damage = tuple(_of_files(lost, root))
        self.gives_up = False
        self.effect_on_file = ""
        if not wanted and files.ours.state in _DAMAGED and not found:
            self.gives_up = True
            self.effect_on_file = f"{ours} lies in the quarantine; no group has progress now"
            question = f"Put {ours} into the quarantine and go on without it?"
        elif not wanted and files.ours.state is FileState.WHOLE and files.java.lost:
            self.effect_on_file = f"wrote {files.java.path}"
            question = f"Write {files.java.path.name} from {ours}?"
        else:
            question = _question(wanted)
        groups = sorted({row.place[0] for row in wanted})
        self._live = live = members_of(root, groups)
        self._no_live = RunningGroups(root, groups if no_live else ())
        super().__init__(
            RecoveredOffset,
            [_row(row) for row in found],
            result_type=RecoveredOffsetDone,
            summary=[*_foot(found), *running_sentences(live)],
            refusals=filter(None, [self._no_live.refusal()]),
            question=question,
            has_effect=bool(wanted or self.effect_on_file),
            entry={"what": ours, "old": "damaged", "new": None} if self.gives_up else None,
        )

    def check(self) -> None:
        """OffsetChangedError if progress was written since, StoreChangedError if a file that is to
        be put away was; StoreInUseError beside a Java broker; Refused if consumers run that may
        not.

        Consumers that run go on committing, which is no change.
        """
        self._refuse_java()
        self._no_live.check()
        self._check_given_up()
        with StoreView.open(self._root) as view:
            present = LostProgress(view, ()).present
        for row in self._wanted:
            self._check(row, present.get(row.place))

    def unchanged_rows(self) -> list[Any]:
        """See Change."""
        return [RecoveredOffsetDone(*row, None) for row in self.plan]

    def apply(self, note: Mapping[str, Any]) -> Outcome:
        """Keep copies of the damaged files, note the change, write; on the device when this
        returns.

        Raises the first refusal, and what ``check`` raises; nothing has changed then.
        """
        self.refuse()
        if self._wanted:
            return self._write(note)
        if self.gives_up:
            self._put_away(note)
        elif self.effect_on_file:
            with config_lock(self._root):
                self._refuse_java()
                self._keep(clock_ms())
                ProgressFile(self._root).export()
        return Outcome(self.unchanged_rows())

    def _write(self, note: Mapping[str, Any]) -> Outcome:
        rows = {progress_key(row.place): row for row in self._wanted}

        def check(moves: "Moves") -> None:
            for key, (old, _) in moves.items():
                self._check(rows[key], old.offset)

        def before() -> None:
            self._refuse_java()
            self._no_live.check()
            self._keep(clock_ms())

        moved = move_offsets_of_store(
            self._root,
            {key: row.offset for key, row in rows.items()},
            dict(note),
            clock_ms,
            before=before,
            check=check,
            damaged=True,
        )
        table = ProgressFile(self._root).read()
        written = {
            row.place: table.get(*key).generation >= moved.moves[key][1].generation
            for key, row in rows.items()
        }
        done = [
            RecoveredOffsetDone(*row, written.get(item.place))
            for item, row in zip(self._found, self.plan, strict=True)
        ]
        return Outcome(done, moved.change_id)

    def _check(self, row: Recovered, now: int | None) -> None:
        if now != row.present and not (row.place[0] in self._live and row.present is not None):
            key = progress_key(row.place)
            raise OffsetChangedError(
                f"queue {key[1]} of {key[0]} has other progress than the plan saw "
                f"({now}); nothing was changed, look at the plan again"
            )

    def _check_given_up(self) -> None:
        ours = read_progress_files(self._root).ours if self.gives_up else None
        if ours is not None and ours.state not in _DAMAGED:
            raise StoreChangedError(ours.path)

    def _put_away(self, note: Mapping[str, Any]) -> None:
        with config_lock(self._root):
            self._refuse_java()
            self._check_given_up()
            now_ms = clock_ms()
            Journal(self._root).append({**note, **self.entry}, now_ms)
            quarantine = Quarantine(self._root, now_ms)
            for name in own_progress_files(self._root):
                quarantine.move(name, _WHY)

    def _keep(self, now_ms: int) -> None:
        """Keep what is damaged, and the .bak, in the quarantine."""
        quarantine = Quarantine(self._root, now_ms)
        files = self._lost.files
        for file, damaged in ((files.java, files.java.lost), (files.ours, files.ours.lost),
                              (files.bak, files.java.lost)):  # fmt: skip
            if damaged:
                name = str(file.path.relative_to(self._root))
                quarantine.keep(name, _WHY, leave_empty=file is files.ours)

    def _refuse_java(self) -> None:
        (self._java_check or refuse_beside_java(self._root))()


def recover_offsets(
    view: StoreView,
    *,
    overwrite: bool = False,
    handed: bool = False,
    trace_topic: str = TRACE_TOPIC,
    no_live: bool = False,
    warn: Warn = no_warning,
    java_check: JavaCheck | None = None,
) -> OffsetRecovery:
    """Recover lost progress of groups if consumerOffset.json is empty, truncated or missing.

    No offset exceeds what the group had committed, so no message is skipped. With ``overwrite``,
    queues with progress get what is known, too. With ``handed``, a queue of which nothing else is
    known goes on after the last message that was surely delivered; some may be skipped. ``no_live``
    refuses where consumers of the groups run. Rows are RecoveredOffset, then RecoveredOffsetDone.
    ``warn`` gets what makes the list of queues incomplete.
    """
    lost = LostProgress(view, [*given_back(view), *traced(view, trace_topic)])
    found = [
        row
        for row in lost.recovered(_queues(view, warn))
        if (row.present is None or overwrite) and (row.offset is not None or lost.damaged)
    ]
    if handed:
        found = [row.as_handed() for row in found]
    return OffsetRecovery(lost, found, view.root, no_live=no_live, java_check=java_check)


def _question(wanted: Sequence[Recovered]) -> str:
    groups = {row.place[0] for row in wanted}
    return (
        f"Write the progress of {len(groups)} group{'s' if len(groups) != 1 else ''} "
        f"in {len(wanted)} queue{'s' if len(wanted) != 1 else ''}?"
    )


def _of_files(lost: LostProgress, root: Path) -> Iterator[str]:
    for file in lost.files:
        where = file.path.relative_to(root)
        if file.state is FileState.CUT:
            at = f"; it is whole up to character {file.cut_at}" if file.cut_at else ""
            yield (f"{where} is damaged{at}")
        elif file.state is FileState.EMPTY:
            yield (f"{where} is empty")
    files = lost.files
    if files.java.state is FileState.MISSING and files.ours.state is not FileState.WHOLE:
        yield (f"{files.java.path.relative_to(root)} is missing")
    if files.ours.state is FileState.WHOLE and files.java.lost:
        ours = files.ours.path.relative_to(root)
        yield (f"{ours} is whole: consumerOffset.json is written from it")


def _foot(found: Sequence[Recovered]) -> list[str]:
    unknown = [row for row in found if row.offset is None]
    if not unknown:
        return []
    handed = sum(row.handed is not None for row in unknown)
    count = len(unknown)
    sentence = (
        f"{count} queue{'s stay' if count != 1 else ' stays'} without progress, because nothing "
        "tells what it was; a group begins there as a new one"
    )
    if handed:
        sentence += (
            f". In {handed} the group was given messages: --handed goes on after the furthest "
            "of them, past what was in work then"
        )
    return [sentence]


def _row(row: Recovered) -> RecoveredOffset:
    sight = row.sight
    return RecoveredOffset(
        *row.place,
        row.present,
        row.offset,
        row.high,
        sight and sight.source,
        sight and sight.evidence,
        sight and sight.bound,
        sight and sight.at,
        row.handed_offset,
        row.low,
    )


def _queues(view: StoreView, warn: Warn) -> dict[str, set[int]]:
    """All queues of each topic: those with messages, and those that it is set up with."""
    queues: dict[str, set[int]] = {}
    for topic, queue_id in view.queues():
        queues.setdefault(topic, set()).add(queue_id)
    try:
        for topic, config in view.topics().items():
            queues.setdefault(topic, set()).update(range(config.read_queue_nums))
    except CorruptFileError as error:
        warn(f"{error}; queues are known by their folders alone")
    return queues
