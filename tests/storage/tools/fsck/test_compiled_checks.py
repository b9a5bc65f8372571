"""A check finds the same with compiled forms and without, whatever is damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from storage.readonly import StoreView
from storage.tools.fsck import Report, fsck
from tests.support.compiled import compiled, native, needs_compiled
from tests.support.examples import examples
from tests.support.hand_made import TINY, HandMade

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=400)

MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(["T", "U"]),
        st.integers(0, 1),
        st.sampled_from([None, "tag", "\u6807"]),
        st.lists(st.sampled_from(["k", "l m", "\u00e9"]), max_size=2),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=25,
)
DAMAGE = st.lists(
    st.tuples(
        st.sampled_from(["commitlog", "consumequeue", "index"]), st.floats(0, 1), st.binary()
    ),
    max_size=3,
)


@pytest.mark.slow
@needs_compiled
@pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")  # units lead anywhere
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(messages=MESSAGES, damage=DAMAGE)
def test_reports_are_the_same(
    messages: list[tuple[str, int, str | None, list[str], int]],
    damage: list[tuple[str, float, bytes]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("checked") / "store"
    made = HandMade(CONFIG)
    for topic, queue_id, tags, keys, version in messages:
        made.put(topic, queue_id, tags=tags, keys=keys, version=version)
    made.write(root)
    for folder, place, data in damage:
        files = sorted(path for path in (root / folder).rglob("*") if path.is_file())
        if files:
            overwrite(files[len(data) % len(files)], place, data)
    assert report_by(compiled, root) == report_by(None, root)


def overwrite(path: Path, place: float, data: bytes) -> None:
    """Put bytes somewhere in what is not zero of a file."""
    whole = path.read_bytes()
    used = len(whole.rstrip(b"\0"))
    with path.open("r+b") as file:
        file.seek(int(place * used))
        file.write(data[: len(whole) - file.tell()])


def report_by(form: Any, root: Path) -> Report:
    before, native.compiled = native.compiled, form
    try:
        with StoreView.open(root, CONFIG) as view:
            return fsck(view)
    finally:
        native.compiled = before
