"""A picture of how far each goal is met, as SVG, with nothing but text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import log2

from .report import Row

_LEFT, _WIDTH, _STEP, _TOP = 450, 420, 18, 46
_LEAST, _MOST = 1 / 16, 16.0
_MET, _NOT = "#2f7d4f", "#b5482f"


def goals_plot(rows: Sequence[Row]) -> str:
    """One bar a row, from the goal's line: by the factor, to the right if better.

    The axis is logarithmic; what lies beyond its ends is drawn at them.
    """
    judged = [row for row in rows if row.goal is not None]
    height = _TOP + _STEP * len(judged) + 16
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}"'
        ' font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<text x="8" y="16" font-size="13">Times better than the goal (median of the rounds);'
        " the line is the goal</text>",
    ]
    for power in range(-4, 5):
        x = _x(2.0**power)
        colour = "#333" if power == 0 else "#ddd"
        lines.append(f'<path d="M{x} {_TOP - 8}V{height - 12}" stroke="{colour}"/>')
        label = f"{2**power}" if power >= 0 else f"1/{2**-power}"
        lines.append(f'<text x="{x}" y="{_TOP - 14}" text-anchor="middle">{label}</text>')
    for number, row in enumerate(judged):
        lines += _bar(row, _TOP + number * _STEP)
    return "\n".join([*lines, "</svg>", ""])


def _x(times: float) -> int:
    held = min(_MOST, max(_LEAST, times))
    span = log2(_MOST) - log2(_LEAST)
    return round(_LEFT + _WIDTH * (log2(held) - log2(_LEAST)) / span)


def _bar(row: Row, y: int) -> list[str]:
    assert row.goal is not None
    times = row.goal.distance(row.ratio)
    ends = [row.goal.distance(ratio) for ratio in (min(row.ratios), max(row.ratios))]
    left, right = sorted((_x(1), _x(times)))
    first, last = sorted(map(_x, ends))
    middle = y + _STEP // 2 - 2
    colour = _MET if row.met else _NOT
    return [
        f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{escape(row.what)}</text>',
        f'<rect x="{left}" y="{y + 1}" width="{max(2, right - left)}" height="{_STEP - 6}"'
        f' fill="{colour}"/>',
        f'<path d="M{first} {middle}H{last}" stroke="#111"/>',
        f'<text x="{_LEFT + _WIDTH + 8}" y="{y + 11}">{row.ratio:.2f}</text>',
    ]
