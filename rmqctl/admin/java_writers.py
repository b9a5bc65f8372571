"""Whether another program writes to a store: a Java broker, whose lock may be invisible.

A lock is visible on this machine only. A broker on another machine that has the folder mounted is
noticed by its writes: its log grows, delayOffset.json is new every 10 s, its checkpoint every
minute.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from storage.configs.delay_offsets import DELAY_OFFSET_FILE
from storage.coordination.lock_owners import find_holders
from storage.errors import StoreInUseError
from storage.format.names import CHECKPOINT, COMMITLOG, CONFIG
from storage.readonly import StoreView

RECENT_S: Final = 15.0
"""Files that were written since then are watched for a moment: a broker writes every 10 s."""
WATCH_S: Final = 1.0
_PAUSE_S: Final = 0.02


class JavaSigns(NamedTuple):
    """What the files show of a writer at one moment. Times are ns of the file system."""

    log_end: int
    newest_log_file: str
    written: tuple[int, ...]
    """When log, checkpoint and delayOffset.json were written last; 0 for none."""

    def is_recent(self, now_ns: int) -> bool:
        """Whether a file was written within RECENT_S."""
        return max(self.written) > now_ns - RECENT_S * 1e9


def refuse_beside_java(root: Path) -> Callable[[], None]:
    """Refuse to change a store that a Java broker holds or writes to (StoreInUseError, exit 5).

    Gives a check to be called once more right before the write, which also refuses if the files
    have changed meanwhile though no rmqctl process has written them. Where another program has
    written within the last 15 s, this watches the files for a second.
    """
    _refuse_lock(root)
    with StoreView.open(root) as view:
        before = _look(view)
        if before is not None and before.is_recent(time.time_ns()):
            until = time.monotonic() + WATCH_S
            while time.monotonic() < until:
                time.sleep(_PAUSE_S)
                _refuse_change(view, before)

    def check() -> None:
        _refuse_lock(root)
        if before is not None:
            with StoreView.open(root) as view:
                _refuse_change(view, before)

    return check


def _refuse_lock(root: Path) -> None:
    if find_holders(root).java_locked:
        raise StoreInUseError(root, "a Java broker")


def _refuse_change(view: StoreView, before: JavaSigns) -> None:
    now = _look(view)
    if now is not None and now != before:
        raise StoreInUseError(view.root, "another program, which is writing to it just now")


def _look(view: StoreView) -> JavaSigns | None:
    """What the files show; None where writers of rmqctl vouch for them."""
    log_end = view.log_max_offset()
    if view.has_shared_state or view.joins_writers():
        return None
    files = sorted((view.root / COMMITLOG).glob("[0-9]*"))
    newest = files[-1] if files else view.root / COMMITLOG
    paths = (newest, view.root / CHECKPOINT, view.root / CONFIG / DELAY_OFFSET_FILE)
    return JavaSigns(log_end, newest.name, tuple(map(_written, paths)))


def _written(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_mtime_ns
    return 0
