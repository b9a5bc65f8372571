"""Which rows become messages, and what is refused before anything is staged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructType

from analytics.errors import SinkOptionError, SinkRowError, SinkSchemaError
from analytics.sink.marker import DONE, MarkerFile
from analytics.sink.options import SinkOptions, read_sink_options
from analytics.sink.rows import RowReader, check_columns
from analytics.sink.staging import stage
from analytics.sink.writer import BatchWriter, check_writable
from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.errors import StoreError
from tests.support.java_lock import java_lock

TEXT = pa.string()
TYPES = {"string": StringType(), "binary": BinaryType(), "int": IntegerType()}


def schema_of(text: str) -> StructType:
    schema = StructType()
    for column in text.split(", "):
        name, kind = column.split()
        schema.add(name, TYPES[kind])
    return schema


@pytest.fixture
def root(tmp_path: Path) -> Path:
    create_store(tmp_path / "store", SMALL_STORE)
    with EmbeddedBroker.open(tmp_path / "store") as broker:
        broker.update_topic(TopicConfig("T", 3, 3))
        broker.update_topic(TopicConfig("R", 3, 3, 4))  # may be read only
    return tmp_path / "store"


def options(root: Path, topic: str | None = "T") -> SinkOptions:
    return read_sink_options(
        {"path": str(root), **({"topic": topic} if topic else {})}, stream=False
    )


def read(root: Path, topic: str | None = "T", /, **columns: list[object]):
    types = {
        "keys": pa.list_(TEXT),
        "properties": pa.map_(TEXT, TEXT),
        "queue_id": pa.int32(),
        "delay_level": pa.int32(),
        "body": pa.string() if isinstance(columns["body"][0], str | None) else pa.binary(),
    }
    batch = pa.record_batch(
        [pa.array(values, types.get(name, TEXT)) for name, values in columns.items()],
        names=list(columns),
    )
    return list(RowReader(options(root, topic), 5).messages(batch))


def test_every_column_becomes_what_it_is_of_a_message(root):
    [one, two] = read(
        root,
        body=["one", "two"],
        topic=["other", None],
        tags=["red", None],
        keys=[["k1", None, "k2"], None],
        properties=[[("a", "b"), ("UNIQ_KEY", "not this")], None],
        delay_level=[3, None],
    )
    first = one.message
    assert (first.topic, first.body, first.tags, first.keys) == (
        "other",
        b"one",
        "red",
        ("k1", "k2"),
    )
    assert (first.delay_time_level, first.properties["a"]) == (3, "b")
    assert len(first.properties["UNIQ_KEY"]) == 32
    assert (two.message.topic, two.message.body, two.message.tags) == ("T", b"two", None)
    assert two.message.properties.keys() == {"UNIQ_KEY"}


def test_rows_go_to_their_queue_to_that_of_their_ordering_key_or_round(root):
    assert [one.queue_id for one in read(root, body=["x"] * 3, queue_id=[2, 0, 1])] == [2, 0, 1]
    ordered = read(root, body=["x"] * 4, ordering_key=["a", "b", "a", "Aa"])
    assert [one.queue_id for one in ordered] == [97 % 3, 98 % 3, 97 % 3, 2112 % 3]
    assert [one.queue_id for one in read(root, body=["x"] * 4)] == [2, 0, 1, 2]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"body": ["x", None]}, r"row 1 of partition 5: its body is null \(topic T\)"),
        ({"body": ["x", ""]}, "row 1 of partition 5: the message body length is zero"),
        (
            {"body": ["x" * (4 << 20), b"x".decode() * ((4 << 20) + 1)]},
            "row 1 .* allowed are 4194304",
        ),
        ({"body": ["x", "y"], "queue_id": [2, 3]}, "row 1 .*: topic T has no queue 3: it has 3"),
        ({"body": ["x", "y"], "queue_id": [2, -1]}, "row 1 .*: topic T has no queue -1"),
        ({"body": ["x", "y"], "topic": [None, ""]}, "row 1 .*: its topic is empty; only null"),
        ({"body": ["x", "y"], "topic": ["T", "a b"]}, "row 1 .* characters other than"),
        (
            {"body": ["x", "y"], "topic": ["T", "R"]},
            "row 1 .*: topic R may not be written: its perm is 4",
        ),
        (
            {"body": ["x", "y"], "topic": ["T", "SCHEDULE_TOPIC_XXXX"]},
            "row 1 .* is filled by the broker",
        ),
        ({"body": ["x", "y"], "delay_level": [1, -1]}, "row 1 .*: delay level -1 is negative"),
        ({"body": ["x", "y"], "keys": [["a"], ["b c"]]}, "row 1 .*: key 'b c' has a blank"),
        ({"body": ["x", "y"], "properties": [[("a", "b")], [("", "b")]]}, "row 1 .*has no name"),
        ({"body": ["x", "y"], "properties": [[("a", "b")], [("a", None)]]}, "row 1 .*has no value"),
        ({"body": ["x", "y"], "properties": [[], [("a", "\x02")]]}, "row 1 .*U.0002"),
        (
            {"body": ["x", "y"], "properties": [[("a", "b")], [("a", "b" * 32768)]]},
            "row 1 .*: the properties have .* bytes, allowed are 32767",
        ),
    ],
)
def test_a_row_that_is_no_message_is_named_with_the_reason_and_leaves_nothing(
    root, columns, reason
):
    before = sorted(root.rglob("*"))
    with pytest.raises(SinkRowError, match=reason):
        read(root, **columns)
    folder = root.parent / "staging"
    with pytest.raises(SinkRowError):
        stage(folder, 5, iter(read(root, **columns)))
    assert not folder.exists()
    assert sorted(root.rglob("*")) == before


@pytest.mark.parametrize(
    ("schema", "topic", "reason"),
    [
        ("bdy binary", "T", "no column 'bdy' .did you mean body"),
        ("body binary, x int", "T", "no column 'x' .it takes body, topic"),
        ("topic string", "T", "no column body"),
        ("body binary", None, "no topic: add a column topic, or the option topic"),
        ("body int", "T", "column body is int; it is to be binary or string"),
        ("body string, properties string", "T", "properties is string; it is to be map<string,"),
        ("body string, queue_id int, ordering_key string", "T", "each of them chooses the queue"),
    ],
)
def test_columns_are_refused_when_the_query_starts(root, schema, topic, reason):
    with pytest.raises(SinkSchemaError, match=reason):
        check_columns(schema_of(schema), options(root, topic))


@pytest.mark.parametrize(
    ("given", "stream", "reason"),
    [
        ({}, False, "no store is named"),
        ({"path": "s", "topics": "T"}, False, "no option 'topics' .did you mean topic"),
        ({"path": "s", "zzz": "T"}, False, "no option 'zzz' .known: path, topic, delivery"),
        ({"path": "s", "delivery": "never"}, False, "neither exactlyOnce nor atLeastOnce"),
        ({"path": "s", "writeId": "a/b"}, False, "writeId: 'a/b' is not 1 to 100"),
        ({"path": "s", "writeId": "\u3042" * 67}, False, "at most 200 bytes of UTF-8"),
        ({"path": "s", "writeId": "a", "checkpointLocation": "c"}, True, "known by its checkpoint"),
        ({"path": "s", "writeId": "a", "delivery": "atLeastOnce"}, False, "has no effect with"),
        *(
            (
                {"path": "s", "stagingLocation": "c", "delivery": "atLeastOnce"},
                stream,
                "stagingLocation has no effect with delivery=atLeastOnce",
            )
            for stream in (False, True)
        ),
        ({"path": "s"}, True, "no checkpointLocation is set"),
        (
            {"path": "s", "checkpointLocation": "hdfs://h/c"},
            True,
            "with the option stagingLocation",
        ),
        ({"path": "hdfs://h/s"}, False, "path: hdfs://h/s is no folder of this machine"),
    ],
)
def test_options_are_refused_with_the_reason(given, stream, reason):
    with pytest.raises(SinkOptionError, match=reason):
        read_sink_options(given, stream=stream)


@pytest.mark.parametrize("letter", ["a", "\u00e9", "\u3042", "\U00020000"])
def test_the_longest_write_id_is_a_name_of_files(root, letter):
    write_id = letter * min(100, 200 // len(letter.encode()))
    given = {"path": str(root), "topic": "T", "writeId": write_id}
    found = read_sink_options(given, stream=False)
    writer = BatchWriter(found, schema_of("body string"), overwrite=False)
    staged = writer.write(iter([pa.record_batch({"body": ["a", "b"]})]))
    writer.commit([staged])
    with MarkerFile(root, write_id) as file:
        marker = file.read()
    assert marker is not None
    assert (marker.state, marker.rows) == (DONE, 2)


def test_folders_may_be_file_addresses(tmp_path):
    found = read_sink_options(
        {"PATH": f"file://{tmp_path}/a%20b", "checkpointlocation": f"file:{tmp_path}/c"},
        stream=True,
    )
    assert found.path == tmp_path / "a b"
    assert found.staging == tmp_path / "c" / "rocketmq-sink"


def test_a_store_that_cannot_be_written_is_refused_when_the_query_starts(root, tmp_path):
    schema = schema_of("body string")
    check_writable(options(root), schema, overwrite=False)
    with pytest.raises(SinkOptionError, match="only ever appended to"):
        check_writable(options(root), schema, overwrite=True)
    with pytest.raises(StoreError, match="nothing"):
        check_writable(options(tmp_path / "nothing"), schema, overwrite=False)
    with java_lock(root), pytest.raises(StoreError, match="in use by a Java broker"):
        check_writable(options(root), schema, overwrite=False)


def store_with(path: Path, config: BrokerConfig, *topics: TopicConfig) -> Path:
    create_store(path, SMALL_STORE, config)
    with EmbeddedBroker.open(path) as broker:
        for topic in topics:
            broker.update_topic(topic)
    return path


def test_a_topic_that_the_broker_would_not_make_is_refused_before_anything_is_stored(tmp_path):
    root = store_with(tmp_path / "s", BrokerConfig(auto_create_topic_enable=False))
    with pytest.raises(SinkRowError, match="row 1 .*: topic new does not exist; create it"):
        read(root, None, body=["x", "y"], topic=["%RETRY%g", "new"])
    assert [one.queue_id for one in read(root, None, body=["x"] * 3, topic=["%RETRY%g"] * 3)] == [
        0,
        0,
        0,
    ], "a topic of retries is made with one queue"


def test_a_topic_of_retries_of_a_group_that_the_broker_would_not_make_is_refused(tmp_path):
    root = store_with(tmp_path / "s", BrokerConfig(auto_create_subscription_group=False))
    with pytest.raises(SinkRowError, match="group g does not exist; create it first"):
        read(root, None, body=["x"], topic=["%RETRY%g"])


def test_an_ordered_topic_of_a_broker_that_may_not_be_written_is_refused(tmp_path):
    ordered = TopicConfig("O", 3, 3)._replace(order=True)
    root = store_with(tmp_path / "s", BrokerConfig(broker_permission=4), ordered)
    with pytest.raises(SinkRowError, match="broker broker-a may not be written"):
        read(root, "O", body=["x"])


def test_reading_rows_of_a_new_topic_makes_no_topic(root):
    before = (root / "config" / "topics.json").read_bytes()
    assert {one.queue_id for one in read(root, "new", body=["x"] * 8)} == {0, 1, 2, 3}
    assert (root / "config" / "topics.json").read_bytes() == before
