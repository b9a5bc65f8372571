"""Fail when docs/changes.md lacks a command that changes something; `--write` writes it.

Writing runs the program (half a minute); the check reads declarations only.
tests/rmqctl/test_changes_document.py checks the cells.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.changes_table import declared, document, marked, measured  # noqa: E402

TABLE = ROOT / "docs" / "changes.md"


def main() -> int:
    if "--write" in sys.argv[1:]:
        TABLE.write_text(document(measured()), "utf-8")
        return 0
    there = declared(TABLE.read_text("utf-8")) if TABLE.is_file() else {}
    wanted = {name: how.value for name, how in marked().items()}
    if there != wanted:
        print("changes: docs/changes.md is stale; run `make changes`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
