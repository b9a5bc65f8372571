"""Ctrl-C while the program looks whether Spark's JVM runs."""

from __future__ import annotations

import threading
from pathlib import Path

from analytics.spark.launch import SparkJvm

PATIENCE_S = 20


def test_an_interrupt_within_a_look_at_the_jvm_does_not_keep_the_session_from_ending(
    tmp_path: Path,
) -> None:
    """Popen.poll() takes a lock; an interrupt right after that never gives it back."""
    submit = tmp_path / "submit"
    submit.write_text("#!/bin/sh\nexec sleep 1000\n", "utf-8")
    submit.chmod(0o755)
    with (tmp_path / "log").open("wb") as output:
        jvm = SparkJvm(submit, {}, tmp_path, output)
        lock = jvm._process._waitpid_lock  # type: ignore[attr-defined]
        assert lock.acquire(blocking=False)
        ending = threading.Thread(target=jvm.end, kwargs={"at_once": True}, daemon=True)
        ending.start()
        ending.join(PATIENCE_S)
        assert not ending.is_alive()
        lock.release()
        assert jvm._process.wait(PATIENCE_S) < 0
