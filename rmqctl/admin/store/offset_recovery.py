"""``store recover-offsets``: lost offsets, from every file that still shows them."""

import time
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import OffsetChangedError
from broker.offset.offset_move import move_offsets_of_store
from broker.offset_recovery.recovery import LostProgress, Recovered, progress_key
from broker.offset_recovery.retry_evidence import given_back
from rmqctl.admin.java_writers import refuse_beside_java
from rmqctl.admin.journal_entry import change_note
from rmqctl.admin.offsets.change import running_sentences
from rmqctl.admin.offsets.move import members_of
from rmqctl.admin.store.trace_evidence import traced
from rmqctl.cli.change_steps import carry_out, refuse_without_consent, will_execute
from rmqctl.errors import Refused
from storage.configs.journal import Journal
from storage.configs.progress import OFFSETS_FILE, ProgressFile
from storage.coordination.config_lock import config_lock
from storage.errors import CorruptFileError
from storage.format.names import OURS
from storage.tools.config_recovery.progress_files import FileState
from storage.tools.quarantine import Quarantine

from .rows import RecoveredOffset, RecoveredOffsetDone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rmqctl.cli.context import Cli
    from storage.configs.progress import Moves
    from storage.readonly import StoreView


class RecoverOptions(NamedTuple):
    """What the call asks for beyond what is safe by itself."""

    overwrite: bool = False
    """Also where there is progress."""
    handed: bool = False
    """Where no file shows what was committed: after the furthest message that was given."""
    no_live: bool = False


def carry_out_recovery(
    cli: "Cli", view: "StoreView", trace_topic: str, wishes: RecoverOptions
) -> None:
    """Plan, show, ask, do. Refused (7) beside running consumers with ``no_live``."""
    execute = will_execute(cli)
    java_check: Callable[[], None] = refuse_beside_java(view.root) if execute else lambda: None
    lost = LostProgress(view, [*given_back(view), *traced(view, trace_topic)])
    found = [
        row
        for row in lost.recovered(_queues(cli, view))
        if (row.present is None or wishes.overwrite) and (row.offset is not None or lost.damaged)
    ]
    if wishes.handed:
        found = [row.as_handed() for row in found]
    plan = [_row(row) for row in found]
    wanted = [row for row in found if row.offset is not None and row.offset != row.present]
    for sentence in _of_files(lost, view.root):
        cli.say(sentence)
    if not wanted:
        _nothing_to_move(cli, lost, plan, java_check)
        for sentence in _foot(found):
            cli.say(sentence)
        return
    live = members_of(view.root, sorted({row.place[0] for row in wanted}))
    refusal = None
    if live and wishes.no_live:
        refusal = Refused(f"group {min(live)} has running consumers, and --no-live was given")

    def apply() -> "list[object]":
        written = _write(cli, view.root, wanted, set(live), lost, java_check)
        return [
            RecoveredOffsetDone(*row, written.get(item.place))
            for item, row in zip(found, plan, strict=True)
        ]

    groups = {row.place[0] for row in wanted}
    carry_out(
        cli,
        RecoveredOffset,
        plan,
        apply,
        question=f"Write the progress of {len(groups)} group{'s' if len(groups) != 1 else ''} "
        f"in {len(wanted)} queue{'s' if len(wanted) != 1 else ''}?",
        plan_summary=[*_foot(found), *running_sentences(live)],
        refusal=refusal,
        result_type=RecoveredOffsetDone,
    )


def _write(
    cli: "Cli",
    root: "Path",
    wanted: list[Recovered],
    live: set[str],
    lost: LostProgress,
    java_check: "Callable[[], None]",
) -> dict[tuple[str, str, int], bool]:
    """Keep the damaged files, note the change, write; on the device when this returns."""
    targets = {progress_key(row.place): row.offset for row in wanted}
    seen = {progress_key(row.place): row.present for row in wanted}
    groups = {progress_key(row.place): row.place[0] for row in wanted}

    def check(moves: "Moves") -> None:
        for key, (old, _) in moves.items():
            if old.offset != seen[key] and not (groups[key] in live and seen[key] is not None):
                raise OffsetChangedError(
                    f"queue {key[1]} of {key[0]} has other progress than the plan saw "
                    f"({old.offset}); nothing was changed, look at the plan again"
                )

    def before() -> None:
        java_check()
        _keep(root, lost, _now_ms())

    note = change_note(cli)
    moved = move_offsets_of_store(
        root, targets, note, _now_ms, before=before, check=check, damaged=True
    )
    cli.say(
        f"this is change {moved.change_id}; 'rmqctl offset undo {moved.change_id}' takes it back"
    )
    table = ProgressFile(root).read()
    return {
        row.place: table.get(*progress_key(row.place)).generation
        >= moved.moves[progress_key(row.place)][1].generation
        for row in wanted
    }


def _keep(root: "Path", lost: LostProgress, now_ms: int) -> None:
    """Copies of what is damaged, and of the .bak, to the quarantine."""
    quarantine = Quarantine(root, now_ms)
    files = lost.files
    for file, damaged in ((files.java, files.java.lost), (files.ours, files.ours.lost),
                          (files.bak, files.java.lost)):  # fmt: skip
        if damaged and file.path.exists():
            quarantine.keep_copy(str(file.path.relative_to(root)), "recover-offsets")


def _nothing_to_move(
    cli: "Cli", lost: LostProgress, plan: list[RecoveredOffset], java_check: "Callable[[], None]"
) -> None:
    """Nothing was lost, or no file shows it; Java's file may have to be written anew."""
    files = lost.files
    stale = files.ours.state is FileState.WHOLE and files.java.lost
    refused_rows = files.ours.lost and files.ours.path.exists() and not plan
    if refused_rows:
        cli.say(f"nothing tells of what {_OFFSETS} held: without it groups begin as new ones")
    if not will_execute(cli):
        cli.rows(RecoveredOffset, plan)
        if not (stale or refused_rows):
            cli.say(_NOTHING)
        elif cli.flag("dry_run"):
            cli.say("dry run: nothing was changed")
        else:
            refuse_without_consent()
        return
    if refused_rows:
        cli.confirm(f"Put {_OFFSETS} into the quarantine and go on without it?")
        root = files.ours.path.parents[1]
        with config_lock(root):
            java_check()
            now_ms = _now_ms()
            note = change_note(cli, what=_OFFSETS)
            Journal(root).append({**note, "old": "damaged", "new": None}, now_ms)
            Quarantine(root, now_ms).move(_OFFSETS, "recover-offsets")
        cli.rows(RecoveredOffsetDone, [])
        cli.say(f"{_OFFSETS} lies in the quarantine; no group has progress now")
        return
    if stale:
        cli.confirm(f"Write {files.java.path.name} from rmqctl/offsets.json?")
        root = files.ours.path.parents[1]
        with config_lock(root):
            java_check()
            _keep(root, lost, _now_ms())
            ProgressFile(root).export()
        cli.say(f"wrote {files.java.path}")
    cli.rows(RecoveredOffsetDone, [RecoveredOffsetDone(*row, None) for row in plan])
    if not stale:
        cli.say(_NOTHING)


_NOTHING = "there is nothing to change"
_OFFSETS = f"{OURS}/{OFFSETS_FILE}"


def _of_files(lost: LostProgress, root: "Path") -> list[str]:
    sentences = []
    for file in lost.files:
        where = file.path.relative_to(root)
        if file.state is FileState.CUT:
            at = f"; it is whole up to character {file.cut_at}" if file.cut_at else ""
            sentences.append(f"{where} is damaged{at}")
        elif file.state is FileState.EMPTY:
            sentences.append(f"{where} is empty")
    files = lost.files
    if files.java.state is FileState.MISSING and files.ours.state is not FileState.WHOLE:
        sentences.append(f"{files.java.path.relative_to(root)} is missing")
    if files.ours.state is FileState.WHOLE and files.java.lost:
        sentences.append("rmqctl/offsets.json is whole: consumerOffset.json is written from it")
    return sentences


def _foot(found: list[Recovered]) -> list[str]:
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
            f". In {handed} the group was given messages: --handed goes on behind the furthest "
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


def _queues(cli: "Cli", view: "StoreView") -> dict[str, set[int]]:
    """All queues of each topic: those with messages, and those that it is set up with."""
    queues: dict[str, set[int]] = {}
    for topic, queue_id in view.queues():
        queues.setdefault(topic, set()).add(queue_id)
    try:
        for topic, config in view.topics().items():
            queues.setdefault(topic, set()).update(range(config.read_queue_nums))
    except CorruptFileError as error:
        cli.warn(f"{error}; queues are known by their folders alone")
    return queues


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
