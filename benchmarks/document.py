"""docs/benchmarks.md: every table of one run, with the machine, the versions and the commands."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .goals import TARGETS
from .plot import goals_plot
from .report import Row, cells

PICTURE = "pictures/benchmarks.svg"
_HEAD = ("what", "ours", "peer", "ratio (lowest..highest)", "goal", "met?")


@dataclass(frozen=True)
class Finding:
    """Result of one measure: its rows and its time; or why it gave none."""

    rows: Sequence[Row]
    seconds: float
    about: str
    """The first paragraph of the measure's own description."""


@dataclass(frozen=True)
class Session:
    """All of one run."""

    findings: Mapping[str, Finding]
    missing: Mapping[str, str]
    shape: Mapping[str, str]
    versions: Mapping[str, str]
    command: str
    rounds: int
    quick: bool
    ended: float
    """Seconds since the epoch."""

    @property
    def rows(self) -> list[Row]:
        """Those of all measures."""
        return [row for finding in self.findings.values() for row in finding.rows]


def command_shown(arguments: Sequence[str]) -> str:
    """The command that measures the same; the working folder depends on the machine."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for option in ("--dir", "--json"):
        parser.add_argument(option)
    return shlex.join(["python", "-m", "benchmarks", *parser.parse_known_args(arguments)[1]])


def write_document(path: Path, session: Session) -> None:
    """Write the page and, beside it, its picture."""
    picture = path.parent / PICTURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    by_key = {row.key: row for row in session.rows if row.key}
    ordered = [by_key[target.key] for target in TARGETS if target.key in by_key]
    picture.write_text(goals_plot(ordered), "utf-8")
    parts = [_introduction(session), _goals(session, by_key), _machine(session)]
    parts += [measure_section(name, finding) for name, finding in session.findings.items()]
    parts.append(_missing(session))
    path.write_text("\n\n".join(part for part in parts if part) + "\n", "utf-8")


def _introduction(session: Session) -> str:
    seconds = sum(finding.seconds for finding in session.findings.values())
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.ended))
    what = "a quick run (a first look only)" if session.quick else "a whole run"
    return f"""\
# Benchmarks

`make bench` has written this page; change the generator, not the page. It shows {what}
of {seconds / 60:.1f} minutes that ended on {when} UTC, by

    {session.command}

Contestants took turns in {session.rounds} rounds (more where one is over in a second), after
one that was thrown away. A ratio is taken within a round; its median counts, the lowest and the
highest stand beside it. Ratios of two tables, two machines or two days cannot be
compared. The peers, the data that they keep, and where the comparison favours them are in
[benchmarks/README.md](../benchmarks/README.md)."""


def _goals(session: Session, by_key: Mapping[str, Row]) -> str:
    lines = ["## Goals", "", "| what | ratio (lowest..highest) | goal (stretch) | met? |"]
    lines.append("|---|---|---|---|")
    met = 0
    for target in TARGETS:
        row = by_key.get(target.key)
        if row is None:
            lines.append(f"| {target.what} | not measured | {target.goal} | |")
            continue
        met += row.met is True
        said = "yes" if row.met else "MISSED"
        if target.goal.stretch_met_by(row.ratio):
            said = "yes, and the stretch"
        lines.append(f"| {row.what} | {row.ratio_text()} | {target.goal} | {said} |")
    further = [row.met is True for row in session.rows if not row.key and row.goal is not None]
    lines += ["", f"{met} of these {len(TARGETS)} are met, {len(by_key)} were measured."]
    if further:
        lines += [f"{sum(further)} of {len(further)} further goals in the tables below are met."]
    lines += ["", f"![How far each goal is met]({PICTURE})"]
    return "\n".join(lines)


def _machine(session: Session) -> str:
    lines = ["## Machine and versions", "", "| | |", "|---|---|"]
    for name, value in [*session.shape.items(), *session.versions.items()]:
        lines.append(f"| {name} | {value} |")
    return "\n".join(lines)


def measure_section(name: str, finding: Finding, when: str = "") -> str:
    """The table of a measure under its name; ``when`` is said after its command."""
    if not finding.rows:
        return ""
    lines = [f"## {name}", "", finding.about, ""]
    lines += [f"`python -m benchmarks --only {name}` ({finding.seconds:.0f} s){when}", ""]
    lines += [_line(_HEAD), "|" + "---|" * len(_HEAD)]
    lines += [_line(cells(row)) for row in finding.rows]
    return "\n".join(lines)


def _line(words: Sequence[str]) -> str:
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def _missing(session: Session) -> str:
    if not session.missing:
        return ""
    lines = ["## Not measured", ""]
    lines += [f"* {what}: {reason.splitlines()[0]}" for what, reason in session.missing.items()]
    return "\n".join(lines)
