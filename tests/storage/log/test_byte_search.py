"""Records are found by bytes that they hold, damage or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from storage.detect import detect_config
from storage.files.read_files import ReadOnlyFiles, StoreFiles
from storage.log.byte_search import find_in_log
from tests.support import golden

Row = dict[str, Any]


def log_of(root: Path) -> ReadOnlyFiles:
    return StoreFiles(root, detect_config(root)).log


def end_of(name: str) -> int:
    end: int = golden.manifest(name)["maxPhyOffset"]
    return end


@pytest.mark.parametrize("name", ["small-files-4.9", "unclean-4.9", "ipv6-4.9"])
def test_every_unique_id_leads_to_its_records(name: str) -> None:
    log = log_of(golden.store(name))
    places: dict[str, set[int]] = {}
    for row in golden.manifest(name)["messages"]:
        unique = (row.get("properties") or {}).get("UNIQ_KEY")
        if unique:
            places.setdefault(unique, set()).add(row["commitLogOffset"])
    for unique, expected in list(places.items())[::17]:
        found = list(find_in_log(log, 0, end_of(name), unique.encode()))
        assert expected <= set(found)
        assert found == sorted(found)


def test_each_record_is_given_once_however_often_it_holds_the_bytes() -> None:
    name = "small-files-4.9"
    log = log_of(golden.store(name))
    found = list(find_in_log(log, 0, end_of(name), b"Golden"))
    known = {row["commitLogOffset"] for row in golden.manifest(name)["messages"]}
    assert len(found) == len(set(found))
    assert known <= set(found)


def test_only_records_between_the_two_offsets_are_looked_at() -> None:
    name = "small-files-4.9"
    log = log_of(golden.store(name))
    everything = list(find_in_log(log, 0, end_of(name), b"Golden"))
    start, end = everything[10], everything[20]
    assert list(find_in_log(log, start, end, b"Golden")) == everything[10:20]


def test_damage_is_passed_and_progress_tells_of_all_bytes() -> None:
    name = "torn-bad-crc-middle-4.9"
    log = log_of(golden.store(name))
    seen: list[int] = []
    found = list(find_in_log(log, 0, end_of(name), b"UNIQ_KEY", seen.append))
    assert {row["commitLogOffset"] for row in golden.manifest(name)["messages"]} <= set(found)
    assert sum(seen) == end_of(name)
