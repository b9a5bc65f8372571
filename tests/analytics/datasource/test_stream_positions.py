"""What a stream does when the stores under it change: ends that go back, names, copies, holes."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path

import pytest

from analytics.datasource.query.errors import DataLossError, OptionError
from tests.support.copies import copy_store
from tests.support.hand_made import TINY, HandMade
from tests.support.spark_source import Row, Stream

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


def log_of(count: int, name: str = "T", body: bytes = b"x" * 100) -> HandMade:
    made = HandMade(CONFIG)
    for number in range(count):
        made.put(name, number % 3, b"%s %s %d" % (name.encode(), body, number), step_ms=700)
    return made


def written(made: HandMade, root: Path) -> Path:
    """The store in a folder, made anew."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    return made.write(root)


def places(batches: list[list[Row]]) -> list[int]:
    return sorted(row["commitlog_offset"] for batch in batches for row in batch)


def stored(made: HandMade, first: int = 0) -> list[int]:
    return [m.commitlog_offset for m in made.messages if m.commitlog_offset >= first]


# -- ends that go back -----------------------------------------------------------------------


def test_a_stream_fails_where_the_end_of_a_log_goes_back(tmp_path: Path) -> None:
    root = written(log_of(100), tmp_path / "st")
    stream = Stream(root)
    assert len(stream.drain()) == 1
    cut = log_of(20)
    written(cut, root)  # as if it were restored from an older copy
    with pytest.raises(DataLossError) as error:
        Stream(root, at=stream.at).trigger()
    text = str(error.value)
    assert f"the log in {root} ends at byte {cut.log_end}" in text
    assert "bytes of it are gone; failOnDataLoss=false goes on at its end of now" in text
    lenient = Stream(root, at=stream.at, failOnDataLoss="false")
    assert places(lenient.drain()) == []
    for number in range(5):
        cut.put("T", number % 3, b"new")
    cut.write(root)
    assert places(lenient.drain()) == stored(cut)[-5:]
    assert lenient.trigger() == []


def test_a_restored_store_beside_what_it_was_before_is_no_copy_of_that(tmp_path: Path) -> None:
    """``store restore`` leaves the old store in a folder beside the new one."""
    root = written(log_of(100), tmp_path / "shop")
    stream = Stream(tmp_path / "*")
    stream.drain()
    root.rename(tmp_path / "shop.before-restore-20260101")
    restored = log_of(40)
    restored.put("T", 0, b"new")
    written(restored, root)
    with pytest.raises(DataLossError, match=rf"the log in {root} ends at byte .* older copy"):
        Stream(tmp_path / "*", at=stream.at).trigger()
    lenient = Stream(tmp_path / "*", at=stream.at, failOnDataLoss="false")
    lenient.drain()
    restored.put("T", 1, b"newer")
    restored.write(root)
    assert places(lenient.drain()) == stored(restored)[-1:]


@pytest.mark.parametrize("longer", [False, True])
def test_a_store_that_was_made_anew_is_noticed_however_long_it_is(
    tmp_path: Path, longer: bool
) -> None:
    root = written(log_of(50), tmp_path / "st")
    stream = Stream(root)
    stream.drain()
    new = log_of(120 if longer else 10, "New")
    written(new, root)
    with pytest.raises(DataLossError, match=r"its first record is another one.* is gone; "):
        Stream(root, at=stream.at).trigger()
    lenient = Stream(root, at=stream.at, failOnDataLoss="false")
    assert places(lenient.drain()) == stored(new)
    assert lenient.trigger() == []


@pytest.mark.parametrize("body", [b"x" * 100, b"x" * 77], ids=["same places", "other places"])
def test_a_log_that_was_cut_and_grew_again_is_noticed(tmp_path: Path, body: bytes) -> None:
    root = written(log_of(50), tmp_path / "st")
    stream = Stream(root)
    stream.drain()
    cut = log_of(47)
    for number in range(47, 80):
        cut.put("T", number % 3, b"%s %d" % (body, number), step_ms=900)
    written(cut, root)
    with pytest.raises(DataLossError, match="the log was cut before it, and others were stored"):
        Stream(root, at=stream.at).trigger()
    lenient = Stream(root, at=stream.at, failOnDataLoss="false")
    before = json.loads(stream.at)["st"]["offset"]
    assert places(lenient.drain()) == stored(cut, before)


def test_a_damaged_record_that_was_read_stops_no_stream(tmp_path: Path) -> None:
    made = log_of(50)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.drain()
    last = made.messages[-1]
    with (root / "commitlog" / f"{last.commitlog_offset // 4096 * 4096:020}").open("r+b") as file:
        file.seek(last.commitlog_offset % 4096 + 100)
        file.write(b"????")
    made.put("T", 0, b"next")
    path = root / "commitlog" / f"{made.messages[-1].commitlog_offset // 4096 * 4096:020}"
    damaged = path.read_bytes()[: last.commitlog_offset % 4096 + last.size]
    made.write(root)
    path.write_bytes(damaged + path.read_bytes()[len(damaged) :])
    assert places(Stream(root, at=stream.at).drain()) == [made.messages[-1].commitlog_offset]


def test_units_that_are_missing_for_a_while_are_no_loss(tmp_path: Path) -> None:
    made = log_of(50)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.drain()
    shutil.rmtree(root / "consumequeue" / "T" / "1")  # a topic that was deleted, for instance
    assert places(Stream(root, at=stream.at).drain()) == []


# -- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True], ids=["this checkpoint", "an older one"])
def test_a_store_keeps_its_position_when_its_name_gets_longer(tmp_path: Path, old: bool) -> None:
    first, second = log_of(50), log_of(30, "Other")
    a, b = written(first, tmp_path / "a" / "st"), written(second, tmp_path / "b" / "st")
    stream = Stream(a)
    stream.drain()
    at = json.dumps({"st": first.log_end}) if old else stream.at
    both = Stream(a, b, at=at)
    rows = [row for batch in both.drain() for row in batch]
    assert {row["topic"] for row in rows} == {"Other"}
    assert len(rows) == 30
    assert Stream(b, a, at=both.at).trigger() == []
    assert Stream(a, at=both.at).trigger() == []  # and back to the short name


def test_a_store_that_was_renamed_and_then_made_anew_is_known_by_its_last_name(
    tmp_path: Path,
) -> None:
    made = log_of(30)
    root = written(made, tmp_path / "before")
    stream = Stream(root)
    stream.drain()
    after = root.rename(tmp_path / "after")
    made.put("T", 0, b"after the new name")
    made.write(after)
    stream = Stream(after, at=stream.at)
    assert len(places(stream.drain())) == 1
    other = written(log_of(60, body=b"another log"), after)
    with pytest.raises(DataLossError, match="is not the one that this stream has read"):
        Stream(other, at=stream.at).trigger()
    lenient = Stream(other, at=stream.at, failOnDataLoss="false")
    assert len(places(lenient.drain())) == 60


def test_a_store_keeps_its_position_when_its_folder_is_renamed(tmp_path: Path) -> None:
    made = log_of(50)
    root = written(made, tmp_path / "before")
    stream = Stream(root)
    stream.drain()
    root.rename(tmp_path / "after")
    other = written(log_of(20, "Other"), root)  # another one gets its name
    for number in range(4):
        made.put("T", number)
    made.write(tmp_path / "after")
    both = Stream(tmp_path / "after", other, at=stream.at)
    rows = [row for batch in both.drain() for row in batch]
    assert [row["topic"] for row in rows].count("T") == 4
    assert [row["topic"] for row in rows].count("Other") == 20
    assert Stream(other, tmp_path / "after", at=both.at).trigger() == []


def test_an_older_checkpoint_goes_on(tmp_path: Path) -> None:
    made = log_of(50)
    root = written(made, tmp_path / "st")
    middle = made.messages[30].commitlog_offset
    stream = Stream(root, at=json.dumps({"st": middle, "gone": 7}))
    assert places(stream.drain()) == stored(made, middle)
    assert json.loads(stream.at)["gone"] == 7


def test_an_older_checkpoint_that_fits_two_stores_is_refused(tmp_path: Path) -> None:
    made, other = log_of(50), log_of(60, "Other")
    a, b = written(made, tmp_path / "a" / "st"), written(other, tmp_path / "b" / "st")
    with pytest.raises(OptionError, match=r"position of 'st', which may be that of .* YAML file"):
        Stream(a, b, at=json.dumps({"st": 5})).trigger()


def test_a_store_that_is_added_is_read_from_its_begin(tmp_path: Path) -> None:
    made, late = log_of(30), log_of(40, "Late")
    a = written(made, tmp_path / "a")
    stream = Stream(a, startingOffset="latest")
    b = written(late, tmp_path / "b")
    both = Stream(a, b, at=stream.at)
    assert places(both.drain()) == stored(late)
    left_out = Stream(a, at=both.at)
    assert left_out.trigger() == []
    assert Stream(a, b, at=left_out.at).trigger() == []


def test_a_batch_that_is_repeated_names_the_store_that_is_missing(tmp_path: Path) -> None:
    a, b = (written(log_of(30, name), tmp_path / name) for name in "ab")
    both = Stream(a, b)
    start, reader = json.loads(both.at), both.reader
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    with pytest.raises(DataLossError, match="^b: [0-9]+ bytes of its log are in a batch"):
        Stream(a, at=both.at).reader.partitions(start, end)
    assert Stream(a, at=both.at, failOnDataLoss="false").reader.partitions(start, end)


# -- copies ----------------------------------------------------------------------------------


def test_a_slave_beside_its_master_adds_nothing_and_takes_over(tmp_path: Path) -> None:
    made = log_of(40)
    slave = written(made, tmp_path / "slave")
    master = copy_store(slave, tmp_path / "master")
    for number in range(6):
        made.put("T", number % 3)
    made.write(master)
    both = Stream(master, slave)
    assert places(both.drain()) == stored(made)
    for number in range(3):
        made.put("T", number)
    made.write(slave)  # the master ended, the slave got all
    assert places(Stream(slave, at=both.at).drain()) == stored(made)[-3:]
    each = Stream(master, slave, copies="all")
    assert len(places(each.drain())) == 2 * len(stored(made)) - 3
    assert Stream(slave, master, at=each.at, copies="all").trigger() == []


def longer_log(made: HandMade, count: int, body: bytes) -> HandMade:
    """A store with more messages, whose bodies differ from others."""
    made = deepcopy(made)
    for number in range(count):
        made.put("T", number % 3, b"%s %d" % (body, number), step_ms=700)
    return made


@pytest.mark.parametrize("common", [40, 100])
def test_a_slave_that_lacks_the_last_records_goes_on_where_it_has_parted(
    tmp_path: Path, common: int
) -> None:
    made = log_of(common)
    slave = written(made, tmp_path / "slave")
    master = written(longer_log(made, 12, b"lost"), tmp_path / "master")
    stream = Stream(master, slave)
    stream.drain()
    made = longer_log(made, 30, b"own")
    made.write(slave)  # the master ended, its disk stays
    assert places(stream.drain()) == stored(made)[common:]
    made = longer_log(made, 3, b"later")
    made.write(slave)
    again = Stream(slave, master, at=stream.at)
    assert places(again.drain()) == stored(made)[-3:]
    assert Stream(slave, at=again.at).trigger() == []


@pytest.mark.parametrize("limit", ["maxBytesPerTrigger", "maxOffsetsPerTrigger"])
def test_a_limited_stream_reads_a_slave_from_where_it_has_parted_before_the_position(
    tmp_path: Path, limit: str
) -> None:
    """Its position knows no record after the first one of the log file in which it lies."""
    made = log_of(25)
    parting = made.log_end
    slave = written(made, tmp_path / "slave")
    lost = longer_log(made, 12, b"lost")
    master = written(lost, tmp_path / "master")
    assert lost.log_end // 4096 == parting // 4096  # in one file
    stream = Stream(master, slave, **{limit: "800" if "Bytes" in limit else "4"})
    given: list[list[Row]] = []
    while (offset := json.loads(stream.at)["master"]["offset"]) <= parting:
        given.append(stream.trigger())
    assert parting < offset < lost.log_end
    own = longer_log(made, 30, b"own")
    own.write(slave)
    given += stream.drain()
    assert places(given) == sorted(stored(lost) + stored(own, parting))
    assert Stream(slave, master, at=stream.at).trigger() == []


def test_a_slave_goes_on_where_it_has_parted_from_its_own_master(tmp_path: Path) -> None:
    """Others of one image, read further or not at all, say less of what was read of it."""
    image = log_of(1)
    written(longer_log(image, 90, b"a"), tmp_path / "a")
    made = longer_log(image, 30, b"c")
    written(longer_log(made, 12, b"lost"), tmp_path / "c")
    other = written(longer_log(image, 1, b"e"), tmp_path / "e")
    stream = Stream(tmp_path / "[ace]")
    stream.drain()
    own = longer_log(made, 30, b"own")
    stream = Stream(tmp_path / "[ace]", written(own, tmp_path / "d"), at=stream.at)
    assert places(stream.drain()) == stored(own, made.log_end)
    assert Stream(other, tmp_path / "[acd]", at=stream.at).trigger() == []


def test_a_slave_that_parts_after_the_position_goes_on_at_the_position(tmp_path: Path) -> None:
    made = log_of(40)
    master = written(made, tmp_path / "master")
    stream = Stream(tmp_path / "*")
    stream.drain()
    made = longer_log(made, 5, b"common")
    lost, own = longer_log(made, 12, b"lost"), longer_log(made, 30, b"own")
    lost.write(master)
    written(own, tmp_path / "slave")
    stream = Stream(tmp_path / "*", at=stream.at)
    assert places(stream.drain()) == sorted(stored(lost)[40:] + stored(own)[40:])
    assert stream.trigger() == []


def test_a_batch_with_a_slave_that_has_parted_is_repeated_as_it_was(tmp_path: Path) -> None:
    made = log_of(40)
    master = written(longer_log(made, 12, b"lost"), tmp_path / "master")
    stream = Stream(master)
    stream.drain()
    made = longer_log(made, 30, b"own")
    slave = written(made, tmp_path / "slave")
    at, reader = stream.at, Stream(master, slave, at=stream.at).reader
    end = reader.latestOffset(json.loads(at), reader.getDefaultReadLimit())
    for stores in ((slave, master), (slave,)):
        again = Stream(*stores, at=at).reader
        rows = [
            row
            for part in again.partitions(json.loads(at), end)
            for batch in again.read(part)
            for row in batch.to_pylist()  # type: ignore[union-attr]
        ]
        assert places([rows]) == stored(made)[40:]


def test_what_a_restored_store_was_before_is_not_given_again(tmp_path: Path) -> None:
    root = written(log_of(100), tmp_path / "shop")
    stream = Stream(tmp_path / "*")
    stream.drain()
    root.rename(tmp_path / "shop.before-restore-20260101")
    restored = log_of(40)
    restored.put("T", 0, b"new")
    written(restored, root)
    lenient = Stream(tmp_path / "*", at=stream.at, failOnDataLoss="false")
    assert places(lenient.drain()) == []
    assert Stream(tmp_path / "*", at=lenient.at).trigger() == []


def test_stores_of_one_image_that_are_added_are_read_from_what_is_theirs(tmp_path: Path) -> None:
    image = log_of(1)
    a = written(longer_log(image, 60, b"a"), tmp_path / "a")
    stream = Stream(a)
    stream.drain()
    added = [longer_log(image, count, b"%d" % count) for count in (50, 70)]
    for number, made in enumerate(added):
        written(made, tmp_path / f"added{number}")
    both = Stream(tmp_path / "*", at=stream.at)
    assert places(both.drain()) == sorted(stored(added[0])[1:] + stored(added[1])[1:])


def test_a_parted_store_that_is_added_is_read_whole_where_copies_are(tmp_path: Path) -> None:
    made = log_of(20)
    a = written(longer_log(made, 60, b"a"), tmp_path / "a")
    stream = Stream(a, copies="all")
    stream.drain()
    made = longer_log(made, 30, b"b")
    both = Stream(a, written(made, tmp_path / "b"), at=stream.at, copies="all")
    assert places(both.drain()) == stored(made)


# -- holes -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_batches_skip_files_that_are_gone(tmp_path: Path) -> None:
    made = log_of(300)
    root = written(made, tmp_path / "st")
    files = sorted((root / "commitlog").iterdir())
    for path in files[:-2]:
        path.unlink()
    begin = (len(files) - 2) * 4096
    assert begin > 8 * 4096
    stream = Stream(root, startingOffset="0", maxBytesPerTrigger="1000", failOnDataLoss="false")
    batches = stream.drain()
    assert places(batches) == stored(made, begin)
    assert all(batches[:-1])  # the last one may be the rest of a record that has been given


@pytest.mark.slow
def test_batches_skip_a_hole_in_the_middle(tmp_path: Path) -> None:
    made = log_of(300)
    root = written(made, tmp_path / "st")
    for number in range(2, 9):
        (root / "commitlog" / f"{number * 4096:020}").unlink()
    stream = Stream(root, maxBytesPerTrigger="1000", failOnDataLoss="false")
    batches = stream.drain()
    assert places(batches) == [one for one in stored(made) if not 2 <= one // 4096 < 9]
    assert sum(not batch for batch in batches) <= 1


@pytest.mark.parametrize("change", ["nothing", "rows"])
def test_a_position_stays_the_same_text_while_nothing_comes(tmp_path: Path, change: str) -> None:
    made = log_of(30)
    root = written(made, tmp_path / "st")
    stream = Stream(root)
    stream.drain()
    before = stream.at
    if change == "rows":
        made.put("T", 0)
        made.write(root)
    stream.trigger()
    assert (stream.at == before) == (change == "nothing")


def test_a_begin_past_the_end_is_refused(tmp_path: Path) -> None:
    made = log_of(30)
    root = written(made, tmp_path / "st")
    with pytest.raises(
        OptionError, match=rf"past the end of the log of st, which is {made.log_end}"
    ):
        Stream(root, startingOffset=str(made.log_end + 1))
    assert Stream(root, startingOffset=str(made.log_end)).trigger() == []
