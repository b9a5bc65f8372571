"""The options of ``df.write.format("rocketmq")`` and ``df.writeStream``."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from analytics.errors import NotAFolderError, SinkOptionError
from analytics.object_store.address import shown
from analytics.report.stores import folder_path

EXACTLY_ONCE: Final = "exactlyonce"
AT_LEAST_ONCE: Final = "atleastonce"
_DELIVERIES: Final = ("exactlyOnce", "atLeastOnce")
_KNOWN: Final = ("path", "topic", "delivery", "stagingLocation", "writeId")
_OF_SPARK: Final = frozenset({"checkpointlocation", "queryname", "option.path"})
"""Spark passes these on, too."""
_LONGEST_ID: Final = 200
"""Bytes: files and folders are named after it, and a name has at most 255."""


class SinkOptions(NamedTuple):
    """All options, read. Spark gives their names in any case.

    path              the store: one folder, which exists
    topic             topic of rows whose column ``topic`` is null or missing
    delivery          exactlyOnce (default) or atLeastOnce
    staging           stagingLocation: a folder that driver and workers share; None: a folder in the
                      checkpoint of a stream, ``<store>/rmqctl/sink`` for a batch
    write_id          writeId of a batch: a write of the same name is not repeated, and one that was
                      cut goes on
    """

    path: Path
    topic: str | None
    exactly_once: bool
    staging: Path | None
    write_id: str | None


def read_sink_options(options: Mapping[str, str], *, stream: bool) -> SinkOptions:
    """Read the options. Raises SinkOptionError."""
    known = {name.lower(): name for name in _KNOWN}
    given: dict[str, str] = {}
    for name, value in options.items():
        right = known.get(name.lower())
        if right is not None:
            given[right] = value
        elif name.lower() not in _OF_SPARK:
            near = get_close_matches(name, _KNOWN, 1)
            hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(_KNOWN)}"
            raise SinkOptionError(f"the sink has no option {name!r} ({hint})")
    if not given.get("path"):
        raise SinkOptionError('no store is named: option("path", ...), or save(...)')
    delivery = given.get("delivery", _DELIVERIES[0])
    if delivery.lower() not in {EXACTLY_ONCE, AT_LEAST_ONCE}:
        raise SinkOptionError(f"delivery: {delivery!r} is neither {' nor '.join(_DELIVERIES)}")
    exactly_once = delivery.lower() == EXACTLY_ONCE
    write_id = given.get("writeId")
    if write_id is not None:
        _check_write_id(write_id, stream=stream, exactly_once=exactly_once)
    staging = None
    if "stagingLocation" in given:
        if not exactly_once:
            raise SinkOptionError(
                "stagingLocation has no effect with delivery=atLeastOnce; leave it out"
            )
        staging = local_path("stagingLocation", given["stagingLocation"])
    elif stream and exactly_once:
        staging = _of_checkpoint(options)
    return SinkOptions(
        local_path("path", given["path"]),
        given.get("topic") or None,
        exactly_once,
        staging,
        write_id,
    )


def local_path(name: str, text: str) -> Path:
    """The absolute folder of a path, or of a ``file:`` address. SinkOptionError for others."""
    try:
        return Path(folder_path(text)).absolute()
    except NotAFolderError:
        raise SinkOptionError(
            f"{name}: {shown(text)} is no folder of this machine; a store is written by its files, "
            "so name a folder that driver and workers reach under the same path"
        ) from None


def _check_write_id(write_id: str, *, stream: bool, exactly_once: bool) -> None:
    if stream:
        raise SinkOptionError("writeId: a stream's writes are known by its checkpoint")
    if not exactly_once:
        raise SinkOptionError("writeId has no effect with delivery=atLeastOnce")
    if (
        not write_id
        or len(write_id) > 100
        or not write_id.replace("-", "").replace("_", "").isalnum()
    ):
        raise SinkOptionError(f"writeId: {write_id!r} is not 1 to 100 of letters, digits, - and _")
    if len(write_id.encode()) > _LONGEST_ID:
        raise SinkOptionError(
            f"writeId: {write_id!r} is longer than a file's name may be; it may have at most "
            f"{_LONGEST_ID} bytes of UTF-8"
        )


def _of_checkpoint(options: Mapping[str, str]) -> Path:
    found = next((v for k, v in options.items() if k.lower() == "checkpointlocation"), None)
    if found is None:
        raise SinkOptionError(
            "the sink stages rows beside the stream's checkpoint, and no checkpointLocation is "
            "set; set it, or the option stagingLocation"
        )
    try:
        return local_path("checkpointLocation", found) / "rocketmq-sink"
    except SinkOptionError:
        raise SinkOptionError(
            f"the checkpoint {shown(found)} is no folder of this machine; name one that driver and "
            "workers share with the option stagingLocation"
        ) from None
