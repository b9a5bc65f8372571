"""Durations (``500ms 10s 15m 2h 7d``, ISO 8601), sizes (``64K 10M 1G``) and rates (``100/s``)."""

import re
from typing import Final

# Patterns are text here, compiled on first use: most commands use none.

UNITS_MS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
    "w": 604_800_000,
}
_SPAN_UNITS: Final = {
    "us usec microsecond microseconds": 0.001,
    "ms msec msecs millisecond milliseconds": 1,
    "s sec secs second seconds": 1000,
    "m min mins minute minutes": 60_000,
    "h hr hrs hour hours": 3_600_000,
    "d day days": 86_400_000,
    "w week weeks": 604_800_000,
    "month months": 2_629_800_000,
    "y yr year years": 31_557_600_000,
}
"""The units of systemd.time, a year of 365.25 days and a twelfth of it. Its M for months is not
among them: it is too near to m."""
_PART: Final = r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)"
_ISO: Final = r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
_ISO_UNITS: Final = ("w", "d", "h", "m", "s")
_SIZE: Final = r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?"
_SIZE_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_TOO_LARGE: Final = float(1 << 63)
_RATE: Final = r"(\d+(?:\.\d+)?)(?:/(s|m|h))?"


def parse_duration(text: str) -> int:
    """Milliseconds of ``500ms``, ``10s``, ``1h30m``, ``7d`` or ISO 8601 (``PT15M``, ``P1DT2H``).

    Raises ValueError for another text.
    """
    stripped = text.strip()
    if re.fullmatch(rf"(?:{_PART})+", stripped, re.ASCII):
        parts = [(float(n), unit) for n, unit in re.findall(_PART, stripped, re.ASCII)]
        return _whole(text, sum(number * UNITS_MS[unit] for number, unit in parts))
    iso = re.fullmatch(_ISO, stripped.upper(), re.ASCII)
    if iso and any(iso.groups()):
        given = zip(iso.groups(), _ISO_UNITS, strict=True)
        return _whole(text, sum(float(n) * UNITS_MS[unit] for n, unit in given if n))
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        raise ValueError(f"{text!r} has no unit (write {stripped}s or {stripped}ms)")
    raise ValueError(f"{text!r} is not a duration (such as 500ms, 10s, 15m, 2h, 7d or PT15M)")


def parse_span(text: str) -> int:
    """Milliseconds of a duration as systemd.time has it, ``1h 30min`` or ``2 days``, or as
    parse_duration.

    Raises ValueError for another text.
    """
    stripped = text.strip()
    part = r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)"
    if not re.fullmatch(rf"{part}(?:\s*{part})*", stripped, re.ASCII):
        return parse_duration(stripped)
    units = {name: size for names, size in _SPAN_UNITS.items() for name in names.split()}
    total = 0.0
    for number, unit in re.findall(part, stripped, re.ASCII):
        size = None if unit == "M" else units.get(unit.lower())
        if size is None:
            raise ValueError(f"{unit!r} is not a unit of time (such as s, min, h, days)")
        total += float(number) * size
    return _whole(text, total)


def format_duration(milliseconds: int) -> str:
    """The duration in its two largest units, such as ``3d4h``, ``5m3s``, ``12.3s`` or ``7ms``."""
    if milliseconds < 0:
        return "-" + format_duration(-milliseconds)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1000:.1f}".rstrip("0").rstrip(".") + "s"
    seconds = milliseconds // 1000
    for unit, size, below, below_size in (
        ("d", 86_400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if seconds >= size:
            rest = seconds % size // below_size
            return f"{seconds // size}{unit}" + (f"{rest}{below}" if rest else "")
    raise AssertionError("a minute has at least 60 seconds")


def parse_size(text: str) -> int:
    """Bytes of ``1000``, ``64K``, ``1.5M``, ``1GiB``; units are powers of 1024.

    Raises ValueError for another text.
    """
    found = re.fullmatch(_SIZE, text.strip(), re.ASCII | re.IGNORECASE)
    if not found:
        raise ValueError(f"{text!r} is not a size (such as 1000, 64K, 10M or 1G)")
    return _whole(text, float(found[1]) * _SIZE_UNITS[found[2].upper()])


def format_size(size: int) -> str:
    """The size with at most three digits and a binary unit: ``512``, ``64K``, ``1.5M``."""
    if size < 0:
        return "-" + format_size(-size)
    if size < 1000:
        return str(size)
    value = float(size)
    for unit in "KMGTPE":
        value /= 1024
        if value < 999.5:
            return (f"{value:.1f}".removesuffix(".0") if value < 99.95 else f"{value:.0f}") + unit
    return f"{value:.0f}E"


def parse_rate(text: str) -> float:
    """Per second, of ``100``, ``100/s``, ``30/m`` or ``5/h``; always above 0.

    Raises ValueError for another text.
    """
    found = re.fullmatch(_RATE, text.strip(), re.ASCII)
    if not found or not float(found[1]):
        raise ValueError(f"{text!r} is not a rate (such as 100/s or 30/m)")
    _whole(text, float(found[1]))
    return float(found[1]) * 1000 / UNITS_MS[found[2] or "s"]


def _whole(text: str, number: float) -> int:
    """The number, if it fits into 63 bits, the limit of the file format."""
    if number >= _TOO_LARGE:
        raise ValueError(f"{text!r} is too large")
    return round(number)
