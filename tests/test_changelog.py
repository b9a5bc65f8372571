"""CHANGELOG.md: versions with their dates, newest first, and four kinds of changes in one order."""

import re
from datetime import date
from pathlib import Path

from rmqctl import __version__

ROOT = Path(__file__).resolve().parents[1]
KINDS = ["Added", "Changed", "Fixed", "Security"]
TEXT = (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_versions_have_dates_and_the_first_is_this_one() -> None:
    heads = re.findall(r"^## (.*)$", TEXT, re.MULTILINE)
    found = [re.fullmatch(r"(\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)", head) for head in heads]
    assert all(found), heads
    versions = [head[1] for head in found if head]
    assert versions[0] == __version__
    dates = [date.fromisoformat(head[2]) for head in found if head]
    assert dates == sorted(dates, reverse=True)


def test_changes_are_of_four_kinds_in_one_order() -> None:
    for version in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", version, re.MULTILINE)
        assert kinds == [kind for kind in KINDS if kind in kinds], version.splitlines()[0]
