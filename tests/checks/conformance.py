"""Fail when docs/conformance.md is not what the tests' markers say; `--write` writes it.

A test that shows a row carries `@pytest.mark.conformance("E14")`. The rows and their texts are in
conformance_rows.toml. A row without a test is an error, unless it is all about the network.
"""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.checks.markers import Tests, links, marked_tests  # noqa: E402 - the clone's own

ROWS = Path(__file__).with_name("conformance_rows.toml")
TABLE = ROOT / "docs" / "conformance.md"
NETWORK = "network"

HEAD = """\
# RocketMQ's mechanisms, and the tests that show them

{total} rows: what RocketMQ 4.9 does for producers and consumers, and our tests that fail
without it. `make conformance` makes this file of the tests' markers
(`@pytest.mark.conformance("E14")`) and of `tests/checks/conformance_rows.toml`; `make check` fails
when it is stale, or when a row has lost its last test. "network": this needs a connection, which
the broker in a folder does not have.
"""


class Row(NamedTuple):
    """A mechanism, what its tests show, and what of it needs the network."""

    row_id: str
    name: str
    shown: str
    wire: str = ""


def sections(path: Path = ROWS) -> dict[str, list[Row]]:
    """The rows by their section's title."""
    found = {}
    for section in tomllib.loads(path.read_text("utf-8")).values():
        title = section.pop("title")
        found[title] = [
            Row(row_id, name, shown, *wire) for row_id, (name, shown, *wire) in section.items()
        ]
    return found


def findings(rows: dict[str, list[Row]], tests: Tests) -> Iterator[str]:
    """One sentence for each row without a test, and each marker without a row."""
    known = {row.row_id: row for section in rows.values() for row in section}
    for row in known.values():
        if row.wire != NETWORK and row.row_id not in tests:
            yield f"no test shows {row.row_id} ({row.name})"
    for row_id in tests.keys() - known.keys():
        yield f"{row_id} is no row, but a marker of {tests[row_id][0][1]}"


def rendered(rows: dict[str, list[Row]], tests: Tests) -> str:
    """The document."""
    parts = [HEAD.format(total=sum(map(len, rows.values())))]
    for title, section in rows.items():
        lines = ["| row | mechanism | what is shown | tests |", "|---|---|---|---|"]
        for row in section:
            cells = (row.row_id, row.name, row.shown, _cell(row, tests.get(row.row_id, [])))
            lines.append(f"| {' | '.join(cells)} |")
        parts.append(f"## {section[0].row_id[0]}. {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _cell(row: Row, tests: list[tuple[str, str]]) -> str:
    return "<br>".join([*([row.wire] if row.wire else []), *links(tests)])


def main() -> int:
    rows, tests = sections(), marked_tests(ROOT / "tests", "conformance")
    text = rendered(rows, tests)
    found = list(findings(rows, tests))
    if "--write" in sys.argv[1:]:
        TABLE.write_text(text, "utf-8")
    elif not TABLE.is_file() or TABLE.read_text("utf-8") != text:
        found.append("docs/conformance.md is stale; run `make conformance`")
    for line in found:
        print(f"conformance: {line}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
