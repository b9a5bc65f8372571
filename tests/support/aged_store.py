"""A store whose messages have given store times.

`python -m tests.support.aged_store FOLDER` reads JSON lines from standard input,
`{"at": "-26h", "topic": "orders", "body": "..."}` with `queue`, `key`, `tag` and `properties` if
wanted, and puts them into the store, which
is made if it is not there. Times are those of the command line; they must not go back.
"""

import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.format.message import Message
from storage.parse.times import parse_time


def fill(root: Path, lines: Iterable[str]) -> None:
    """Store the messages of JSON lines, each at its time."""
    if not root.exists():
        create_store(root, SMALL_STORE)
    started = clock = time.time_ns() // 1_000_000
    with EmbeddedBroker.open(root, clock=lambda: clock) as broker:
        for line in filter(str.strip, lines):
            given = json.loads(line)
            clock = parse_time(given["at"], started, None)
            message = Message(
                given["topic"],
                given["body"].encode(),
                tags=given.get("tag"),
                keys=given.get("key"),
                properties=given.get("properties"),
            )
            broker.send(message, given.get("queue"))
        clock = started


if __name__ == "__main__":
    fill(Path(sys.argv[1]), sys.stdin)
