"""What C has written down of the shared page and of Python's modules is what those say."""

from __future__ import annotations

from storage.files.fs import WORD
from storage.sharing import bells, gate, page
from storage.sharing.page import Word
from storage.store import LARGE_BODY
from storage.writing import append_batch
from tests.support.compiled import compiled, needs_compiled


@needs_compiled
def test_numbers_that_stand_twice_are_the_same() -> None:
    expected = {**vars(page), **vars(Word), "WORD": WORD, "LARGE_BODY": LARGE_BODY}
    expected |= {"GATE_BYTE": gate.GATE_BYTE, "TOPIC_BITS": bells.TOPIC_BITS}
    expected |= {"QUICK_GAP_US": round(gate._QUICK_GAP * 1e6)}
    expected |= {"BY_SOCKET": bells.BY_SOCKET, "BY_WORD": bells.BY_WORD}
    expected |= {f"BATCH{name}": number for name, number in vars(append_batch).items()}
    found = compiled.appending_numbers()
    assert len(found) == 33
    assert found == {name: expected[name] for name in found}
