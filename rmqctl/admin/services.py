"""Which process of a store runs each kind of timed service."""

from typing import TYPE_CHECKING, Any

from storage.coordination.leadership import SERVICES_LOCK
from storage.coordination.locks import LockFile
from storage.format.names import OURS
from storage.platform.processes import pid_with_lock

if TYPE_CHECKING:
    from storage.readonly import StoreView


def service(view: "StoreView", place: int) -> dict[str, Any]:
    """Whether a process runs one kind of timed service, and its pid if known."""
    path = view.root / OURS / SERVICES_LOCK
    try:
        file = LockFile(path, create=False, writable=False)
    except FileNotFoundError:
        return {"running": False, "pid": None}
    except OSError:
        return {"running": None, "pid": None}
    try:
        running = file.holder(place) is not None
    finally:
        file.close()
    return {"running": running, "pid": pid_with_lock(path, place) if running else None}
