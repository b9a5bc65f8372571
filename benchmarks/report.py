"""The table and the JSON file."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Goal:
    """A bound for a ratio."""

    value: float
    at_most: bool = False
    percent: bool = False
    stretch: float | None = None
    """A better value; shown, not judged."""

    def met_by(self, ratio: float) -> bool:
        """Whether the ratio is on the right side."""
        return ratio <= self.value if self.at_most else ratio >= self.value

    def stretch_met_by(self, ratio: float) -> bool:
        """Whether the stretch is met; False if there is none."""
        if self.stretch is None:
            return False
        return ratio <= self.stretch if self.at_most else ratio >= self.stretch

    def distance(self, ratio: float) -> float:
        """How many times better than the goal; below 1 it is missed."""
        return self.value / ratio if self.at_most else ratio / self.value

    def __str__(self) -> str:
        sign = "<=" if self.at_most else ">="
        if self.percent:
            return f"{sign} {self.value:.0%}"
        more = "" if self.stretch is None else f" ({self.stretch:g})"
        return f"{sign} {self.value:g}{more}"


@dataclass(frozen=True)
class Missing:
    """A comparison that was not possible, and why: a peer that is not installed."""

    what: str
    reason: str


@dataclass(frozen=True)
class Row:
    """One line of the report: the comparison, both sides in words, and the ratio.

    ``ratios`` are those of the rounds; their median counts. ``goal`` None: for information.
    """

    what: str
    ours: str
    peer: str
    ratios: Sequence[float]
    goal: Goal | None = None
    unit: str = "x"
    samples: dict[str, list[float]] = field(default_factory=dict)
    key: str = ""
    """The line of ``benchmarks.goals`` that it belongs to, if any."""

    @property
    def ratio(self) -> float:
        """The median."""
        return median(self.ratios)

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return None if self.goal is None else self.goal.met_by(self.ratio)

    def ratio_text(self) -> str:
        """The median and, in brackets, the extremes."""
        if self.goal is not None and self.goal.percent:
            return f"{self.ratio:.1%} ({min(self.ratios):.0%}..{max(self.ratios):.0%})"
        low, high = min(self.ratios), max(self.ratios)
        return f"{self.ratio:.2f} {self.unit} ({low:.2f}..{high:.2f})"


_HEADER = ("what", "ours", "peer", "ratio (lowest..highest)", "goal", "met?")


def cells(row: Row) -> tuple[str, ...]:
    """One line of the table."""
    met = {True: "yes", False: "MISSED", None: ""}[row.met]
    return (
        row.what,
        row.ours,
        row.peer,
        row.ratio_text(),
        "" if row.goal is None else str(row.goal),
        met,
    )


def table(rows: Sequence[Row]) -> str:
    """Draw the table."""
    lines = [_HEADER, *map(cells, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADER))]
    drawn = [
        "  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    drawn.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(drawn)


def machine() -> dict[str, str | int | list[float]]:
    """The machine of the measurements."""
    return {
        "python": sys.version,
        "system": platform.platform(),
        "cpus": os.cpu_count() or 0,
        "load": list(os.getloadavg()),
    }


def write_json(path: Path, rows: Sequence[Row], skipped: dict[str, str]) -> None:
    """Write everything, including every round."""
    data = {
        "machine": machine(),
        "rows": [
            asdict(row) | {"ratio": row.ratio, "met": row.met, "goal_text": str(row.goal or "")}
            for row in rows
        ],
        "not_measured": skipped,
    }
    path.write_text(json.dumps(data, indent=1) + "\n")
