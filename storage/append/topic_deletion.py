"""Deleting the queues of a topic while other processes read and write the store.

The order of stores is the protocol (crash table: docs/internals/append.md):

    deleted.json.new on the device -> DELETING -> stage 4
    -> the slots of the queues are GONE -> FILES_GENERATION
    -> the checkpoint vouches for no unit, on the device
    -> queue files removed, on the device -> deleted.json.new becomes deleted.json
    -> the checkpoint as before -> FILES_GENERATION -> stage 0

Before stage 4 nothing has happened. In stage 4 the next holder of the write lock finishes the
deletion before it appends anything (interrupted_append). What other processes have mapped they
never write again: a slot that is GONE sends each append the long way, where the queue gets another
slot, and with another slot its files are opened anew (ConsumeQueueTable.at_slot). Readers list the
files anew when FILES_GENERATION changes.

After a power loss in between the shared state does not count. Without deleted.json recovery makes
all units again, as for a deletion that was never begun; because of the checkpoint it reads the
whole log for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storage.configs.deleted_topics import put_deleted_topics, stage_deleted_topic
from storage.coordination.kept_links import KeptLinks
from storage.coordination.shared_state import GONE, STAGE_DELETE, STAGE_NONE, Word
from storage.errors import StoreContradictionError
from storage.files.checkpoint_file import StoreCheckpoint
from storage.queue.deletion import refuse_deletion, remove_queue_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from storage.coordination.shared_state import SharedState
    from storage.files.fs import FileSystem


def delete_queues(
    fs: FileSystem,
    root: Path,
    shared: SharedState,
    topic: str,
    log_min: int,
    before: Callable[[], None],
) -> int:
    """Delete all queues of a topic; gives how many there were. Needs the write lock, in stage 0.

    The next message of a queue gets offset 0. ``before`` is called when nothing refuses the
    deletion, and may refuse it by raising. On the device when this returns. Raises OSError,
    StoreNotWritableError and CorruptFileError (deleted.json): before stage 4 nothing has happened,
    but for what ``before`` did.
    """
    words = shared.words
    slots = [slot for slot in shared.slots_of(topic) if shared.next_offset(slot) != GONE]
    if not slots:
        before()
        return 0
    refuse_deletion(root, topic)
    stage_deleted_topic(root, topic, words[Word.LOG_END], log_min, fs)
    before()
    words[Word.DELETING] = 1 + slots[0]
    words[Word.STAGE] = STAGE_DELETE
    finish_deletion(fs, root, shared)
    words[Word.STAGE] = STAGE_NONE
    return len(slots)


def finish_deletion(fs: FileSystem, root: Path, shared: SharedState) -> None:
    """Do, or do again, what stage 4 requires. Needs the write lock. Raises OSError, and
    StoreContradictionError if the shared state names no topic."""
    words = shared.words
    number, names = words[Word.DELETING] - 1, shared.queues()
    if not 0 <= number < len(names):
        raise StoreContradictionError(
            f"{shared.path} says that a topic is being deleted, and names none; end all writers "
            f"of {root}, the next one makes it right"
        )
    topic = names[number][0]
    for slot in shared.slots_of(topic):
        shared.set_next_offset(slot, GONE)
        shared.set_synced_offset(slot, 0)
    words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
    KeptLinks(fs, root).forget_topic(topic)
    with StoreCheckpoint(fs, root).distrusting_queues():
        remove_queue_files(fs, root, topic)
        put_deleted_topics(root, fs)
    words[Word.FILES_GENERATION] = words[Word.FILES_GENERATION] + 1
