"""RocketMQ 4.9.7 opens what ``store repair`` made of damaged stores, and serves the same messages.

Two differences: rmqctl passes over a replaced record, of which Java delivers the zeros; and a
message that says that its body is packed, though it is not, stays as it is (fsck names it): rmqctl
delivers its stored bytes, a client of Java drops it.
"""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from storage.detect import detect_config
from storage.format.cq_unit import PRE_BLANK_SIZE
from storage.format.sys_flag import MessageSysFlag
from storage.format.tombstone import REPLACED_FLAG
from storage.readonly import StoreView
from storage.tools.fsck import fsck
from storage.tools.fsck.findings import Code
from tests.interop.store_probe import Settings, StoreProbe
from tests.support import golden
from tests.support.damages import NotHere, kinds
from tests.support.mended import damage_and_repair, held

pytestmark = [
    pytest.mark.interop,
    # Some damages take the log's last file away, and damaged stores are read before the repair.
    pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning"),
]

SHORT = (
    "log: a file in the middle missing",
    "log: the last file missing",
    "log: two files swapped",
    "log: a page zeroed",
    "log: a bit of a body",
    "queue: two files swapped",
)
LOG_KINDS = sorted(
    kind
    for kind in kinds()
    if kind.startswith(("log", "queue", "index"))
    and "foreign file" not in kind  # which stays; 4.9 refuses some of them
)


def settings_of(root: Path) -> Settings:
    config = detect_config(root)
    return {
        "mappedFileSizeCommitLog": config.mapped_file_size_commit_log,
        "mappedFileSizeConsumeQueue": config.mapped_file_size_consume_queue,
        "maxHashSlotNum": config.max_hash_slot_num,
        "maxIndexNum": config.max_index_num,
    }


def disagreements(root: Path, probe: StoreProbe) -> list[str]:
    """What Java does not serve as we do; it has the store open meanwhile, and appends to it."""
    messages = held(root)
    ours = {place: hashlib.sha256(message.body).hexdigest() for place, message in messages.items()}
    with StoreView.open(root) as view:
        end = view.log_max_offset()
    with probe.opened(root, settings_of(root)) as java:
        dump = java.dump()
        problems = (
            [] if java.max_phy_offset == end else [f"ends at {java.max_phy_offset}, not {end}"]
        )
    problems += [f"foreign: {row}" for row in dump["foreign"] if not _is_past_a_gap(row)]
    theirs: dict[Any, str] = {}
    for row in dump["messages"]:
        place = (row["topic"], row["queueId"], row["queueOffset"])
        if row["sysFlag"] & REPLACED_FLAG:
            zeros = hashlib.sha256(bytes(row["storedBodyLength"])).hexdigest()
            if row["bodySha256"] != zeros or place in ours:
                problems.append(f"replaced: {row}")
        else:
            theirs[place] = row["bodySha256"]
            packed = row["sysFlag"] & MessageSysFlag.COMPRESSED_FLAG
            if place in ours and not packed and ours[place] != row["bodySha256"]:
                problems.append(f"another body: {place}")
    dropped = {(row["topic"], row["queueId"], row["queueOffset"]) for row in dump["unreadable"]}
    as_sent = unreadable_bodies(root)
    problems += [
        f"only we have {place}"
        for place, message in messages.items()
        if place not in theirs and not (place in dropped and message.commitlog_offset in as_sent)
    ]
    problems += [f"only Java has {place}" for place in theirs if place not in ours]
    return problems


def unreadable_bodies(root: Path) -> set[int]:
    """Log offsets of the messages whose bodies cannot be unpacked, as fsck names them."""
    with StoreView.open(root) as view:
        return {
            int(Path(finding.file).name) + (finding.position or 0)
            for finding in fsck(view).findings
            if finding.code is Code.BODY_UNREADABLE
        }


def _is_past_a_gap(row: dict[str, Any]) -> bool:
    """Whether Java was asked for a lost message, found a filler, and gave the next one."""
    place = (row["inTopic"], row["inQueueId"])
    return (
        row["unit"][1] == PRE_BLANK_SIZE
        and place == (row["topic"], row["queueId"])
        and row["inQueueOffset"] < row["queueOffset"]
    )


def _all_kinds(
    name: str, wanted: list[str] | tuple[str, ...], probe: StoreProbe, folder: Path
) -> dict[str, list[str]]:
    problems = {}
    done = 0
    for kind in wanted:
        try:
            root, damaged, _ = damage_and_repair(golden.store(name), kind, folder)
        except NotHere:
            continue
        if damaged.why_unseen:  # so it was not repaired
            continue
        done += 1
        if found := disagreements(root, probe):
            problems[kind] = found[:3]
    assert done
    return problems


@pytest.mark.slow
def test_java_serves_a_repaired_store_as_we_do(probe49: StoreProbe, tmp_path: Path) -> None:
    assert _all_kinds("small-files-4.9", SHORT, probe49, tmp_path) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", ["small-files-4.9", "transaction-4.9", "unclean-4.9"])
def test_java_serves_many_stores_after_any_damage(
    name: str, probe49: StoreProbe, tmp_path: Path
) -> None:
    assert _all_kinds(name, LOG_KINDS, probe49, tmp_path) == {}
