"""A lock between processes that ends its waits."""

from __future__ import annotations

import os
import threading
import time

import pytest

from storage.coordination.locks import ProcessLock
from storage.errors import WriteLockTimeoutError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.lock"


def test_a_wait_ends_and_names_the_holder(path):
    with (
        ProcessLock(path).held(),
        pytest.raises(WriteLockTimeoutError, match=f"some.lock, held by process {os.getpid()}"),
        ProcessLock(path, 0.05).held(),
    ):
        raise AssertionError
    with ProcessLock(path, 0.05).held():  # nothing of the wait is left
        pass


def test_a_wait_that_has_begun_ends_when_the_lock_hurries(path):
    lock = ProcessLock(path, 60)
    raised: list[Exception] = []

    def wait() -> None:
        try:
            with lock.held():
                pass
        except WriteLockTimeoutError as error:
            raised.append(error)

    with ProcessLock(path).held():
        thread = threading.Thread(target=wait)
        thread.start()
        lock.hurry(0.6)
        thread.join(10)
        assert len(raised) == 1
    with lock.held():  # a free one is taken all the same
        pass


def test_those_who_wait_get_it_one_after_the_other(path):
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        for _ in range(20):
            with ProcessLock(path).held():
                inside.append(1)
                most.append(len(inside))
                time.sleep(0)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(most) == 160
    assert max(most) == 1
