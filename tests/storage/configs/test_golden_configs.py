"""Config files that real brokers wrote: read into tables, written back byte for byte."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.configs.config_file import ConfigFile
from storage.configs.consumer_offsets import (
    decode_offsets,
    encode_offsets,
    load_consumer_offsets,
)
from storage.configs.delay_offsets import load_delay_offsets
from storage.configs.subscription_groups import (
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
    system_groups,
)
from storage.configs.topics import TopicConfig, TopicTable, system_topics, topics_file
from storage.format.fastjson import dumps, loads

GOLDEN = Path(__file__).parents[2] / "golden"
STORES = [
    "basic-4.9",
    "basic-5.3",
    "lmq-4.9",
    "retention-4.9",
    "retry-dlq-4.9",
    "retry-dlq-5.3",
    "small-files-4.9",
    "transaction-4.9",
    "unclean-4.9",
]


def config_files(store: str) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(GOLDEN / f"{store}.tar.xz") as archive:
        for member in archive:
            folder, _, name = member.name.rpartition("/")
            if folder.endswith("/config") and member.isfile() and ".json" in name:
                content = archive.extractfile(member)
                assert content is not None
                yield name, content.read()


@pytest.fixture(scope="module")
def configs() -> dict[str, dict[str, bytes]]:
    return {store: dict(config_files(store)) for store in STORES}


def parsed(data: bytes) -> Any:
    return loads(data.decode())


def put_configs(root: Path, files: dict[str, bytes]) -> Path:
    (root / "config").mkdir(parents=True)
    for name, data in files.items():
        (root / "config" / name).write_bytes(data)
    return root


@pytest.mark.parametrize("store", STORES)
def test_each_file_is_written_back_byte_for_byte(configs, store):
    assert {"topics.json", "subscriptionGroup.json"} <= set(configs[store])
    for name, data in configs[store].items():
        document = parsed(data)
        assert dumps(document).encode() == data, name
        if name.startswith("topics.json"):
            document = TopicTable(document, 0).document()
        elif name.startswith("subscriptionGroup.json"):
            document = SubscriptionGroupTable(document, 0).document()
        elif "onsumerOffset.json" in name:
            document = encode_offsets(document, decode_offsets(document))
        assert dumps(document).encode() == data, name


@pytest.mark.parametrize("store", STORES)
def test_saving_what_is_there_touches_no_file(configs, store, tmp_path):
    root = put_configs(tmp_path, configs[store])
    before = {path: path.stat().st_mtime_ns for path in (root / "config").iterdir()}
    for path in before:
        if path.suffix == ".json":
            file = ConfigFile(path)
            assert file.save(file.load().document) is False
    assert before == {path: path.stat().st_mtime_ns for path in (root / "config").iterdir()}


def test_system_topics_and_groups_are_those_of_the_real_broker(configs):
    topics = TopicTable(parsed(configs["basic-4.9"]["topics.json"]), 0).items
    for name, topic in system_topics("DefaultCluster", "broker-a").items():
        assert topics[name] == topic
    files = configs["basic-4.9"]
    groups = SubscriptionGroupTable(parsed(files["subscriptionGroup.json"]), 0).items
    for name, group in system_groups().items():
        assert groups[name] == group


def test_topic_written_anew_has_the_bytes_of_the_real_broker(configs):
    document = parsed(configs["basic-4.9"]["topics.json"])
    table = TopicTable({}, 0)
    for name, topic in TopicTable(document, 0).items.items():
        table.put(name, topic, 1)
    written = table.document()
    assert dumps(written["topicConfigTable"]) == dumps(document["topicConfigTable"])
    assert list(written) == list(document)


def test_group_written_anew_has_the_bytes_of_the_real_broker(configs):
    document = parsed(configs["basic-4.9"]["subscriptionGroup.json"])
    table = SubscriptionGroupTable({}, 0)
    for name, group in SubscriptionGroupTable(document, 0).items.items():
        table.put(name, group, 1)
    member = "subscriptionGroupTable"
    assert dumps(table.document()[member]) == dumps(document[member])


def test_members_of_another_version_survive_a_change(configs):
    document = parsed(configs["basic-5.3"]["topics.json"])
    table = TopicTable(document, 0)
    old = table.items["GoldenFour"]
    assert table.put("GoldenFour", old._replace(write_queue_nums=2), 77)
    row = table.document()["topicConfigTable"]["GoldenFour"]
    assert row["attributes"] == {}
    assert (row["writeQueueNums"], row["readQueueNums"]) == (2, 4)
    version = document["dataVersion"]
    assert table.document()["dataVersion"] == {
        "counter": version["counter"] + 1,
        "stateVersion": version["stateVersion"],
        "timestamp": 77,
    }


def test_offsets_are_those_of_the_files(configs, tmp_path):
    root = put_configs(tmp_path / "a", configs["retry-dlq-4.9"])
    offsets = load_consumer_offsets(root)
    assert offsets["%RETRY%g-slow@g-slow"] == {0: 3}
    assert offsets["GoldenRetry@g-flaky"] == {0: 15, 1: 15, 2: 15, 3: 15}
    assert load_delay_offsets(root) == {1: 5, 2: 5, 3: 45, 4: 17, 5: 13}
    light = put_configs(tmp_path / "b", configs["lmq-4.9"])
    assert load_consumer_offsets(light) == {"GoldenParent@g-parent": {0: 3, 1: 4}}


def test_topics_file_gives_one_object_until_the_file_is_replaced(configs, tmp_path):
    root = put_configs(tmp_path, configs["basic-4.9"])
    file = topics_file(root)
    table = file.read(0)
    assert file.read(0) is table
    assert table.get("GoldenEight") == TopicConfig("GoldenEight", 8, 8)
    changed = topics_file(root).read_for_change(0)
    changed.put("More", TopicConfig("More"), 5)
    assert topics_file(root).save(changed)
    assert file.read(0).get("More") == TopicConfig("More")
    assert (root / "config/topics.json.bak").read_bytes() == configs["basic-4.9"]["topics.json"]


def test_a_group_that_is_already_so_gets_no_new_version():
    table = SubscriptionGroupTable({}, 3)
    assert table.put("g", SubscriptionGroupConfig("g"), 4)
    assert not table.put("g", SubscriptionGroupConfig("g"), 5)
    assert table.data_version == (4, 1)
    assert table.remove("g", 6)
    assert not table.remove("g", 7)
    assert table.data_version == (6, 2)
