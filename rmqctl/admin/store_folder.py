"""Whether a folder is a store."""

import os
from collections.abc import Callable
from pathlib import Path


def looks_like_a_store(path: Path) -> bool:
    """Whether the folder holds a store of any kind; one that cannot be read counts as one."""
    return path.is_dir() and _has_store(path, lambda _: True)


def is_a_store_above(path: Path) -> bool:
    """The same of a folder above a file: one that cannot be read is passed on the way to the file,
    and counts only if a part of a store is seen in it."""
    return _has_store(path, _shows_a_part)


def _has_store(path: Path, unreadable: Callable[[Path], bool]) -> bool:
    from storage.detect import check_is_store
    from storage.errors import StoreError, StoreNotFoundError, StoreNotReadableError

    try:
        check_is_store(path)
    except StoreNotReadableError:
        return unreadable(path)
    except StoreNotFoundError:
        return False
    except StoreError:
        pass
    return True


def _shows_a_part(path: Path) -> bool:
    from storage.format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, OURS
    from storage.layout import STORE_FILE

    files = (path / OURS / STORE_FILE, path / CONFIG / "topics.json")
    folders = (path / COMMITLOG, path / CONSUMEQUEUE)
    return any(map(os.path.exists, files)) or any(map(os.path.isdir, folders))
