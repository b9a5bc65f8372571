"""Options: the unknown, the useless and the wrong are refused in a sentence with the near name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from analytics.datasource.query.created import options_in
from analytics.datasource.query.errors import OptionError
from analytics.datasource.query.options import OPTIONS, of_table, read_options
from analytics.datasource.query.tables import TABLES
from analytics.datasource.session import WorkerError, check_python
from analytics.datasource.versions import PySparkVersionError, check_version
from analytics.errors import NotAFolderError
from tests.support import golden
from tests.support.spark_source import Stream, columns_of, read_table, rows_of, source

BASIC = golden.store("basic-4.9")


def refused(said: str, table: str = "messages", /, *, stream: Any = False, **options: str) -> None:
    made = source(BASIC, table=table, **options)
    schema = columns_of(table)

    def begin() -> object:
        reader = made.streamReader(schema) if stream else made.reader(schema)
        return reader.initialOffset() if stream else reader.partitions()  # type: ignore[union-attr,call-arg]

    with pytest.raises(OptionError, match=said):
        begin()


@pytest.mark.parametrize(
    ("option", "value", "table"),
    [
        ("maxBytesPerTrigger", "5", "messages"),
        ("maxBytesPerTrigger", "5", "consumequeue"),
    ],
)
def test_options_of_streams_are_refused_in_a_batch(option: str, value: str, table: str) -> None:
    refused(f"{option} has no effect in a batch, only in a stream", table, **{option: value})


def test_options_of_batches_are_refused_in_a_stream() -> None:
    refused("pushdown has no effect in a stream", stream=True, pushdown="true")
    refused("endingOffset has no effect in a stream", stream=True, endingOffset="latest")
    refused("endingTimestamp has no effect in a stream", stream=True, endingTimestamp="2026-01-01")


@pytest.mark.parametrize(
    ("option", "value", "table"),
    [
        ("groups", "g", "messages"),
        ("minPartitions", "3", "lag"),
        ("batchRows", "3", "offsets"),
        ("mode", "FAILFAST", "consumequeue"),
        ("failOnDataLoss", "true", "lag_partials"),
    ],
)
def test_options_of_other_tables_are_refused(option: str, value: str, table: str) -> None:
    refused(f"{option} has no effect on {table}, only on ", table, **{option: value})


def test_every_option_says_where_it_has_an_effect() -> None:
    for name, scope in OPTIONS.items():
        assert set(scope.tables) <= set(TABLES), name
        assert scope.batch or scope.stream, name


@pytest.mark.parametrize("stream", [False, True])
def test_topics_that_match_nothing_are_refused_with_the_near_name(stream: bool) -> None:
    topics = sorted({row["topic"] for row in read_table("messages", BASIC)})
    wrong = topics[0] + "s"
    refused(
        f"topics: no store has a topic '{wrong}' .did you mean {topics[0]}",
        stream=stream,
        topics=f"{topics[-1]},{wrong}",
    )
    refused("no store has a topic 'xyz' .there are ", stream=stream, topics="xyz")
    refused("topics: ' , ' names none", stream=stream, topics=" , ")


def test_groups_that_match_nothing_are_refused_with_the_near_name() -> None:
    groups = sorted({row["group"] for row in read_table("lag", BASIC)})
    wrong = groups[0] + "x"
    said = f"groups: no store has a group '{wrong}' .did you mean {groups[0]}"
    for table in ("lag", "offsets", "lag_partials"):
        refused(said, table, groups=wrong)


@pytest.mark.slow
def test_a_topic_of_one_store_is_enough() -> None:
    other = golden.store("small-files-4.9")
    topics = {row["topic"] for row in read_table("messages", other)}
    only = sorted(topics - {row["topic"] for row in read_table("messages", BASIC)})
    if not only:
        pytest.fail("the two stores have the same topics")
    assert read_table("messages", BASIC, other, topics=only[0])


def test_a_stream_whose_topic_is_deleted_goes_on(tmp_path: Path) -> None:
    topic = read_table("messages", BASIC)[0]["topic"]
    stream = Stream(BASIC, topics=topic)
    stream.drain()
    other = golden.extract("small-files-4.9", tmp_path)
    assert Stream(BASIC, other, topics=topic, at=stream.at).trigger() is not None


@pytest.mark.parametrize("name", ["tabel", "Topic", "startingOffsets", "maxBytesPerTriger"])
def test_unknown_options_name_the_near_one(name: str) -> None:
    with pytest.raises(OptionError, match="unknown option .* .did you mean "):
        read_options({"path": str(BASIC), name: "x"})


# -- CREATE TABLE ----------------------------------------------------------------------------

OF_SPARK = {"provider": "rocketmq", "owner": "root", "location": f"file:{BASIC}"}
"""As Spark 4.3 gives them for CREATE TABLE ... OPTIONS (path '...', table 'lag')."""


def test_a_table_keeps_its_options_in_its_schema() -> None:
    given = {**OF_SPARK, "path": f"file:{BASIC}", "table": "lag", "option.table": "lag"}
    schema = source(**given).schema()
    assert not isinstance(schema, str)
    assert schema.fieldNames() == list(TABLES["lag"])
    later = type(source())(options={})  # Spark gives the reader of a query no options
    found = rows_of(later.reader(schema))
    assert found == read_table("lag", BASIC)
    assert found


def test_a_table_that_was_made_with_columns_is_refused_with_a_way_out() -> None:
    later = type(source())(options={})
    with pytest.raises(OptionError, match=r"without a list of columns.* TEMPORARY VIEW"):
        later.reader(columns_of("lag"))
    with pytest.raises(OptionError, match="TEMPORARY VIEW"):
        options_in(columns_of("messages"))


def test_options_of_tables_are_checked_like_others() -> None:
    with pytest.raises(OptionError, match="unknown option 'tabel' .did you mean table"):
        source(**OF_SPARK, path=str(BASIC), **{"option.tabel": "lag", "tabel": "lag"}).schema()
    assert of_table({"path": "x"}) is None
    with pytest.raises(OptionError, match="unknown option 'owner'"):
        read_options({"path": str(BASIC), "owner": "me"})


# -- paths -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["file:{}", "file://{}", "file://localhost{}", "FILE:{}"])
def test_file_uris_are_paths(tmp_path: Path, form: str) -> None:
    root = golden.extract("basic-4.9", tmp_path / "with blank")
    uri = form.format(str(root).replace(" ", "%20"))
    assert len(read_table("messages", uri)) == len(read_table("messages", root)) > 0
    pattern = form.format(f"{str(tmp_path).replace(' ', '%20')}/*/basic*")
    assert len(read_table("messages", pattern)) == len(read_table("messages", root))


@pytest.mark.parametrize(
    "uri", ["oss://bucket/store", "wasbs://c@a/store", "file://server/share", "dbfs:/x"]
)
def test_other_schemes_are_refused_in_a_true_sentence(uri: str, tmp_path: Path) -> None:
    said = f"^{uri}: stores are read from folders; .* Copy the store, or a snapshot"
    with pytest.raises(NotAFolderError, match=said):
        read_options({"path": uri})
    listed = tmp_path / "stores.yaml"
    listed.write_text(f"a: {uri}\n")
    with pytest.raises(NotAFolderError, match="stores are read from folders"):
        read_options({"path": str(listed)})


def test_a_folder_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    (ref,) = read_options({"path": str(tmp_path / "a:b")}).stores
    assert ref.path == str(tmp_path / "a:b")


# -- versions and workers --------------------------------------------------------------------


@pytest.mark.parametrize("version", ["4.1.1", "4.0.0", "3.5.9"])
def test_an_older_pyspark_is_refused(version: str) -> None:
    with pytest.raises(
        PySparkVersionError, match=rf"needs PySpark 4\.2 or newer, this is {version}"
    ):
        check_version(version)


@pytest.mark.parametrize("version", ["4.2.0", "4.3.0.dev1", "5.0.0", "unknown"])
def test_others_are_not(version: str) -> None:
    check_version(version)


@pytest.mark.slow
def test_workers_without_the_package_are_refused_by_name(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -I "$@"\n')
    bare.chmod(0o755)
    with pytest.raises(WorkerError, match=r"run '.*/python3'.*No module named .*PYSPARK_PYTHON="):
        check_python(str(bare))
    with pytest.raises(WorkerError, match="No such file"):
        check_python(str(tmp_path / "missing"))
    check_python(sys.executable)


def test_only_the_named_columns_are_read() -> None:
    made = source(BASIC, table="messages", columns="body, queue_offset")
    assert made.schema() == "body binary, queue_offset bigint"
    schema = columns_of("messages", "body", "queue_offset")
    narrow = rows_of(made.reader(schema))
    assert narrow == read_table("messages", BASIC, columns=["body", "queue_offset"])
    assert made.streamReader(schema).initialOffset()
    with pytest.raises(OptionError, match="a schema of other columns is given, too"):
        made.reader(columns_of("messages", "body"))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("queue_ofset", "no column queue_ofset .did you mean queue_offset"),
        ("zzz", "messages has no column zzz .it has broker, topic"),
        ("", "names no column"),
        ("body,body", "one of them twice"),
    ],
)
def test_columns_that_a_table_lacks_are_refused(columns: str, said: str) -> None:
    refused(said, columns=columns)
