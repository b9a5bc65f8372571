"""Creating a store in the state that a broker leaves after its first start."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from storage.clock import now_ms
from storage.config import changed_settings
from storage.configs.store_settings import read_store_settings, write_store_settings
from storage.configs.topics import system_topics, topics_file
from storage.detect import check_is_store
from storage.errors import StoreNotFoundError, StoreNotWritableError
from storage.files.access import not_writable
from storage.files.fs import FileSystem
from storage.layout import remove_unfinished_store
from storage.store import MessageStore

from .config import BrokerConfig

if TYPE_CHECKING:
    from storage.config import StoreConfig


def create_store(
    root: Path | str,
    store_config: StoreConfig | None = None,
    config: BrokerConfig | None = None,
    *,
    fs: FileSystem | None = None,
    clock: Callable[[], int] = now_ms,
    is_locked: bool = False,
) -> None:
    """Make an empty store with the topics that every broker has (TopicConfigManager).

    The folder is missing or empty. Settings that are no defaults are recorded for the next opener.
    On the device when this returns. ``is_locked``: the caller has made the folder and holds its
    lock (flock), which this function else takes. Raises StoreNotWritableError, also when the folder
    is not empty.
    """
    fs = fs or FileSystem()
    path = Path(root).absolute()
    with nullcontext(path) if is_locked else _creating(path, fs) as folder:
        _create(folder, store_config, config or BrokerConfig(), fs, clock)


def create_missing_store(
    root: Path | str,
    store_config: StoreConfig | None = None,
    config: BrokerConfig | None = None,
    *,
    fs: FileSystem | None = None,
    clock: Callable[[], int] = now_ms,
) -> bool:
    """Make a store as ``create_store`` does, unless the folder holds one; whether one was made.

    Of processes that do so at the same time one makes the store. What a process has left that was
    killed in this function is removed and made anew.

    Raises StoreNotWritableError for a folder that holds something else.
    """
    fs = fs or FileSystem()
    with _creating(Path(root).absolute(), fs) as folder:
        try:
            try:
                remove_unfinished_store(folder)
            except OSError as error:
                raise not_writable(folder, error) from error
            check_is_store(folder)
        except StoreNotFoundError as error:
            if any(folder.iterdir()):
                raise StoreNotWritableError(
                    folder,
                    "it holds files and is no RocketMQ store; name a folder that is empty or "
                    "does not exist",
                ) from error
            _create(folder, store_config, config or BrokerConfig(), fs, clock)
            return True
        return False


@contextmanager
def _creating(root: Path, fs: FileSystem) -> Iterator[Path]:
    """Make the folder, and keep other processes from making a store in it meanwhile.

    The lock is the folder itself: a file in it would make it a folder that is not empty. A new
    folder in which no store is made is removed.
    """
    is_new = not root.exists()
    if not is_new and not root.is_dir():
        raise StoreNotWritableError(root, "it is a file, not a folder")
    try:
        fs.make_dirs(root)
        fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise not_writable(root, error) from error
    try:
        with suppress(OSError):  # a file system without such locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield root
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty
                root.rmdir()
        raise
    finally:
        os.close(fd)


def _create(
    root: Path,
    store_config: StoreConfig | None,
    config: BrokerConfig,
    fs: FileSystem,
    clock: Callable[[], int],
) -> None:
    changed = changed_settings(config)
    BrokerConfig.from_record(changed)  # record nothing that an opener would refuse
    MessageStore.create(root, store_config, fs=fs)
    if changed:
        recorded = read_store_settings(root)
        write_store_settings(root, recorded._replace(broker=changed), fs)
    topics = topics_file(root, fs)
    table = topics.read_for_change(clock())
    table.add_missing(
        system_topics(
            config.broker_cluster_name,
            config.broker_name,
            auto_create=config.auto_create_topic_enable,
        )
    )
    topics.save(table)
