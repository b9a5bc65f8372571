"""Conditions that decide which kinds of topics and groups a list shows."""

import re
from typing import Final

_KIND: Final = re.compile(r"\bkind\b", re.IGNORECASE)


def decides_kind(where: str | None) -> bool:
    """Whether a condition names ``kind``: rows of the system are shown as it says."""
    return _KIND.search(where or "") is not None
