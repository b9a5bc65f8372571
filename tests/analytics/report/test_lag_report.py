"""The report agrees with a plain loop over the records.

engines/test_engines.py compares the engines.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from analytics.engines.local import LocalEngine
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.lag.selection import Choice
from analytics.report import scan as survey_module
from analytics.report.lag_report import lag_report
from analytics.report.report import Report
from analytics.report.stores import StoreRef
from storage.configs.consumer_offsets import topic_at_group
from tests.support import golden, golden_samples
from tests.support.examples import examples
from tests.support.hand_made import START_MS, TINY, HandMade
from tests.support.lag_oracle import Counts, counted

NOW = START_MS + 10_000_000
ALL = Choice()


def report(*roots: Path, exact: bool = False, choice: Choice = ALL, as_of: int = NOW) -> Report:
    refs = [StoreRef(f"broker-{number}", str(root)) for number, root in enumerate(roots)]
    made = lag_report(LocalEngine(), refs, as_of, choice, exact=exact)
    assert not made.unreadable
    return made.report


def counts(found: Report, name: str, key: str | None) -> Counts:
    rows = getattr(found, name)
    return {
        (row["group"], row["topic"], *([row[key]] if key else [])): [row["messages"], row["bytes"]]
        for row in rows
    }


def check(found: Report, root: Path) -> None:
    wanted = counted(root)
    assert counts(found, "minutes", "minute_timestamp") == wanted["minutes"]
    assert counts(found, "hours", "hour_timestamp") == wanted["hours"]
    assert counts(found, "tags", "tag") == wanted["tags"]
    by_age: dict[tuple[str, str], int] = {}
    for row in found.ages:
        place = (row["group"], row["topic"])
        by_age[place] = by_age.get(place, 0) + row["messages"]
    for row in found.groups:
        place = (row["group"], row["topic"])
        messages, size = wanted["groups"].get(place, [0, 0])
        assert (row["lag"] or 0) - (row["lost"] or 0) == messages
        if any(key[:2] == place and key[2] is None for key in wanted["minutes"]):
            assert row["lag_bytes"] is None  # some units are gone
        else:
            assert (row["lag_bytes"] or 0) == size
            assert by_age.get(place, 0) == messages


@golden_samples.SOME
def test_golden_stores(name: str) -> None:
    root = golden.store(name)
    check(report(root), root)


QUEUES = st.lists(
    st.tuples(
        st.sampled_from((0, 1, 30_000, 61_000, 3_600_000)),
        st.sampled_from("TU"),
        st.integers(0, 1),
        st.sampled_from((None, "a", "b")),
        st.sampled_from((0, 0x10, 0x20, 0x30)),
        st.sampled_from((1, 2)),
    ),
    min_size=1,
    max_size=50,
)
OFFSETS = st.dictionaries(
    st.tuples(st.sampled_from(("g", "h", "i")), st.sampled_from("TUX"), st.integers(0, 2)),
    st.integers(0, 30),
    max_size=9,
)


@pytest.mark.slow
@settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    deadline=None,
)
@given(messages=QUEUES, offsets=OFFSETS, deleted=st.booleans(), exact=st.booleans())
def test_stores_of_all_kinds(
    messages: list[tuple[int, str, int, str | None, int, int]],
    offsets: dict[tuple[str, str, int], int],
    deleted: bool,
    exact: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    root = tmp_path_factory.mktemp("report") / "store"
    root.mkdir()
    store = HandMade(TINY)
    for step_ms, topic, queue_id, tag, sys_flag, version in messages:
        store.put(topic, queue_id, tags=tag, step_ms=step_ms, sys_flag=sys_flag, version=version)
    store.write(root)
    first = root / "commitlog" / f"{0:020}"
    if deleted and (root / "commitlog" / f"{1024:020}").exists():
        first.unlink()
    write_offsets(root, offsets)
    with pytest.MonkeyPatch.context() as patch:
        # So that the order of store times is relied on where a store is as small as these.
        patch.setattr(survey_module, "EACH_TIME_UP_TO", -1)
        patch.setattr(survey_module, "EACH_TAG_UP_TO", -1)
        check(report(root, exact=exact), root)


def write_offsets(root: Path, offsets: dict[tuple[str, str, int], int]) -> None:
    table: dict[str, dict[str, int]] = {}
    for (group, topic, queue_id), offset in offsets.items():
        table.setdefault(topic_at_group(topic, group), {})[str(queue_id)] = offset
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))


def small(root: Path, count: int, *, step_ms: int = 1000) -> HandMade:
    root.mkdir()
    store = HandMade(TINY)
    for number in range(count):
        store.put("T", number % 2, tags="ab"[number % 2], step_ms=step_ms)
    store.write(root)
    return store


def test_groups_are_merged_over_brokers(tmp_path: Path) -> None:
    for name, count in (("a", 30), ("b", 10)):
        small(tmp_path / name, count, step_ms=999 if name == "a" else 1_001)
        write_offsets(tmp_path / name, {("g", "T", 0): 3, ("g", "T", 1): 0})
    found = report(tmp_path / "a", tmp_path / "b")
    (row,) = found.groups
    assert (row["queues"], row["lag"]) == (4, 12 + 15 + 2 + 5)
    assert row["worst_queue_id"] == 1
    assert [(q["broker"], q["queue_id"], q["lag"]) for q in found.queues] == [
        ("broker-0", 0, 12),
        ("broker-0", 1, 15),
        ("broker-1", 0, 2),
        ("broker-1", 1, 5),
    ]
    assert {row["tag"]: row["messages"] for row in found.tags} == {"b": 20, "a": 14}
    assert found.totals["lag"] == 34


def test_a_copy_of_a_log_counts_once(tmp_path: Path) -> None:
    small(tmp_path / "slave", 20)
    small(tmp_path / "master", 30)
    for name in ("slave", "master"):
        write_offsets(tmp_path / name, {("g", "T", 0): 0})
    found = report(tmp_path / "slave", tmp_path / "master")
    assert [store["broker"] for store in found.stores] == ["broker-1"]
    assert found.groups[0]["lag"] == 15
    assert "broker-0: left out, it is a copy of broker-1" in found.warnings[0]


def test_what_can_not_be_read_is_named_and_left_out(tmp_path: Path) -> None:
    small(tmp_path / "a", 10)
    write_offsets(tmp_path / "a", {("g", "T", 0): 0})
    (tmp_path / "empty").mkdir()
    refs = [StoreRef("good", str(tmp_path / "a")), StoreRef("bad", str(tmp_path / "empty"))]
    made = lag_report(LocalEngine(), refs, NOW, ALL)
    assert [one.ref.broker for one in made.unreadable] == ["bad"]
    assert made.report.warnings[0].startswith("bad: not read: ")
    assert made.report.totals["lag"] == 5


def test_oddities_are_warned_of(tmp_path: Path) -> None:
    root = tmp_path / "a"
    small(root, 10)
    write_offsets(
        root, {("g", "T", 0): 99, ("h", "T", 0): 1, ("i", "gone", 0): 1, ("h", "T", 1): 5}
    )
    (root / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":3,"writeQueueNums":3,"perm":6}}}'
    )
    found = report(root)
    text = "\n".join(found.warnings)
    assert "group g is beyond the end of T in queue 0 (by 94): left out of sums" in text
    assert "group h has no progress in 1 of 3 queues of T" in text
    assert "group i: progress in gone, which does not exist" in text
    assert found.orphans == [{"broker": "broker-0", "group": "i", "topic": "gone"}]
    by_group = {row["group"]: row for row in found.groups}
    assert by_group["g"]["lag"] is None
    assert (by_group["h"]["lag"], by_group["h"]["unknown_queues"]) == (4, 1)


def test_units_that_are_gone_are_counted_without_bytes(tmp_path: Path) -> None:
    root = tmp_path / "a"
    small(root, 40)
    write_offsets(root, {("g", "T", 0): 0, ("g", "T", 1): 0})
    shutil.move(root / "consumequeue/T/0" / f"{100:020}", tmp_path / "moved")
    found = report(root)
    unknown = [row for row in found.minutes if row["minute_timestamp"] is None]
    missing = sum(row["messages"] for row in unknown)
    if missing:  # unless reading has found the units again, in the log
        assert any("have no unit in their queue" in warning for warning in found.warnings)
    assert sum(row["messages"] for row in found.minutes) == found.groups[0]["lag"] == 40


def test_only_what_was_chosen(tmp_path: Path) -> None:
    root = tmp_path / "a"
    small(root, 10)
    write_offsets(root, {("g", "T", 0): 0, ("h", "T", 0): 0, ("g", "%RETRY%g", 0): 0})
    assert [row["group"] for row in report(root).groups] == ["g", "h"]
    assert [row["group"] for row in report(root, choice=Choice(["h"])).groups] == ["h"]
    with_retry = report(root, choice=Choice(["g"], None, True))
    assert [row["topic"] for row in with_retry.groups] == ["%RETRY%g", "T"]
    assert report(root, choice=Choice(None, ["U"])).groups == []


@pytest.fixture
def depths(tmp_path: Path) -> tuple[Path, Path]:
    """A group reads T in two stores, and U in the second one; its dead letters are in the first."""
    for name, topics, letters in (("a", "T", 3), ("b", "TU", 0)):
        store = HandMade(TINY)
        for topic in topics:
            store.put(topic, 0, name.encode())
        for _ in range(letters):
            store.put("%DLQ%g", 0)
            store.put("%RETRY%g", 0)
        (tmp_path / name).mkdir()
        store.write(tmp_path / name)
        write_offsets(tmp_path / name, {("g", topic, 0): 0 for topic in topics})
    return tmp_path / "a", tmp_path / "b"


def test_depths_are_those_of_the_group_in_all_topics_and_stores(depths: tuple[Path, Path]) -> None:
    found = report(*depths)
    assert [(row["topic"], row["retry"], row["dlq"]) for row in found.groups] == [
        ("T", 3, 3),
        ("U", 3, 3),
    ]
    assert (found.totals["retry"], found.totals["dlq"]) == (3, 3)


def test_depths_are_the_same_whatever_topics_were_chosen(
    depths: tuple[Path, Path], tmp_path: Path
) -> None:
    refs = [StoreRef(root.name, str(root)) for root in depths]
    whole = lag_report(LocalEngine(), refs, NOW, ALL)
    places = [(row["group"], row["topic"]) for row in whole.report.groups]
    keep(whole.shares, NOW, tmp_path / "kept", places, None)
    kept = find_kept([str(tmp_path / "kept")], None)
    for topics, wanted in ((["U"], ("U", 3, 3)), (["T"], ("T", 3, 3))):
        choice = Choice(None, topics)
        for found in (
            report(*depths, choice=choice),
            gathered_report(LocalEngine(), kept, choice).report,
        ):
            assert [(row["topic"], row["retry"], row["dlq"]) for row in found.groups] == [wanted]
            assert (found.totals["retry"], found.totals["dlq"]) == wanted[1:]
    assert report(*depths, choice=Choice(["h"], ["U"])).groups == []


def test_retries_that_one_store_does_not_know_are_unknown_whatever_topics_were_chosen(
    depths: tuple[Path, Path],
) -> None:
    write_offsets(depths[0], {("g", "T", 0): 0, ("g", "%RETRY%g", 0): 99})
    (row,) = report(*depths, choice=Choice(None, ["U"])).groups
    assert (row["retry"], row["dlq"]) == (None, 3)
