"""fsck of every store that real brokers wrote, and of those that were damaged by hand."""

from __future__ import annotations

import pytest

from storage.readonly import StoreView
from storage.tools.fsck import Code, Finding, Part, Report, Severity, fsck
from storage.tools.fsck.findings import AS_SENT
from tests.support import golden

TORN_TAIL = {Code.LOG_TORN_TAIL}

# What is wrong with a store; all others have neither an error nor a warning.
EXPECTED = {
    "hole-4.9": {Code.QUEUE_FILE_MISSING},
    "phantom-4.9": {Code.QUEUE_FILE_EMPTY},
    "torn-bad-crc-last-4.9": TORN_TAIL,
    "torn-bad-crc-middle-4.9": {Code.RECORD_DAMAGED},
    "torn-bad-crc-middle-5.3": {Code.RECORD_DAMAGED},
    "ipv6-4.9": {Code.BODY_EMPTY},
    "torn-bad-properties-4.9": {Code.PROPERTIES_DAMAGED},
    "torn-clean-bad-crc-last-4.9": TORN_TAIL,
    "torn-clean-queue-missing-4.9": {Code.UNIT_MISSING},
    "torn-clean-queue-missing-5.3": {Code.UNIT_MISSING},
    "torn-cq-all-missing-4.9": {Code.UNIT_MISSING},
    "torn-cq-file-missing-4.9": {Code.UNIT_MISSING},
    "torn-cq-file-missing-5.3": {Code.UNIT_MISSING},
    "torn-cq-past-end-4.9": {Code.LOG_TAIL_LOST},
    "torn-half-record-4.9": TORN_TAIL,
    "torn-half-record-5.3": TORN_TAIL,
    "torn-no-blank-4.9": {Code.BLANK_MISSING},
    "torn-no-checkpoint-4.9": {Code.CHECKPOINT_MISSING},
    "torn-no-index-4.9": {Code.INDEX_KEY_MISSING},
}
WITH_ERRORS = {
    "torn-bad-crc-middle-4.9",
    "torn-bad-crc-middle-5.3",
    "torn-bad-properties-4.9",
    "torn-clean-bad-crc-last-4.9",
    "hole-4.9",
    "torn-clean-queue-missing-4.9",
    "torn-clean-queue-missing-5.3",
}


def check(name: str) -> Report:
    with StoreView.open(golden.store(name)) as view:
        return fsck(view)


@pytest.mark.feature(111, 112)
@pytest.mark.parametrize("name", golden.names())
def test_what_is_wrong_is_found_and_nothing_else(name: str) -> None:
    report = check(name)
    found = {f.code for f in report.findings if f.severity is not Severity.INFO}
    assert found == EXPECTED.get(name, set()), report.findings
    assert report.ok == (name not in WITH_ERRORS)
    assert report.healthy == (EXPECTED.get(name, set()) <= AS_SENT)
    for finding in report.findings:
        assert finding.what
        assert finding.effect
        assert not finding.file.startswith("/")


@pytest.mark.parametrize("name", sorted(set(golden.names()) - set(EXPECTED)))
def test_everything_is_looked_at(name: str) -> None:
    manifest = golden.manifest(name)
    checked = check(name).checked
    distinct = {row["commitLogOffset"] for row in manifest["messages"]}
    assert checked.records == len(distinct)
    light = [row for row in manifest.get("foreign", []) if "LMQ" in row["inTopic"]]
    assert checked.units == len(manifest["messages"]) + len(light)
    assert checked.index_entries > 0


@pytest.mark.parametrize(
    ("name", "file", "position"),
    [
        ("torn-bad-crc-middle-4.9", "commitlog/00000000000000098304", 4060),
        ("torn-bad-properties-4.9", "commitlog/00000000000000098304", 10300),
        ("torn-half-record-4.9", "commitlog/00000000000000098304", 10300),
        ("torn-no-blank-4.9", "commitlog/00000000000000049152", 16217),
        ("torn-cq-file-missing-4.9", "consumequeue/GoldenLoadC/3/00000000000000000400", 0),
        ("hole-4.9", "consumequeue/GoldenTiny/0/00000000000000000800", 0),
    ],
)
def test_a_finding_names_file_and_byte(name: str, file: str, position: int) -> None:
    places = {(f.file, f.position) for f in check(name).findings}
    assert (file, position) in places


def test_parts_can_be_checked_by_themselves() -> None:
    expected = {
        Part.LOG: {Code.LOG_TORN_TAIL},
        Part.QUEUE: {Code.UNIT_BEHIND_END},
        Part.INDEX: {Code.INDEX_BEHIND_END},
        Part.OFFSET: set(),
        Part.CONFIG: set(),
    }
    with StoreView.open(golden.store("torn-half-record-4.9")) as view:
        for part, codes in expected.items():
            report = fsck(view, only=[part])
            assert {f.code for f in report.findings if f.severity is not Severity.INFO} == codes


def test_queues_and_index_can_be_limited_to_topics() -> None:
    with StoreView.open(golden.store("torn-cq-all-missing-4.9")) as view:
        report = fsck(view, topics=["GoldenLoadB"])
    files = {f.file for f in report.findings if f.code is Code.UNIT_MISSING}
    assert len(files) == 2
    assert all("GoldenLoadB" in file for file in files)


def test_a_check_can_begin_in_the_middle() -> None:
    with StoreView.open(golden.store("small-files-4.9")) as view:
        whole = fsck(view)
        later = fsck(view, start=200_000)
    assert later.healthy
    assert later.log_end == whole.log_end == view.log_max_offset()
    manifest = golden.manifest("small-files-4.9")["messages"]
    past_end = {row["commitLogOffset"] for row in manifest if row["commitLogOffset"] >= 196_608}
    assert later.checked.records == len(past_end)


def test_progress_and_findings_are_told_as_they_come() -> None:
    steps: list[tuple[int, int]] = []
    found: list[Finding] = []
    with StoreView.open(golden.store("torn-cq-all-missing-4.9")) as view:
        report = fsck(
            view,
            max_findings=2,
            progress=lambda *step: steps.append(step),
            on_finding=found.append,
        )
    assert len(report.findings) == 2
    assert report.left_out == len(found) - 2
    assert report.warnings == 7
    assert steps[-1] == (108993, 108993)
    assert steps == sorted(steps)


def test_the_report_has_the_keys_of_the_command_line() -> None:
    shown = check("torn-half-record-4.9").as_dict()
    assert list(shown) == ["ok", "checked", "findings"]
    assert list(shown["checked"]) == ["records", "units", "index_entries", "offsets", "files"]
    keys = ["code", "severity", "file", "position", "what", "effect", "fix"]
    assert all(list(finding) == keys for finding in shown["findings"])
