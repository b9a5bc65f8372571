"""Fail when docs/compared.md is not what the tests' markers say; `--write` writes it.

A test that shows a row carries `@pytest.mark.feature(31, 35)`. The rows, what the other tools have,
and what we do not have are in compared_rows.toml. A row marked 1 or 2 needs a test or a sentence
that says what is missing. While COMPLETE is false, rows without either are only listed.
"""

import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.checks.markers import Tests, links, marked_tests  # noqa: E402 - the clone's own

ROWS = Path(__file__).with_name("compared_rows.toml")
TABLE = ROOT / "docs" / "compared.md"
COMPLETE = True
"""Whether a row that nothing is said of is an error."""

PEERS = ("mqadmin", "Dashboard", "K-groups", "kcat", "rpk", "nats", "Burrow")
"""The tools of all sections but those that name others."""
LATER = 3

HEAD = """\
# What other tools can do, and what rmqctl can

{total} things that people do with a message broker from a terminal or a console. A "yes" of ours
has a test that fails without it; it is named. What we do not have, or not whole, is said.

| tool | what was looked at | yes | partial | no |
|---|---|---|---|---|
{sums}

The other tools were read, source or manual, not run, and most of them do not mean to do all of
this: a "no" is no reproach. All of them talk to a running broker over the network, which rmqctl
does not do: it works on the files of a store.

The console is compared with other consoles: k9s (Kubernetes); kaskade, yozefu and ktea (Kafka, in a
terminal); Redpanda Console, kafbat's kafka-ui and akhq (Kafka, in a browser); the classic
rocketmq-dashboard; RocketMQ Studio (from its issues only). "-": not its subject. These columns are
not counted above. Source, manual or issues were looked at, none of them was run.

`make compared` makes this file of the tests' markers (`@pytest.mark.feature(31, 35)`) and of
`tests/checks/compared_rows.toml`; `make check` fails when it is stale.
"""
LOOKED_AT = {
    "mqadmin": "Apache RocketMQ 4.9.8; a note says when only 5.x has it",
    "Dashboard": "rocketmq-dashboard, the classic one and RocketMQ Studio together",
    "K-groups": "Apache Kafka's kafka-consumer-groups.sh alone",
    "kcat": "kcat",
    "rpk": "Redpanda's rpk",
    "nats": "the JetStream part of the nats command line",
    "Burrow": "Burrow, the lag monitor",
}


class Row(NamedTuple):
    """A capability: the tools that have it, and its weight."""

    row_id: str
    name: str
    peers: tuple[str, ...]
    wanted: int
    note: str
    tools: tuple[str, ...] = PEERS


class Told(NamedTuple):
    """What we say of rows: what is missing of them, wholly or in part."""

    absent: Mapping[str, str]
    partly: Mapping[str, str]


def read_rows(path: Path = ROWS) -> tuple[dict[str, list[Row]], Told]:
    """The rows by their section's title, and what is said of some."""
    facts: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    found = {}
    for section in facts["rows"].values():
        title = section.pop("title")
        tools = tuple(section.pop("tools", PEERS))
        found[title] = [
            Row(row_id, name, tuple(peers.split()), wanted, note, tools)
            for row_id, (name, peers, wanted, note) in section.items()
        ]
    return found, Told(facts["absent"], facts["partly"])


def missing(rows: Mapping[str, list[Row]], told: Told, tests: Tests) -> Iterator[str]:
    """One sentence for each row that has neither a test nor a word."""
    for section in rows.values():
        for row in section:
            if row.row_id not in tests and row.row_id not in told.absent:
                yield f"no test shows {row.row_id} ({row.name})"


def mistakes(rows: Mapping[str, list[Row]], told: Told, tests: Tests) -> Iterator[str]:
    """One sentence for each thing that contradicts another."""
    known = {row.row_id: row for section in rows.values() for row in section}
    for row_id in tests.keys() - known.keys():
        yield f"{row_id} is no row, but a marker of {tests[row_id][0][1]}"
    for row_id in {*told.absent, *told.partly} - known.keys():
        yield f"{row_id} is no row, but something is said of it"
    for row_id in sorted(told.absent.keys() & tests.keys(), key=int):
        yield f"{row_id} is said to be absent, but {tests[row_id][0][1]} shows it"
    if COMPLETE:
        for row_id in sorted(told.partly.keys() - tests.keys(), key=int):
            yield f"{row_id} is said to be there in part, but no test shows it"
        yield from missing(rows, told, tests)


def rendered(rows: Mapping[str, list[Row]], told: Told, tests: Tests) -> str:
    """The document."""
    every = [row for section in rows.values() for row in section]
    parts = [HEAD.format(total=len(every), sums="\n".join(_sums(every, told, tests)))]
    for title, section in rows.items():
        head = ["#", "what", *section[0].tools, "rmqctl", "shown by"]
        lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in section:
            answer, said = _answer(row, told, tests), _said(row, told)
            name = row.name + (f"<br>*{row.note}*" if row.note else "")
            shown = "<br>".join([*([said] if said else []), *links(tests.get(row.row_id, []))])
            cells = (row.row_id, name, *row.peers, f"**{answer}**", shown)
            lines.append(f"| {' | '.join(cells)} |")
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def _sums(every: list[Row], told: Told, tests: Tests) -> Iterator[str]:
    alike = [row for row in every if row.tools == PEERS]
    for place, name in enumerate(PEERS):
        yield _sum(name, LOOKED_AT[name], Counter(row.peers[place] for row in alike))
    ours = Counter(_answer(row, told, tests) for row in every)
    yield _sum("**rmqctl**", "this repository", ours)


def _sum(name: str, what: str, counts: Counter[str]) -> str:
    return f"| {name} | {what} | {counts['yes']} | {counts['partial']} | {counts['no']} |"


def _answer(row: Row, told: Told, tests: Tests) -> str:
    if row.row_id not in tests:
        return "no"
    return "partial" if row.row_id in told.partly else "yes"


def _said(row: Row, told: Told) -> str:
    return told.absent.get(row.row_id) or told.partly.get(row.row_id) or ""


def main() -> int:
    rows, told = read_rows()
    tests = marked_tests(ROOT / "tests", "feature")
    text = rendered(rows, told, tests)
    found = list(mistakes(rows, told, tests))
    if "--write" in sys.argv[1:]:
        TABLE.write_text(text, "utf-8")
    elif not TABLE.is_file() or TABLE.read_text("utf-8") != text:
        found.append("docs/compared.md is stale; run `make compared`")
    for line in found:
        print(f"compared: {line}", file=sys.stderr)
    if not COMPLETE:
        for line in missing(rows, told, tests):
            print(f"compared: to do: {line}")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
