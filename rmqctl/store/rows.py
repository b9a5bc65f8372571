"""The row of ``store init``."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

if TYPE_CHECKING:
    from storage.config import StoreConfig


class InitRow(NamedTuple):
    """A store that was created."""

    path: Annotated[str, "its folder"]
    commitlog_file_bytes: Annotated[int, "length of a commit log file"]
    consumequeue_file_bytes: Annotated[int, "length of a consume queue file"]
    index_file_bytes: Annotated[int, "length of an index file"]
    broker_conf: Annotated[list[str], "lines of broker.conf for a Java broker to open it"]


def init_row(path: str, config: "StoreConfig") -> InitRow:
    """The row of a new store."""
    return InitRow(
        path,
        config.mapped_file_size_commit_log,
        config.mapped_file_size_consume_queue,
        config.index_file_size,
        [
            f"storePathRootDir={path}",
            f"storePathCommitLog={path}/commitlog",
            f"mappedFileSizeCommitLog={config.mapped_file_size_commit_log}",
            f"mappedFileSizeConsumeQueue={config.mapped_file_size_consume_queue}",
            f"maxHashSlotNum={config.max_hash_slot_num}",
            f"maxIndexNum={config.max_index_num}",
        ],
    )
