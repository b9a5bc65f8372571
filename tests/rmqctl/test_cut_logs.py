"""A log file that was cut short is no crash: readers report what the queues still name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import run
from tests.support.hand_made import TINY, HandMade

SIZE = 4096
CONFIG = TINY.with_(mapped_file_size_commit_log=SIZE, mapped_file_size_consume_queue=2000)
LINES = (
    "consume T -e",
    "message export -t T --as jsonl",
    "message search -t T --min-size 0",
    "message query -t T --key all --scan",
)


@pytest.mark.parametrize("clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize("length", [7, 20, 1000])
def test_readers_say_that_messages_are_missing(length: int, clean: bool, tmp_path: Path) -> None:
    made = HandMade(CONFIG)
    for number in range(30):
        made.put("T", number % 2, b"body %d" % number, keys=("all",))
    made.clean = clean
    root = made.write(tmp_path / "s")
    with (root / "commitlog" / f"{0:020}").open("r+b") as file:
        file.truncate(length)
    for line in LINES:
        found = run(*line.split(), "-S", root)
        assert found.code == 8, (line, found)
