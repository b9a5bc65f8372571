"""Plans of ``store repair`` on disk: what ``--export`` writes and ``--expect`` compares with."""

import json
from collections.abc import Sequence
from pathlib import Path

from rmqctl.admin.store.repair_rows import RepairRow
from rmqctl.errors import CliError, UsageProblem
from rmqctl.exit_codes import CHANGED, NOT_WRITABLE
from rmqctl.output.saved_file import saved_file
from rmqctl.output.values import plain
from storage.errors import CorruptFileError
from storage.files.bounded import read_bounded
from storage.format.strict_json import loads_strict


def write_plan(path: Path, rows: Sequence[RepairRow]) -> None:
    """Write a plan as JSON, atomically and synced. CliError (5) if that fails."""
    try:
        with saved_file(path) as file:
            file.write(_text(rows).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise CliError(f"{path} cannot be written: {error.strerror}", NOT_WRITABLE) from error


def compare_with(path: Path, rows: Sequence[RepairRow]) -> None:
    """CliError (6) if the plan differs from the saved one; UsageProblem without the file."""
    try:
        saved = loads_strict(read_bounded(path).decode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageProblem(f"--expect: {path} cannot be read: {error.strerror}") from error
    except (ValueError, CorruptFileError) as error:
        raise UsageProblem(f"--expect: {path} is not a plan of --export") from error
    if saved != json.loads(_text(rows)):
        raise CliError(f"the plan differs from {path}; nothing was changed", CHANGED)


def _text(rows: Sequence[RepairRow]) -> str:
    return json.dumps([plain(row) for row in rows], ensure_ascii=False, indent=1) + "\n"
