"""``store dump --as hex``: every byte once, with the name of its field."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import golden
from tests.support.cli import run
from tests.support.copies import copy_store


def dump(root: Path, what: object, code: int = 0) -> list[dict[str, Any]]:
    result = run("-S", root, "store", "dump", what, "--as", "hex", "-o", "json")
    assert result.code == code, result.err
    rows: list[dict[str, Any]] = result.json()
    return rows


def bytes_of(rows: list[dict[str, Any]]) -> bytes:
    return b"".join(
        bytes(row["size"]) if row["bytes"] == "00 ..." else bytes.fromhex(row["bytes"])
        for row in rows
    )


def put_together(rows: list[dict[str, Any]], field: str) -> bytes:
    return bytes_of([row for row in rows if row["field"] == field])


@pytest.mark.feature(116)
@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("small-files-4.9", "commitlog/*"),
        ("torn-bad-crc-middle-5.3", "commitlog/*98304"),
        ("small-files-4.9", "consumequeue/GoldenTiny/0/*"),
        ("retention-4.9", "consumequeue/*/0/*"),
        ("cqext-4.9", "consumequeue_ext/*/*/*"),
        ("small-files-4.9", "index/*"),
        ("small-files-4.9", "checkpoint"),
        ("small-files-4.9", "config/*.json"),
    ],
)
@pytest.mark.slow
def test_each_byte_of_a_file_comes_once_in_order(name: str, pattern: str) -> None:
    root = golden.store(name)
    paths = sorted(root.glob(pattern))[:3]
    assert paths
    for path in paths:
        rows = dump(root, path)
        assert bytes_of(rows) == path.read_bytes()
        at = int(path.name) if pattern.startswith("commitlog") else 0
        for row in rows:
            assert row["position"] == at
            at += row["size"]


@pytest.mark.parametrize("name", ["ipv6-4.9", "retry-dlq-5.3"])  # IPv6 hosts; version 2 records
def test_the_fields_of_a_record_are_those_that_rocketmq_tells(name: str) -> None:
    root = golden.store(name)
    messages = golden.manifest(name)["messages"]
    longest = max(messages, key=lambda row: len(row["topic"]))
    for message in [*messages[:6], longest]:
        rows = dump(root, message["commitLogOffset"])
        values = {row["field"]: row["value"] for row in rows}
        assert put_together(rows, "topic").decode() == message["topic"]
        assert int(values["queueOffset"]) == message["queueOffset"]
        assert values["storeTimestamp"].startswith(str(message["storeTimestamp"]))
        assert len(put_together(rows, "body")) == message["storedBodyLength"]
        assert sum(row["size"] for row in rows) == int(values["totalSize"])
        assert None not in values


def test_the_bytes_of_a_damaged_record_are_shown_too(tmp_path: Path) -> None:
    root = copy_store(golden.store("small-files-4.9"), tmp_path / "s")
    with (root / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.seek(84)
        file.write(b"\x7f\xff\xff\xff")  # the length of the body
    rows = dump(root, 0, code=4)
    assert sum(row["size"] for row in rows) == 220
    assert [row["value"] for row in rows if row["field"] == "bodyLen"] == ["2147483647"]
    assert rows[-1]["field"] is None


def test_only_known_forms_are_taken() -> None:
    result = run("-S", golden.store("small-files-4.9"), "store", "dump", "0", "--as", "xml")
    assert (result.code, "neither fields nor hex" in result.err) == (2, True)
