"""What C has written down of the shared page and of Python's modules is what those say."""

from __future__ import annotations

from storage.append import fast_append_batch
from storage.coordination import shared_state, wakeup, write_lock
from storage.coordination.shared_state import Word
from storage.files.fs import WORD
from storage.store import LARGE_BODY
from tests.support.compiled import compiled, needs_compiled


@needs_compiled
def test_numbers_that_stand_twice_are_the_same() -> None:
    expected = {**vars(shared_state), **vars(Word), "WORD": WORD, "LARGE_BODY": LARGE_BODY}
    expected |= {"WRITE_LOCK_BYTE": write_lock.WRITE_LOCK_BYTE, "TOPIC_BITS": wakeup.TOPIC_BITS}
    expected |= {"QUICK_GAP_US": round(write_lock._QUICK_GAP * 1e6)}
    expected |= {"BY_SOCKET": wakeup.BY_SOCKET, "BY_WORD": wakeup.BY_WORD}
    expected |= {f"BATCH{name}": number for name, number in vars(fast_append_batch).items()}
    found = compiled.appending_numbers()
    assert len(found) == 33
    assert found == {name: expected[name] for name in found}
