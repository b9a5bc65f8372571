"""Checkpoint, settings, journal and the shared state."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rmqctl.errors import CliError
from rmqctl.exit_codes import DAMAGED
from storage.configs.checksummed_json import unseal
from storage.coordination.shared_state import (
    MAX_WAITERS,
    SHARED_STATE_MAGIC,
    SLOT_SIZE,
    SLOTS,
    WAITER_FLAGS,
    WORD_NAMES,
    SharedState,
)
from storage.errors import CorruptFileError, StoreError
from storage.files.bounded import read_bounded, read_first
from storage.files.fs import FileSystem
from storage.format.checkpoint import CHECKPOINT_SIZE, CheckpointData
from storage.format.errors import JsonError
from storage.format.fastjson import loads

from .rows import CheckpointDump, PageDump, PageQueueDump


def checkpoint(path: Path) -> CheckpointDump:
    """The checkpoint file."""
    try:
        data = read_first(path, CHECKPOINT_SIZE)
    except FileNotFoundError as error:
        raise CorruptFileError(path, 0, "it is no file") from error
    problem = None
    if len(data) < CHECKPOINT_SIZE:
        problem = f"the file has {len(data)} of {CHECKPOINT_SIZE} bytes; missing ones count as 0"
    fields = CheckpointData.unpack(data)
    return CheckpointDump(
        fields.physic_msg_timestamp or None,
        fields.logics_msg_timestamp or None,
        fields.index_msg_timestamp or None,
        fields.master_flushed_offset,
        fields.confirm_phy_offset,
        problem,
    )


def document(path: Path) -> Any:
    """The content of a settings file, in fastjson's form or with rmqctl's checksum.

    CliError (4) if it is neither.
    """
    data = read_bounded(path)
    if data.startswith(b'{"crc":'):
        entry = unseal(data)
        if entry is None:
            raise CliError(f"{path} is damaged: its checksum is wrong", DAMAGED)
        return entry
    try:
        return loads(data.decode("utf-8", "replace"))
    except JsonError as error:
        raise CliError(f"{path} is damaged: {error}", DAMAGED) from None


def journal_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The entries of a journal; a damaged line is an entry with a problem."""
    with io.BytesIO(read_bounded(path)) as file:
        for number, line in enumerate(file, 1):
            entry = unseal(line)
            if entry is not None:
                yield entry
            elif line.strip():
                text = line.decode("utf-8", "replace").rstrip("\n")
                yield {"line": number, "problem": "the checksum is wrong", "text": text}


def shared_state(root: Path) -> PageDump:
    """The shared state of the store at ``root``, and the names of its slots."""
    path = root / "rmqctl" / "shared"
    try:
        page = SharedState(FileSystem(), root, writable=False)
    except FileNotFoundError as error:
        raise CliError(
            f"{path} is damaged: it is too short for a shared state file", DAMAGED
        ) from error
    try:
        words = {WORD_NAMES[number].lower(): int(page.words[number]) for number in WORD_NAMES}
        flags = page.map[WAITER_FLAGS : WAITER_FLAGS + MAX_WAITERS]
        waiting = [number for number, flag in enumerate(flags) if flag]
        return PageDump(words, waiting, _page_queues(page), _page_problem(page))
    finally:
        page.close()


def _page_queues(page: SharedState) -> list[PageQueueDump]:
    room = (len(page.map) - SLOTS) // SLOT_SIZE
    try:
        names = page.queues()
    except (OSError, ValueError):
        return []
    return [
        PageQueueDump(slot, *name, page.next_offset(slot), page.synced_offset(slot))
        for slot, name in enumerate(names[:room])
    ]


def _page_problem(page: SharedState) -> str | None:
    from storage.coordination.shared_state import Word

    magic = page.words[Word.MAGIC]
    if magic == SHARED_STATE_MAGIC:
        return None
    try:
        page.check_version()
    except StoreError as error:
        return str(error)
    return "no writer has the store open: the next writer creates it again"
