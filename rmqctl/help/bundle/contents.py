"""What a bundle has: the environment, the settings, and what can be said about a store.

Everything is read. No lock is taken, and nothing in the store is changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rmqctl.output.values import as_json, plain
from storage.format.names import CONFIG, MEMBERS_FOLDER, OURS, SINK_FOLDER

from .archive import Part
from .documents import document, lines, redacted
from .pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from broker.embedded.broker import EmbeddedBroker

_WHOLE_CHECK: Final = 1 << 30
"""Bytes of a log that is checked as a whole; of a larger one only files, ends and samples."""
_MOST_FINDINGS: Final = 2000
_OURS_OF_LINES: Final = ("journal", "redrives", "samples")
_OURS_OF_DOCUMENTS: Final = ("", MEMBERS_FOLDER, SINK_FOLDER)
_TEXTS_OF_CHECKS: Final = ("found", "advice")
_CHOICES: Final = frozenset({"output", "color", "progress", "tz", "timeout", "console_copy"})
_FLAGS: Final = frozenset({"true", "false"})


def environment(
    version: Any, checks: Sequence[Any], settings: Sequence[Any], names: Pseudonyms
) -> Iterator[Part]:
    """Parts about the program and the machine, from the rows of the commands."""
    yield Part("version.json", "rmqctl version -o json", lambda: [as_json(version)])
    yield Part("doctor.jsonl", "rmqctl doctor", partial(_checks, checks, names))
    yield Part(
        "settings.jsonl",
        "rmqctl config show: settings of the program, with their origins",
        partial(_settings, settings, names),
    )


def _checks(rows: Iterable[Any], names: Pseudonyms) -> Iterator[str]:
    for row in rows:
        texts = {name: names.sentence(getattr(row, name)) for name in _TEXTS_OF_CHECKS}
        yield as_json(row._replace(**texts))


def _settings(rows: Iterable[Any], names: Pseudonyms) -> Iterator[str]:
    for row in rows:
        value = row.value
        if value is not None and value not in _FLAGS and row.setting not in _CHOICES:
            value = names.sentence(value) if row.setting == "store" else names.name("text", value)
        yield as_json({**plain(row), "value": value, "origin": names.sentence(row.origin)})


def documents_of(root: Path, names: Pseudonyms) -> Iterator[Part]:
    """The settings of RocketMQ, and the small files of our own, with what they say about names."""
    for path in _files(root / CONFIG):
        if path.name.endswith((".json", ".json.bak")):
            yield Part(
                _named(path, root, names),
                "a settings file of RocketMQ",
                partial(document, path, names, ours=False),
            )
    ours = root / OURS
    for folder in _OURS_OF_DOCUMENTS:
        for path in _files(ours / folder):
            if path.name.endswith(".json"):
                yield Part(
                    _named(path, root, names),
                    "a file of rmqctl's own (FORMAT.md, chapter 9)",
                    partial(document, path, names, ours=True),
                )
    logs = [ours / "offsets.log", *(p for name in _OURS_OF_LINES for p in _files(ours / name))]
    for path in logs:
        if path.is_file() and path.suffix in (".log", ".jsonl"):
            yield Part(
                _named(path, root, names),
                "a file of lines of rmqctl's own: the first line and the last ones",
                partial(lines, path, names),
            )
    yield Part(
        "shared-state.json",
        "words of the state that processes share, and the next offsets of queues",
        partial(_shared_state, root, names),
    )


def file_list(root: Path, names: Pseudonyms) -> Part:
    """Every file of the store."""
    return Part(
        "files.tsv",
        "every file of the store: path, type, bytes, bytes on the disk, mode, owner, modified",
        partial(_entries, root, names),
    )


def answers(broker: EmbeddedBroker, names: Pseudonyms) -> Iterator[Part]:
    """What commands say about the store."""
    yield Part("store-info.json", "rmqctl store info", partial(_info, broker, names))
    yield Part("broker-status.json", "rmqctl broker status", partial(_status, broker, names))
    yield Part(
        "broker-settings.jsonl",
        "rmqctl broker config: settings of the store and its broker",
        partial(_broker_settings, broker, names),
    )
    yield Part(
        "fsck.jsonl",
        "rmqctl store fsck: a summary, and each finding",
        partial(_findings, broker, names),
    )


def unopened(error: Exception) -> Part:
    """A part that says why commands can say nothing about the store."""

    def reason() -> Iterator[str]:
        raise error

    return Part("store-info.json", "rmqctl store info", reason)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file())
    except OSError:
        return []


def _named(path: Path, root: Path, names: Pseudonyms) -> str:
    return f"store/{names.path(str(path.relative_to(root)))}"


def _entries(root: Path, names: Pseudonyms) -> Iterator[str]:
    yield "path\ttype\tbytes\tdisk_bytes\tmode\towner\tmodified"
    for folder, folders, files in os.walk(root, onerror=None):
        folders.sort()
        place = os.path.relpath(folder, root)
        for name in sorted([*folders, *files]):
            path = os.path.normpath(os.path.join(place, name))  # noqa: PTH118 - a million files
            try:
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118
            except OSError as error:
                yield f"{names.path(path)}\t{error.strerror}"
                continue
            yield _entry(as_json(names.path(path))[1:-1], status)


def _entry(path: str, status: os.stat_result) -> str:
    kind = stat.filemode(status.st_mode)[0].replace("-", "file").replace("d", "folder")
    modified = datetime.fromtimestamp(status.st_mtime_ns / 1e9, UTC).isoformat(
        timespec="milliseconds"
    )
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    owner = f"{status.st_uid}:{status.st_gid}"
    return (
        f"{path}\t{kind}\t{status.st_size}\t{status.st_blocks * 512}\t{mode}\t{owner}\t{modified}"
    )


def _shared_state(root: Path, names: Pseudonyms) -> Iterator[str]:
    from rmqctl.store.dump.small_files import shared_state

    yield from as_json(redacted(plain(shared_state(root)), names), 1).splitlines()


def _info(broker: EmbeddedBroker, names: Pseudonyms) -> Iterator[str]:
    from rmqctl.admin import store

    yield from _row(store.info(broker.view)._replace(path="<store>"), names)


def _status(broker: EmbeddedBroker, names: Pseudonyms) -> Iterator[str]:
    from rmqctl.admin.broker.status import broker_status

    yield from _row(broker_status(broker)._replace(store="<store>"), names)


def _row(row: Any, names: Pseudonyms) -> list[str]:
    return as_json(redacted(plain(row), names), 1).splitlines()


def _broker_settings(broker: EmbeddedBroker, names: Pseudonyms) -> Iterator[str]:
    from rmqctl.admin.broker.settings import BrokerSettings

    for row in BrokerSettings(broker.view).rows([]):
        value = row.value
        shown = value if value is None or row.origin == "built-in" else names.words(value)
        yield as_json({"setting": row.setting, "value": shown, "origin": names.words(row.origin)})


def _findings(broker: EmbeddedBroker, names: Pseudonyms) -> Iterator[str]:
    from rmqctl.admin import store

    view = broker.view
    fast = view.log_max_offset() - view.log_min_offset() > _WHOLE_CHECK
    report = store.check(view, broker, fast=fast, max_findings=_MOST_FINDINGS).run()
    summary = {"ok": report.ok, "checked": report.as_dict()["checked"], "fast": fast}
    yield as_json({**summary, "findings": len(report.findings), "left_out": report.left_out})
    rows = [plain(row) for row in store.finding_rows(report)]
    for row in rows:
        row["file"] = names.path(row["file"])
    for row in rows:
        texts: Mapping[str, str] = {
            name: names.sentence(row[name]) for name in ("what", "effect", "fix")
        }
        yield as_json({**row, **texts})
