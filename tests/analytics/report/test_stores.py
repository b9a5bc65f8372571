"""The stores of a report, and the errors of malformed lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from analytics.errors import ManifestError, NoSuchStoreError
from analytics.report.stores import StoreRef, find_stores


def test_folders_are_called_after_themselves_or_the_one_above(tmp_path: Path) -> None:
    a, b = tmp_path / "broker-a" / "store", tmp_path / "old copy"
    assert find_stores([str(a), str(b), str(a)]) == [
        StoreRef("broker-a", str(a)),
        StoreRef("old copy", str(b)),
    ]


def test_names_that_are_ambiguous_are_whole_paths(tmp_path: Path) -> None:
    a, b = tmp_path / "x/b/store", tmp_path / "y/b/store"
    assert [ref.broker for ref in find_stores([str(a), str(b)])] == [str(a), str(b)]


def test_patterns_match_folders_only(tmp_path: Path) -> None:
    for name in ("b2", "b1"):
        (tmp_path / name / "store").mkdir(parents=True)
    (tmp_path / "b3").mkdir()
    (tmp_path / "b3/store").write_text("")
    found = find_stores([f"{tmp_path}/*/store"])
    assert [ref.broker for ref in found] == ["b1", "b2"]
    with pytest.raises(NoSuchStoreError, match=r"no folder matches .*nothing"):
        find_stores([f"{tmp_path}/nothing*"])


def test_a_list_names_brokers_and_paths_are_relative_to_it(tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text("broker-a: disks/a\nbroker-b: /data/b\n# more\n'7': c\n")
    assert find_stores([str(path)]) == [
        StoreRef("broker-a", str(tmp_path / "disks/a")),
        StoreRef("broker-b", "/data/b"),
        StoreRef("7", str(tmp_path / "c")),
    ]
    assert find_stores(["/data/b", str(path)])[0] == StoreRef("broker-b", "/data/b")
    with pytest.raises(NoSuchStoreError):
        find_stores([str(tmp_path / "missing.yml")])


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "to map names"),
        ("- a\n- b\n", 1, "to map names"),
        ("a: x\n\nb:\n  c: d\n", 4, "the folder of b"),
        ("a: x\nb:\n", 2, "the folder of b"),
        ("a: x\na: y\n", 2, "a is named twice"),
        ("a: x\nb: [\n", 3, "expected"),
        ("a: x\n? [q]\n: y\n", 2, "the name of a broker"),
    ],
)
def test_a_malformed_list_says_where(text: str, line: int, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=rf"line {line}: .*{reason}"):
        find_stores([str(path)])
