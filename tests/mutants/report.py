"""The declared modules and reasons, and the tables of docs/quality.md."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_HERE: Final = Path(__file__).parent
DOCUMENT: Final = _HERE.parents[1] / "docs" / "quality.md"
_SECONDS: Final = 4
"""Of processor time that the tests of a module may take, where modules.toml says no other."""
_MARKED: Final = r"(<!-- {0}: .*? -->\n).*?(<!-- end of {0} -->\n)"
_WIDTH: Final = 120
_BACKSLASH: Final = "\\"


class Rule(NamedTuple):
    """A module that holds rules, its tests, and the processor time (s) that they may take."""

    path: str
    tests: list[str]
    seconds: int


class Row(NamedTuple):
    """What became of the mutants of a module."""

    path: str
    mutants: int
    run: int
    killed: int
    survivors: list[str]
    seconds: float
    left_out: int
    """Chosen, but not run before the end."""

    @property
    def score(self) -> float:
        """Killed mutants of those that were run; equivalent ones count as not killed."""
        return self.killed / self.run if self.run else 0.0


def load_rules(path: Path = _HERE / "modules.toml") -> list[Rule]:
    """The modules in the order of the file."""
    tables = tomllib.loads(path.read_text("utf-8"))
    return [
        Rule(module, table["tests"], table.get("seconds", _SECONDS))
        for module, table in tables.items()
    ]


def load_reasons(path: Path = _HERE / "survivors.toml") -> dict[str, dict[str, str]]:
    """By module and mutant: why no test finds it."""
    tables: dict[str, dict[str, str]] = tomllib.loads(path.read_text("utf-8"))
    return tables


def sum_of(rows: Sequence[Row]) -> Row:
    """A row for all of them."""
    return Row(
        "all",
        sum(row.mutants for row in rows),
        sum(row.run for row in rows),
        sum(row.killed for row in rows),
        [name for row in rows for name in row.survivors],
        sum(row.seconds for row in rows),
        sum(row.left_out for row in rows),
    )


def table(rows: Sequence[Row]) -> str:
    """A line for each module, and the sum."""
    lines = ["| module | mutants | run | killed | survivors | score |", "|---|--:|--:|--:|--:|--:|"]
    whole = sum_of(rows)
    for row in [*rows, whole]:
        cells = (row.mutants, row.run, row.killed, len(row.survivors), f"{row.score:.1%}")
        name = row.path if row is whole else f"`{row.path}`"
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def survivors(rows: Sequence[Row], reasons: Mapping[str, Mapping[str, str]]) -> str:
    """Each survivor with its reason, by module."""
    lines = []
    for row in rows:
        if row.survivors:
            lines += [f"`{row.path}`", ""]
            for name in row.survivors:
                reason = reasons.get(row.path, {}).get(name, "no reason yet")
                lines.append("* " + "\n  ".join(_item(name, reason)))
            lines.append("")
    return "\n".join(lines)


def write(rows: Sequence[Row], reasons: Mapping[str, Mapping[str, str]], size: int | None) -> None:
    """Put both tables into the document."""
    how = "each mutant" if size is None else f"{size} mutants or more, or all there are"
    sums = f"Run of each of {len(rows)} modules: {how}.\n\n{table(rows)}"
    text = DOCUMENT.read_text("utf-8")
    for name, part in (("mutants", sums), ("survivors", survivors(rows, reasons))):
        marked = re.compile(_MARKED.format(name), re.DOTALL)
        text, count = marked.subn(rf"\g<1>{part.replace(_BACKSLASH, _BACKSLASH * 2)}\g<2>", text)
        assert count == 1, f"{DOCUMENT} has no place for {name}"
    DOCUMENT.write_text(text, "utf-8")


def _item(name: str, reason: str) -> list[str]:
    """The lines of an item, within the width of documents; a mutant is not broken in two."""
    place, _, change = name.partition(": ")
    before, _, after = change.partition(" -> ")
    lines = [f"{place}: `{before}`", f"-> `{after}`:"]
    for word in reason.split():
        if len(lines[-1]) + 1 + len(word) > _WIDTH - 2:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return lines
