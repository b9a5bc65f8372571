"""Fail when docs/rows.md does not have every command with rows; `--write` writes it.

Writing runs the program on terminals of three widths (a minute); the check reads declarations only.
tests/rmqctl/output/test_rows_document.py checks the cells about widths.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.support.rows_table import document, measured, other_part, prepared  # noqa: E402

TABLE = ROOT / "docs" / "rows.md"


def main() -> int:
    if "--write" in sys.argv[1:]:
        with prepared() as (place, words):
            TABLE.write_text(document(measured(place, words)), "utf-8")
    elif not TABLE.is_file() or other_part(TABLE.read_text("utf-8")) != other_part(document([])):
        print("rows: docs/rows.md is stale; run `make rows`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
