"""Kinds of damage to checkpoint, settings and progress. See :mod:`tests.support.damages`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from storage.configs.config_file import ConfigFile, encoded
from storage.configs.consumer_offsets import split_topic_at_group
from storage.tools.fsck import Code
from tests.support.anatomy import Anatomy
from tests.support.damages import Damaged, Kind, Knife, Lack, NotHere, Said
from tests.support.damages_log import sound_end

_FILES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json", "delayOffset.json")


def _said(code: Code, file: str, position: int | None) -> Damaged:
    return Damaged("", frozenset((Said(code, file, position),)))


# -- checkpoint -------------------------------------------------------------------------------


def _checkpoint(anatomy: Anatomy) -> Path:
    path = anatomy.root / "checkpoint"
    if not path.exists() or not anatomy.log:
        raise NotHere(Lack.NO_CHECKPOINT)
    return path


def stale(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The checkpoint is an hour older than the log, in a store that was closed cleanly."""
    path = _checkpoint(anatomy)
    if not anatomy.closed:
        raise NotHere(Lack.NOT_CLOSED)
    newest = max(record.message.store_timestamp for record in anatomy.records)
    knife.patch(path, 0, (newest - 3_600_000).to_bytes(8, "big") * 2)
    return _said(Code.CHECKPOINT_BEHIND, "checkpoint", 0)


def ahead(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The checkpoint vouches for messages that there are none of."""
    path = _checkpoint(anatomy)
    sound_end(anatomy)
    newest = max(record.message.store_timestamp for record in anatomy.records)
    knife.patch(path, 0, (newest + 3_600_000).to_bytes(8, "big") * 2)
    return _said(Code.CHECKPOINT_AHEAD, "checkpoint", 0)


def negative(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The highest bit of the checkpoint's first time is set."""
    knife.flip(_checkpoint(anatomy), 0, 7)
    return _said(Code.CHECKPOINT_AHEAD, "checkpoint", 0)


def short(anatomy: Anatomy, knife: Knife) -> Damaged:
    """The checkpoint is cut."""
    knife.resize(_checkpoint(anatomy), 12)
    return _said(Code.CHECKPOINT_SHORT, "checkpoint", 0)


def missing(anatomy: Anatomy, knife: Knife) -> Damaged:
    """There is no checkpoint."""
    knife.remove(_checkpoint(anatomy))
    return _said(Code.CHECKPOINT_MISSING, "checkpoint", None)


# -- settings ---------------------------------------------------------------------------------


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _nothing(_data: bytes) -> bytes:
    return b""


def _braces(_data: bytes) -> bytes:
    return b"{}"


def settings(
    name: str, change: Callable[[bytes], bytes], bak: bool, anatomy: Anatomy, knife: Knife
) -> Damaged:
    """A file of settings holds half of its text, or nothing; ``bak``: its .bak is whole."""
    path = anatomy.root / "config" / name
    if not path.exists() or not _has_entries(path):
        raise NotHere(Lack.NO_CONFIG)
    data, other = path.read_bytes(), path.with_name(name + ".bak")
    knife.replace(path, change(data))
    if bak:
        knife.replace(other, data)
    elif other.exists():
        knife.remove(other)
    if change is _half or (change is _nothing and bak):
        code = Code.CONFIG_FROM_BAK if bak else Code.CONFIG_UNREADABLE
    elif change is _nothing or bak:
        code = Code.CONFIG_EMPTY
    else:
        return Damaged("", why_unseen="a store that nobody has used yet has the same file")
    return _said(code, f"config/{name}", 0)


def _has_entries(path: Path) -> bool:
    document = ConfigFile(path).load().document
    tables = [value for key, value in document.items() if key != "dataVersion"]
    return any(isinstance(table, dict) and table for table in tables)


# -- progress ---------------------------------------------------------------------------------


def offset_above(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A group's progress lies above the end of its queue."""
    return _moved(anatomy, knife, Code.OFFSET_BEHIND_END)


def offset_below(anatomy: Anatomy, knife: Knife) -> Damaged:
    """A group's progress lies below the first message that is left."""
    return _moved(anatomy, knife, Code.OFFSET_BELOW_START)


def _moved(anatomy: Anatomy, knife: Knife, code: Code) -> Damaged:
    path = anatomy.root / "config" / "consumerOffset.json"
    if not path.exists():
        raise NotHere(Lack.NO_PROGRESS)
    document = ConfigFile(path).load().document
    start = anatomy.log[0].first if anatomy.log else 0
    lack = Lack.NO_PROGRESS
    for name, offsets in document.get("offsetTable", {}).items():
        topic = (split_topic_at_group(name) or ("",))[0]
        for queue_id, offset in offsets.items():
            files = anatomy.queues.get((topic, int(queue_id)))
            if files is None:
                continue
            end = files[-1].first + len(files[-1].units)
            if code is Code.OFFSET_BEHIND_END and int(offset) <= end:
                offsets[queue_id] = end + 1000
            elif code is Code.OFFSET_BELOW_START:
                lack = Lack.NO_DELETED
                units = [unit for file in files for unit in file.units]
                if units[0][0] >= start:
                    continue
                offsets[queue_id] = 0
            else:
                continue
            knife.replace(path, encoded(document))
            return _said(code, "config/consumerOffset.json", None)
    raise NotHere(lack)


KINDS: dict[str, Kind] = {
    "checkpoint: stale": stale,
    "checkpoint: ahead": ahead,
    "checkpoint: negative": negative,
    "checkpoint: cut": short,
    "checkpoint: missing": missing,
    **{
        f"{name}: {text}{'' if bak else ', no .bak'}": partial(settings, name, change, bak)
        for name in _FILES
        for text, change in (("cut", _half), ("empty", _nothing), ("braces only", _braces))
        for bak in (True, False)
    },
    "progress: above the end": offset_above,
    "progress: below the start": offset_below,
}
