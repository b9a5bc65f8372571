"""A consumer that is killed sees messages again; its books are still right.

    python examples/idempotent_consumer.py ./empty-folder

Progress goes to the broker with the next pull, so a process that dies repeats its work since the
last one. The remedy is the consumer's: the message's unique id goes into the same transaction as
the work for it. Here: 100 payments of 1, a worker that is killed after 40, and its successor.
40, and its successor.
"""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from rmqctl import (
    SMALL_STORE,
    ConsumeConcurrentlyContext,
    ConsumeConcurrentlyStatus,
    EmbeddedBroker,
    Message,
    MessageExt,
    Producer,
    PushConsumer,
)

PAYMENTS = 100


class Books:
    """The consumer's database: payments by message id, and what they sum up to."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._lock = threading.Lock()
        with self._connection:
            self._connection.execute("CREATE TABLE IF NOT EXISTS done (msg_id TEXT PRIMARY KEY)")
            self._connection.execute("CREATE TABLE IF NOT EXISTS total (amount INTEGER)")

    def book(self, msg_id: str, amount: int, die_after: int) -> bool:
        """Book a payment once; False if it was booked before. Both or neither is written."""
        with self._lock:
            try:
                with self._connection:
                    self._connection.execute("INSERT INTO done VALUES (?)", (msg_id,))
                    self._connection.execute("INSERT INTO total VALUES (?)", (amount,))
            except sqlite3.IntegrityError:
                return False
            if self.total() == die_after:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

    def total(self) -> int:
        """Give the sum of all payments."""
        (amount,) = self._connection.execute(
            "SELECT coalesce(sum(amount), 0) FROM total"
        ).fetchone()
        return int(amount)


def work(folder: Path, die_after: int) -> None:
    """Consume until every payment is booked, or until the kill."""
    books = Books(folder.with_name(folder.name + ".sqlite"))
    missing = PAYMENTS - books.total()
    seen: list[bool] = []  # whether they were new
    finished = threading.Event()

    def listen(
        messages: tuple[MessageExt, ...], context: ConsumeConcurrentlyContext
    ) -> ConsumeConcurrentlyStatus:
        seen.extend(books.book(m.msg_id, int(m.body), die_after) for m in messages)
        if seen.count(True) == missing:
            finished.set()
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS

    consumer = PushConsumer.open(folder, "accounting")
    consumer.subscribe("Payments")
    consumer.register_message_listener(listen)
    with consumer:
        finished.wait(30)
    repeats = "some" if False in seen else "no"
    print(f"second worker: {seen.count(True)} new messages and {repeats} repeats")
    print(f"booked: {books.total()}")


def main(folder: Path) -> None:
    """Send the payments, then let two workers consume them, one after the other."""
    with (
        EmbeddedBroker.open(folder, store_config=SMALL_STORE, create=True) as broker,
        Producer("shop", brokers=[broker]) as producer,
    ):
        for _ in range(PAYMENTS):
            producer.send(Message("Payments", b"1"))
    print(f"sent: {PAYMENTS}", flush=True)
    for die_after in (40, 0):
        command = [sys.executable, __file__, str(folder), str(die_after)]
        if subprocess.run(command, check=False).returncode == -signal.SIGKILL:
            print(f"first worker: killed when it had booked {die_after}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(Path(sys.argv[1]), int(sys.argv[2]))
    else:
        main(Path(sys.argv[1]))
