"""Tables of an earlier run's page that are measured anew, apart from the others."""

from __future__ import annotations

import re
import time
from pathlib import Path

from .document import Session, measure_section

_BETWEEN = "\n\n## "
_LATER = (
    "Tables that name a time of their own were measured later, apart from the others, by\n"
    "`python -m benchmarks --only NAME --update FILE`."
)
_FURTHER = re.compile(r"\d+ of \d+ further goals in the tables below are met\.")


class PageError(Exception):
    """Why a page cannot be updated; nothing was written."""


def update_document(path: Path, session: Session) -> None:
    """Replace the tables of a session's measures, and count the further goals anew.

    The table of goals against peers and the picture stay those of the whole run, so a measure with
    such a goal is refused (PageError), as is one that the page does not have, or of which a part
    was not measured.
    """
    compared = [row.what for row in session.rows if row.key]
    if compared:
        raise PageError(f"{compared[0]!r} is in the first table: measure all, with --document")
    left_out = _left_out(session)
    if left_out is not None:
        raise PageError(left_out)
    introduction, *sections = path.read_text("utf-8").rstrip("\n").split(_BETWEEN)
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime(session.ended))
    places = {section.partition("\n")[0]: place for place, section in enumerate(sections)}
    for name, finding in session.findings.items():
        if name not in places:
            raise PageError(f"{path} has no table of {name}")
        new = measure_section(name, finding, f", measured on {when} UTC")
        sections[places[name]] = new.removeprefix("## ")
    if _LATER not in introduction:
        introduction += f"\n\n{_LATER}"
    page = _BETWEEN.join([introduction, *sections])
    path.write_text(_FURTHER.sub(_further(sections), page) + "\n", "utf-8")


def _left_out(session: Session) -> str | None:
    """What of a session's measures was not measured, and why; None if nothing."""
    for what, reason in session.missing.items():
        return f"not measured: {what}: {reason.splitlines()[0]}"
    for name, finding in session.findings.items():
        if not finding.rows:
            return f"{name} has no row"
    return None if session.findings else "nothing was measured"


def _further(sections: list[str]) -> str:
    """How many goals of the tables are met that the first one does not have."""
    first, *tables = ([_cells(line) for line in text.splitlines()] for text in sections)
    against_peers = {cells[0] for cells in first if cells}
    found = [
        cells[5] == "yes"
        for cells in (cells for table in tables for cells in table)
        if len(cells) == 6 and cells[4] not in ("", "goal", "---") and cells[0] not in against_peers
    ]
    return f"{sum(found)} of {len(found)} further goals in the tables below are met."


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
