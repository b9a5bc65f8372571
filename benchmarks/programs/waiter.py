"""Waits for messages of another process, then for nothing; prints latencies and CPU as JSON."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.workload import TOPIC
from storage.store import MessageStore


def main(root: str, count: int, idle_seconds: int) -> None:
    latencies: list[int] = []
    with MessageStore.open(root) as store:
        view = store.view
        offset = view.max_offset_in_queue(TOPIC, 0)
        end = store.log_end
        store.wait(end, 1)  # registers its waker
        print("ready", flush=True)
        while len(latencies) < count:
            found = view.get_message(TOPIC, 0, offset, 32, tags=None)
            now = time.monotonic_ns()
            for message in found.messages:
                latencies.append(now - int.from_bytes(message.body[:8], "big"))
                offset += 1
            if not found.messages:
                end = store.wait(end, 1_000, [TOPIC])
        cpu = time.process_time()
        deadline = time.monotonic() + idle_seconds
        while (left := deadline - time.monotonic()) > 0:
            end = store.wait(end, int(left * 1000) + 1, [TOPIC])
            view.get_message(TOPIC, 0, offset, 32, tags=None)
        cpu = time.process_time() - cpu
    print(json.dumps({"latencies": latencies, "cpu": cpu}))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
