"""Results of runs before, as long as neither the module nor its tests have changed."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from tests.mutants.report import Row, Rule

_HERE: Final = Path(__file__).parent
_ROOT: Final = _HERE.parents[1]
_FOLDER: Final = _ROOT / "build" / "mutants"


def keep(rule: Rule, size: int | None, row: Row) -> None:
    """Note the result of a module, if all chosen mutants were run. ``size`` is None for all."""
    if not row.left_out:
        _FOLDER.mkdir(parents=True, exist_ok=True)
        noted = {"digest": _digest(rule), "size": size, "row": row}
        _file(rule).write_text(json.dumps(noted), "utf-8")


def load_kept(rule: Rule, size: int | None) -> Row | None:
    """The result of as many mutants or more, with the same tests; None if there is none."""
    if not _file(rule).is_file():
        return None
    noted = json.loads(_file(rule).read_text("utf-8"))
    if noted["digest"] != _digest(rule):
        return None
    enough = noted["size"] is None or (size is not None and noted["size"] >= size)
    return Row(*noted["row"]) if enough else None


def _file(rule: Rule) -> Path:
    return _FOLDER / f"{rule.path.replace('/', '.')}.json"


def _digest(rule: Rule) -> str:
    """Of the module, its tests, and what makes and runs mutants."""
    found = hashlib.sha256(repr(rule).encode())
    for name in (rule.path, *rule.tests):
        found.update((_ROOT / name).read_bytes())
    for name in ("mutations.py", "runner.py"):
        found.update((_HERE / name).read_bytes())
    return found.hexdigest()
