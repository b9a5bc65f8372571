"""Creating a store in the state that a broker leaves after its first start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from storage.clock import now_ms
from storage.config import changed_settings
from storage.configs.store_settings import read_store_settings, write_store_settings
from storage.configs.topics import system_topics, topics_file
from storage.store import MessageStore

from .config import BrokerConfig

if TYPE_CHECKING:
    from storage.config import StoreConfig
    from storage.files.fs import FileSystem


def create_store(
    root: Path | str,
    store_config: StoreConfig | None = None,
    config: BrokerConfig | None = None,
    *,
    fs: FileSystem | None = None,
    clock: Callable[[], int] = now_ms,
) -> None:
    """Make an empty store with the topics that every broker has (TopicConfigManager).

    The folder is missing or empty. Settings that are no defaults are recorded for the next opener.
    On the device when this returns. Raises StoreNotWritableError, also when the folder is not
    empty.
    """
    root = Path(root).absolute()
    config = config or BrokerConfig()
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
