"""Whether a folder is a store."""

import os
from pathlib import Path


def looks_like_a_store(path: Path) -> bool:
    """Whether the folder holds a store of any kind; one that cannot be read counts as one."""
    if not path.is_dir():
        return False
    from storage.detect import check_is_store
    from storage.errors import StoreError, StoreNotFoundError

    try:
        check_is_store(path)
    except StoreNotFoundError:
        return False
    except StoreError:
        pass
    return True


def is_a_store_above(path: Path) -> bool:
    """The same of a folder above a file: one that cannot be read is passed on the way to the file,
    and counts only if a part of a store is seen in it."""
    from storage.detect import check_is_store
    from storage.errors import StoreError, StoreNotFoundError, StoreNotReadableError
    from storage.format.names import COMMITLOG, CONFIG, CONSUMEQUEUE, OURS
    from storage.layout import STORE_FILE

    try:
        check_is_store(path)
    except StoreNotReadableError:
        files = (path / OURS / STORE_FILE, path / CONFIG / "topics.json")
        folders = (path / COMMITLOG, path / CONSUMEQUEUE)
        return any(map(os.path.exists, files)) or any(map(os.path.isdir, folders))
    except StoreNotFoundError:
        return False
    except StoreError:
        pass
    return True
