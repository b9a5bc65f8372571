"""Deleting the consume queues of a topic (DefaultMessageStore.cleanUnusedTopic).

The files of its queues and the folders of the queues are removed; the topic's own folder and all
records stay, as a real broker leaves them. Here no other process has the store open for writing:
:mod:`storage.append.topic_deletion` does the same beside others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from storage.configs.deleted_topics import (
    put_deleted_topics,
    read_deleted_topics,
    stage_deleted_topic,
)
from storage.coordination.exclusive import distrust_shared_state
from storage.errors import StoreNotWritableError
from storage.files.access import refuse_unwritable_folders
from storage.files.checkpoint_file import StoreCheckpoint
from storage.files.fs import FileSystem
from storage.files.queue_folders import is_queue_number
from storage.format.names import ABORT, CONSUMEQUEUE, CONSUMEQUEUE_EXT, OURS

if TYPE_CHECKING:
    from storage.readonly import StoreView


def delete_queues(
    view: StoreView,
    topic: str,
    fs: FileSystem | None = None,
    *,
    before: Callable[[], None] = lambda: None,
) -> int:
    """Delete all queues of a topic; gives how many there were. Needs
    storage.coordination.exclusive.alone.

    The next message of the topic gets queue offset 0. ``view`` reads the store and is of no use
    afterwards. ``before`` is called when nothing refuses the deletion, and may refuse it by
    raising; what needs room on the disk is done by then. On the device when this returns. A death
    in between deletes nothing: the store looks as after a crash with nothing on the device for
    certain, so the next writer makes all units again from the whole log, as long as the deletion
    is not noted. Raises StoreNotWritableError, and what :func:`refuse_deletion` raises: unless
    ``before`` has returned, nothing is changed.
    """
    fs = fs or FileSystem()
    root = view.root
    refuse_deletion(root, topic)
    try:
        log_end, log_min = view.log_max_offset(), view.log_min_offset()
        distrust_shared_state(fs, root)
        stage_deleted_topic(root, topic, log_end, log_min, fs)
        before()
        was_closed = not (root / ABORT).exists()
        if was_closed:
            fs.touch(root / ABORT)
            fs.sync_dir(root)
        with StoreCheckpoint(fs, root).distrusting_queues():
            count = remove_queue_files(fs, root, topic)
            put_deleted_topics(root, fs)
        if was_closed:
            fs.unlink(root / ABORT)
            fs.sync_dir(root)
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error
    return count


def remove_queue_files(fs: FileSystem, root: Path, topic: str) -> int:
    """Remove the files and folders of a topic's queues; gives the number of queues. On the device
    when this returns. A link to a folder is removed, and the files in that folder; the folder
    itself, which lies elsewhere, stays. Raises OSError."""
    queues = queue_folders(root, topic)
    for folder in [*queues, *_folders_below(root / CONSUMEQUEUE_EXT / topic)]:
        # The last one first: a death leaves a queue that lacks its end, which recovery repairs.
        for path in sorted(folder.iterdir(), reverse=True):
            fs.unlink(path)
        if folder.is_symlink():
            fs.sync_dir(folder)
            fs.unlink(folder)
        else:
            folder.rmdir()
        fs.sync_dir(folder.parent)
    return len(queues)


def refuse_deletion(root: Path, topic: str) -> None:
    """Raise what keeps the queues of a topic from being deleted; nothing is changed.

    StoreNotWritableError for a folder among their files, and for a folder that this user may not
    write; CorruptFileError and StoreVersionError of deleted.json.
    """
    try:
        folders = folders_to_remove(root, topic)
        above = {folder.parent for folder in folders}
        refuse_unwritable_folders(root / OURS, root / CONSUMEQUEUE / topic, *above, *folders)
        read_deleted_topics(root)
    except OSError as error:
        where = Path(error.filename) if error.filename else root
        raise StoreNotWritableError(where, error.strerror or str(error)) from error


def folders_to_remove(root: Path, topic: str) -> list[Path]:
    """The folders that :func:`remove_queue_files` removes, to be asked for before anything is
    changed.

    Raises StoreNotWritableError if one of them holds a folder, which no program of RocketMQ makes.
    """
    folders = [*queue_folders(root, topic), *_folders_below(root / CONSUMEQUEUE_EXT / topic)]
    for folder in folders:
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                raise StoreNotWritableError(
                    path, "it is a folder among the files of a queue; move it away, then try again"
                )
    return folders


def queue_folders(root: Path, topic: str) -> list[Path]:
    """The folders of a topic's queues, links to folders too; other files are no queues."""
    return _folders_below(root / CONSUMEQUEUE / topic)


def _folders_below(topic: Path) -> list[Path]:
    try:
        found = [path for path in topic.iterdir() if is_queue_number(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(path for path in found if path.is_dir())
