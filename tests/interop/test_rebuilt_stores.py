"""RocketMQ 4.9.7 opens stores whose queues and index were all rebuilt, and answers the same."""

from pathlib import Path

import pytest

from storage.format.names import CONSUMEQUEUE, INDEX
from tests.interop.store_probe import Settings, StoreProbe
from tests.support import golden
from tests.support.killed_rebuild import rebuild_all

pytestmark = pytest.mark.interop

SETTINGS: dict[str, Settings] = {
    "small-files-4.9": {
        "mappedFileSizeCommitLog": 65536,
        "mappedFileSizeConsumeQueue": 800,
        "maxHashSlotNum": 100,
        "maxIndexNum": 400,
    },
    "retention-4.9": {
        "mappedFileSizeCommitLog": 65536,
        "mappedFileSizeConsumeQueue": 1200,
        "maxHashSlotNum": 100,
        "maxIndexNum": 400,
    },
}


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_a_java_store_serves_rebuilt_queues_and_index(
    name: str, probe49: StoreProbe, tmp_path: Path
) -> None:
    root = golden.extract(name, tmp_path)
    for path in sorted((root / CONSUMEQUEUE).rglob("*")):
        if path.is_file() and path.parts[-3] != "GoldenIdle":  # the log has nothing of it
            with path.open("r+b") as file:
                file.write(b"\x01" * 40)
    for path in (root / INDEX).iterdir():
        with path.open("r+b") as file:
            file.seek(40)
            file.write(b"\x01" * 60)
    rebuild_all(root)
    manifest = golden.manifest(name)
    with probe49.opened(root, SETTINGS[name]) as java:
        dump = java.dump()
        answers = java.query_by_key(manifest["queryByKey"])
    places = {(row["topic"], row["queueId"], row["queueOffset"]) for row in dump["messages"]}
    expected = {(r["topic"], r["queueId"], r["queueOffset"]) for r in manifest["messages"]}
    assert places == expected
    assert len(dump["foreign"]) == len(manifest.get("foreign", []))
    assert [row["commitLogOffsets"] for row in answers] == [
        row["commitLogOffsets"] for row in manifest["queryByKey"]
    ]
