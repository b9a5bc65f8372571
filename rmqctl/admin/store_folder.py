"""Whether a folder is a store."""

from pathlib import Path


def looks_like_a_store(path: Path) -> bool:
    """Whether the folder holds a store of any kind."""
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
