"""Which boot of the machine this is: what was not synced before another one may be lost."""

from __future__ import annotations

from pathlib import Path


def boot_id() -> tuple[int, int] | None:
    """The kernel's id of this boot as two signed words, or None where it cannot be read."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")
        raw = bytes.fromhex(text)
    except (OSError, ValueError):
        return None
    return int.from_bytes(raw[:8], "big", signed=True), int.from_bytes(raw[8:], "big", signed=True)
