"""Stores that the compiled forms have written hold the bytes that the pure ones write."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.errors import InvalidMessageError
from storage.format.encode import MessageInner, prepare
from storage.store import MessageStore
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.crash import fast_folder
from tests.support.inner_messages import inner_messages, ipv4_hosts, ipv6_hosts
from tests.support.samples import START_MS, TINY

CONFIG = TINY.with_(mapped_file_size_consume_queue=20 * 10, max_index_num=40)
PLAIN = MessageInner("T", 0, b"body", b"KEYS\x01k", START_MS, bytes(8), bytes(8), keys=("k",))
STRANGE = (
    PLAIN._replace(topic="t" * 128),
    PLAIN._replace(topic=""),
    PLAIN._replace(properties=bytes(32768)),
    PLAIN._replace(keys=("\ud83d", "\U0001f600", "")),  # half a pair is no UTF-8
    PLAIN._replace(tags="\ud83d"),
    PLAIN._replace(tags=""),
    PLAIN._replace(body=b"x" * 3000),
    PLAIN._replace(body=bytes(5000)),  # no file holds it
    PLAIN._replace(queue_id=True),  # whose folder is not that of 1
    PLAIN._replace(keys=("k" * 300,)),
)
messages = st.one_of(
    st.just(PLAIN),
    st.builds(lambda body, queue_id: PLAIN._replace(body=body, queue_id=queue_id),
              st.binary(max_size=100), st.integers(0, 2)),
    inner_messages(),
    inner_messages(ipv4_hosts | ipv6_hosts),
    st.sampled_from(STRANGE),
)  # fmt: skip
puts = st.lists(
    messages.map(lambda m: [m]) | st.lists(messages, min_size=2, max_size=6), max_size=30
)


@pytest.mark.slow
@needs_compiled
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(puts=puts, exclusive=st.booleans(), before=st.integers(0, 4))
def test_any_puts_leave_the_same_bytes_and_say_the_same(
    puts: list[list[MessageInner]],
    exclusive: bool,
    before: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    puts = [[PLAIN]] * before + puts
    found = []
    with fast_folder() as folder:
        for form in (compiled, None):
            monkeypatch.setattr(native, "compiled", form)
            found.append(outcome(folder / str(form is None), puts, exclusive=exclusive))
    assert found[0][0] == found[1][0]
    assert found[0][1] == found[1][1]


def outcome(
    root: Path, puts: list[list[MessageInner]], *, exclusive: bool
) -> tuple[list[object], dict[str, bytes]]:
    """What each put said, and the bytes of all files."""
    MessageStore.create(root, CONFIG)
    said: list[object] = []
    with MessageStore.open(root, CONFIG, exclusive=exclusive, clock=lambda: START_MS) as store:
        for several in puts:
            try:
                if len(several) == 1:
                    result = store.put_message(several[0])
                else:
                    result = store.put(prepare(several))
            except (InvalidMessageError, UnicodeEncodeError) as error:
                said.append(type(error))
                continue
            said.append(
                (result.status, [*result.commitlog_offsets], [*result.queue_offsets], result[3:])
            )
    files = {}
    for name in ("commitlog", "consumequeue", "index"):
        for number, path in enumerate(sorted((root / name).rglob("*"))):
            if path.is_file():
                # an index file's name is the time it was made
                files[f"{name} {number if name == 'index' else path.relative_to(root)}"] = (
                    path.read_bytes()
                )
    return said, files
