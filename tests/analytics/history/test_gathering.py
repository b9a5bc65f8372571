"""Twenty brokers keep partial reports; a central run puts them together to the same report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from analytics.engines.local import LocalEngine
from analytics.engines.spark import SparkEngine
from analytics.errors import KeptError
from analytics.history.compaction import compacting, join, plan
from analytics.history.gathering import find_kept, gathered_report
from analytics.history.keeping import keep
from analytics.history.tables import ADDED, TABLES
from analytics.lag.selection import Choice
from analytics.report import lag_report as reporting, scan
from analytics.report.lag_report import MadeReport, lag_report
from analytics.report.stores import StoreRef
from analytics.spark.session import SparkSession
from storage.configs.consumer_offsets import topic_at_group
from storage.configs.offset_samples import OffsetSamples
from tests.support.cli import run
from tests.support.hand_made import START_MS, TINY, HandMade

# Broker 11 has lost its log.
pytestmark = pytest.mark.filterwarnings("ignore::storage.errors.IncompleteStoreWarning")

BROKERS = 20
MESSAGES = 120
SECOND = 1000
DELAYED = {"REAL_TOPIC": "T", "REAL_QID": "0"}
NOW = START_MS + 2 * MESSAGES * SECOND
CONFIG = TINY.with_(mapped_file_size_commit_log=1 << 14)


def made(folder: Path, number: int) -> StoreRef:
    """A store of its own kind: deleted heads, odd progress, missing units, delays, odd clocks."""
    chance = Random(number)
    store = HandMade(CONFIG)
    step_ms = 600 + number * 77
    for message in range(MESSAGES):
        topic = "SCHEDULE_TOPIC_XXXX" if chance.random() < 0.05 else chance.choice("TU")
        back = number == 7 and message % 40 == 39
        store.put(
            topic,
            chance.randrange(3),
            b"x" * chance.randrange(40),
            tags=chance.choice((None, "a", "b", "caf\u00e9")),
            properties=DELAYED if topic == "SCHEDULE_TOPIC_XXXX" else None,
            step_ms=-90_000 if back else step_ms,
        )
    root = folder / f"broker-{number:02}" / "store"
    root.mkdir(parents=True)
    store.write(root)
    table: dict[str, dict[str, int]] = {}
    for group in ("late", "shop", "<b>"):
        for topic in ("T", "U", *(["gone"] if number % 3 == 0 else [])):
            queues = {str(queue): chance.randrange(25) for queue in range(3)}
            if number == 5:
                queues["1"] = 999
            table[topic_at_group(topic, group)] = queues
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    samples = OffsetSamples(root)
    for age, before in ((170, 0), (100, 3)):
        moved = {
            key: {int(queue): max(0, at - 7 - before) for queue, at in of.items()}
            for key, of in table.items()
        }
        ends = {topic: dict.fromkeys(range(3), 9 - before) for topic in "TU"}
        samples.append(moved, ends, NOW - age * SECOND)
    if number == 9:
        next((root / "consumequeue" / "T" / "0").iterdir()).unlink()
    if number == 11:
        (root / "commitlog" / f"{0:020}").unlink()  # all it has
    return StoreRef(f"broker-{number:02}", str(root))


@pytest.fixture(scope="module")
def refs(tmp_path_factory: pytest.TempPathFactory) -> list[StoreRef]:
    folder = tmp_path_factory.mktemp("brokers")
    return [made(folder, number) for number in range(BROKERS)]


def kept(refs: list[StoreRef], folder: Path, as_of: int = NOW) -> Path:
    """Each broker's own run, in a folder of its own moment."""
    for ref in refs:
        alone = report([ref], as_of)
        places = [(row["group"], row["topic"]) for row in alone.report.groups]
        keep(alone.shares, as_of, folder, places, None)
    return folder


def report(refs: list[StoreRef], as_of: int = NOW, choice: Choice = Choice()) -> MadeReport:  # noqa: B008
    return lag_report(LocalEngine(), refs, as_of, choice)


def gathered(*folders: Path, as_of: int | None = NOW, choice: Choice = Choice()) -> MadeReport:  # noqa: B008
    found = find_kept([str(folder) for folder in folders], as_of)
    return gathered_report(LocalEngine(), found, choice, as_of)


def text(found: MadeReport) -> str:
    return json.dumps(found.report.document())


@pytest.mark.slow
def test_shares_of_twenty_brokers_give_the_report_of_their_stores(
    refs: list[StoreRef], tmp_path: Path
) -> None:
    whole = report(refs)
    assert len(whole.report.warnings) > 5
    assert any(row["rate_out"] for row in whole.report.queues)
    assert any(row["rate_in"] for row in whole.report.groups)
    assert len(whole.report.agenda) > 20
    assert whole.report.orphans
    assert text(gathered(kept(refs, tmp_path))) == text(whole)


@pytest.mark.slow
def test_many_stores_are_counted_in_rounds(
    refs: list[StoreRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report(refs)
    monkeypatch.setattr(reporting, "ROUND_BYTES", 3_000)
    told: list[tuple[int, int]] = []
    rounds = lag_report(
        LocalEngine(), refs, NOW, Choice(), progress=lambda *done: told.append(done)
    )
    assert text(rounds) == text(whole)
    assert told == sorted(told)
    (total,) = {total for _, total in told}
    assert told[-1] == (total, total)
    assert rounds.is_damaged


@pytest.mark.slow
def test_the_same_groups_and_topics_can_be_chosen(refs: list[StoreRef], tmp_path: Path) -> None:
    kept(refs, tmp_path)
    choices = (
        *(Choice(), Choice(["shop"]), Choice(None, ["U"]), Choice(["<b>"], ["T"])),
        Choice(["late"], ["gone", "T"]),
    )
    for choice in choices:
        direct, other = report(refs, choice=choice), gathered(tmp_path, choice=choice)
        assert direct.report.groups
        for name in ("groups", "queues", "tags", "minutes", "hours", "ages", "orphans"):
            assert list(getattr(direct.report, name)) == list(getattr(other.report, name)), name
        assert _of_groups(direct) == _of_groups(other)
        assert direct.is_damaged
        assert other.is_damaged


def _of_groups(made: MadeReport) -> list[str]:
    """The warnings that name groups; others are about all of a store that was read for them."""
    return [one for one in made.report.warnings if "group" in one]


@pytest.mark.slow
def test_the_newest_counts_or_what_was_kept_last_at_a_time(
    refs: list[StoreRef], tmp_path: Path
) -> None:
    later = NOW + 86_400_000
    kept(refs[:2], tmp_path)
    kept(refs[:1], tmp_path, later)
    then = report(refs[:2])
    assert text(gathered(tmp_path, as_of=NOW)) == text(then)
    newest = gathered(tmp_path, as_of=None).report
    assert newest.as_of == later
    assert newest.warnings[0] == "broker-01: what was kept of it is 86400 s old"
    assert [row["lag"] for row in newest.groups] == [row["lag"] for row in then.report.groups]
    with pytest.raises(KeptError, match="holds no kept reports"):
        gathered(tmp_path / "nowhere")


@pytest.mark.slow
def test_folders_of_several_brokers_are_one(refs: list[StoreRef], tmp_path: Path) -> None:
    folders = [kept([ref], tmp_path / ref.broker) for ref in refs[:3]]
    assert text(gathered(*folders)) == text(report(refs[:3]))


@pytest.mark.slow
def test_two_stores_of_one_broker_and_copies(refs: list[StoreRef], tmp_path: Path) -> None:
    same = [refs[0], refs[1]._replace(broker=refs[0].broker)]
    whole = report(same)
    places = [(row["group"], row["topic"]) for row in whole.report.groups]
    keep(whole.shares, NOW, tmp_path, places, None)
    assert text(gathered(tmp_path)) == text(whole)
    keep(whole.shares[:1], NOW, tmp_path, places, None)
    assert text(gathered(tmp_path)) == text(report(same[:1]))
    kept([same[0]._replace(broker="slave")], tmp_path)
    copies = gathered(tmp_path)
    assert [row["broker"] for row in copies.report.stores] == ["broker-00"]
    assert copies.report.warnings[0].startswith("slave: left out, it is a copy of broker-00")


@pytest.mark.slow
def test_a_file_that_is_no_table_is_named_and_the_rest_is_reported(
    refs: list[StoreRef], tmp_path: Path
) -> None:
    kept(refs[:2], tmp_path)
    (path,) = (tmp_path / "queues").rglob("part-*@broker-00.parquet")
    path.write_bytes(b"PAR1 nothing")
    found = gathered(tmp_path)
    assert [one.ref.broker for one in found.unreadable] == ["broker-00"]
    assert found.report.warnings[0].startswith("broker-00: not read: ")
    rest = report(refs[1:2]).report
    assert list(found.report.queues) == list(rest.queues)


def document(words: list[Any]) -> dict[str, Any]:
    done = run("lag", "report", "--as-of", NOW, "-o", "json", "-q", *words)
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json()
    del found["elapsed_ms"], found["engine"]
    return found


@pytest.mark.slow
def test_from_the_command_line(refs: list[StoreRef], tmp_path: Path) -> None:
    local = ["--engine", "local"]
    for ref in refs[:3]:
        words = ("-S", ref.path, "-o", "parquet", "--save", tmp_path, "--as-of", NOW)
        assert run("lag", "report", *local, *words, "-q").code == 0
    assert {path.name for path in tmp_path.iterdir()} == set(TABLES)
    stores = [word for ref in refs[:3] for word in ("-S", ref.path)]
    assert document([*local, "--from-partials", tmp_path]) == document([*local, *stores])
    without = ("lag", "report", *local, "--from-partials", tmp_path)
    rows = run(*without, "-g", "shop", "-t", "T", "-o", "csv", "--columns", "group,topic,queues")
    assert rows.lines == ["group,topic,queues", "shop,T,9"]
    wrong: list[tuple[list[Any], int, str]] = [
        (["--exact"], 2, "--from-partials and --exact exclude each other"),
        (["-S", refs[0].path], 2, "--from-partials and --store exclude each other"),
        (["-o", "parquet", "--save", tmp_path], 2, "--from-partials: not with -o parquet"),
        (["-g", "nobody"], 3, "group nobody has no progress"),
        (["--from-partials", tmp_path / "none"], 3, "holds no kept reports"),
        (["--as-of", "1990-01-02"], 3, "holds no kept reports that are as old"),
    ]
    for more, code, said in wrong:
        done = run(*without, *more)
        assert (done.code, done.out) == (code, ""), more
        assert said in done.err
    (path,) = (tmp_path / "stores").rglob("part-*@broker-00.parquet")
    path.write_bytes(b"")
    done = run(*without, "-o", "json")
    assert done.code == 8
    assert [one["broker"] for one in done.json()["stores"]] == ["broker-01", "broker-02"]


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    with SparkSession("local[2]") as running:
        yield running


# A short run compares the engines in engines/test_engines.py, in one Spark.
@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("exact", [False, True])
def test_spark_counts_the_same(
    refs: list[StoreRef], session: SparkSession, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    # So that the order of store times is relied on where a store is as small as these.
    monkeypatch.setattr(scan, "EACH_TIME_UP_TO", -1)
    monkeypatch.setattr(scan, "EACH_TAG_UP_TO", -1)
    here = lag_report(LocalEngine(), refs, NOW, Choice(), exact=exact)
    there = lag_report(SparkEngine(session.context), refs, NOW, Choice(), exact=exact)
    assert text(here) == text(there)
    assert any("store times go back" in warning for warning in here.report.warnings) != exact


@pytest.mark.long
@pytest.mark.spark
def test_spark_puts_the_same_together(
    refs: list[StoreRef], tmp_path: Path, session: SparkSession
) -> None:
    kept(refs, tmp_path)
    engine = SparkEngine(session.context)
    found = gathered_report(engine, find_kept([str(tmp_path)], NOW), Choice(), NOW)
    assert text(found) == text(report(refs))


@pytest.mark.slow
def test_files_without_the_columns_of_now_are_read_and_joined(
    refs: list[StoreRef], tmp_path: Path
) -> None:
    from pyarrow import parquet

    whole = text(gathered(kept(refs[:6], tmp_path)))
    for name in ("stores", "warnings"):
        for path in (tmp_path / name).rglob("*.parquet"):
            with path.open("rb") as file:
                table = parquet.read_table(file)
            added = [column for table_name, column in ADDED if table_name == name]
            parquet.write_table(table.drop_columns(added), path)
    for _ in ("small files", "joined ones"):
        found = gathered(tmp_path)
        assert text(found) == whole
        assert not found.is_damaged
        with compacting(str(tmp_path)) as old:
            for one in plan(str(tmp_path), NOW + 40 * 86_400_000):
                join(one, print, old)


def test_a_damaged_queue_counts_for_the_groups_that_read_it_only(tmp_path: Path) -> None:
    store = HandMade(CONFIG.with_(mapped_file_size_consume_queue=140))
    for number in range(60):
        store.put("TU"[number % 2])
    root = tmp_path / "b" / "store"
    root.mkdir(parents=True)
    store.write(root)
    (root / "consumequeue" / "T" / "0" / f"{140:020}").unlink()
    table = {topic_at_group("T", "late"): {"0": 3}, topic_at_group("U", "other"): {"0": 99}}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    ref = StoreRef("b", str(root))
    kept([ref], tmp_path / "kept")
    for choice, damaged, warned in (
        (Choice(), True, True),
        (Choice(["late"]), True, False),
        (Choice(["other"]), False, True),
        (Choice(None, ["T"]), True, False),
    ):
        for found in (report([ref], choice=choice), gathered(tmp_path / "kept", choice=choice)):
            assert found.is_damaged is damaged, choice
            assert any("beyond the end of U" in one for one in found.report.warnings) is warned
    words = ("lag", "report", "--engine", "local", "--from-partials", tmp_path / "kept", "-q")
    assert run(*words, "-g", "late").code == 8
    assert run(*words, "-g", "other").code == 0
