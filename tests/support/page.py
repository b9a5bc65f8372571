"""What the page of a report holds."""

from __future__ import annotations

import json
from typing import Any


def held(page: str) -> dict[str, Any]:
    """The report in a page."""
    _, _, rest = page.partition('id="report">')
    found: dict[str, Any] = json.loads(rest.partition("</script>")[0])
    return found
