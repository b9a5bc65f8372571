"""Reading with .bak and replacing in one step, as ConfigManager does it."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from storage.configs.config_file import ConfigFile, ConfigSource, replace_file
from storage.configs.consumer_offsets import consumer_offset_file, decode_offsets, encode_offsets
from storage.configs.subscription_groups import (
    SubscriptionGroupConfig,
    SubscriptionGroupTable,
)
from storage.configs.topics import TopicConfig, TopicTable, topics_file
from storage.errors import CorruptFileError, StoreNotWritableError
from storage.files.creating import remove_left
from storage.files.fs import FileSystem
from storage.format.fastjson import loads


class FailingFileSystem(FileSystem):
    """Fails at the n-th call that changes something."""

    def __init__(self, fail_at: int) -> None:
        self.left = fail_at

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def write(self, fd: int, data: bytes | bytearray | memoryview, offset: int) -> None:
        self._count()
        super().write(fd, data, offset)

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def rename(self, source: Path, target: Path) -> None:
        self._count()
        super().rename(source, target)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "config" / "topics.json"


def test_missing_and_empty_files_give_an_empty_document(path):
    loaded = ConfigFile(path).load()
    assert (loaded.document, loaded.source, loaded.ident) == ({}, ConfigSource.NONE, None)
    path.parent.mkdir()
    path.touch()
    loaded = ConfigFile(path).load()
    assert (loaded.document, loaded.source) == ({}, ConfigSource.NONE)
    assert loaded.ident is not None


@pytest.mark.feature(115)
@pytest.mark.parametrize("content", ["", "  \n", '{"a":', "[1]", "\x00" * 40])
@pytest.mark.conformance("A17")
def test_bak_is_read_where_the_file_has_nothing(path, content):
    path.parent.mkdir()
    path.write_text(content)
    path.with_name("topics.json.bak").write_text('{"a":1}')
    loaded = ConfigFile(path).load()
    assert (loaded.document, loaded.source) == ({"a": 1}, ConfigSource.BAK)


@pytest.mark.conformance("A17")
def test_damage_without_a_readable_bak_is_an_error_and_not_a_reset(path):
    path.parent.mkdir()
    path.write_text('{"a":')
    with pytest.raises(CorruptFileError, match=r"topics\.json is damaged"):
        ConfigFile(path).load()
    path.with_name("topics.json.bak").write_text("{{")
    path.unlink()
    with pytest.raises(CorruptFileError, match=r"topics\.json\.bak is damaged"):
        ConfigFile(path).load()


@pytest.mark.conformance("A17")
def test_save_keeps_what_was_there_as_bak(path):
    file = ConfigFile(path)
    assert file.save({"a": 1})
    assert not file.bak_path.exists()
    assert file.save({"a": 2})
    assert not file.save({"a": 2})
    assert path.read_text() == '{\n\t"a":2\n}'
    assert file.bak_path.read_text() == '{\n\t"a":1\n}'
    assert sorted(p.name for p in path.parent.iterdir()) == ["topics.json", "topics.json.bak"]


@pytest.mark.conformance("A17")
def test_damaged_file_never_becomes_the_bak(path):
    file = ConfigFile(path)
    file.save({"a": 1})
    file.save({"a": 2})
    path.write_text('{"a":')
    assert file.load().document == {"a": 1}
    file.save({"a": 3})
    assert loads(file.bak_path.read_text()) == {"a": 1}


@pytest.mark.parametrize("fail_at", range(6))
def test_failed_save_leaves_the_old_content(path, fail_at):
    ConfigFile(path).save({"a": 1})
    with pytest.raises(StoreNotWritableError, match="No space left"):
        ConfigFile(path, FailingFileSystem(fail_at)).save({"a": 2})
    assert ConfigFile(path).load().document == {"a": 1}
    assert ConfigFile(path).save({"a": 2})


def test_a_file_where_the_folder_should_be_is_one_clear_error(path):
    path.parent.write_bytes(b"")
    with pytest.raises(StoreNotWritableError, match=r"topics\.json"):
        ConfigFile(path).save({"a": 1})


def test_bytes_that_are_not_utf8_survive(path):
    path.parent.mkdir()
    path.write_bytes(b'{\n\t"a":"\xd6\xd0",\n\t"b":1\n}')
    file = ConfigFile(path)
    document = file.load().document
    assert file.save(document) is False
    document["b"] = 2
    assert file.save(document)
    assert path.read_bytes() == b'{\n\t"a":"\xd6\xd0",\n\t"b":2\n}'


def test_values_that_java_could_not_read_count_as_damage(tmp_path):
    path = tmp_path / "config" / "topics.json"
    path.parent.mkdir()
    path.write_text('{"topicConfigTable":{"T":{"perm":[6]}}}')
    with pytest.raises(CorruptFileError):
        topics_file(tmp_path).read(0)
    path.with_name("topics.json.bak").write_text('{"topicConfigTable":{"T":{"perm":"4"}}}')
    assert topics_file(tmp_path).read(0).get("T") == TopicConfig("T", perm=4)


def test_missing_members_have_the_defaults_of_java():
    table = TopicTable({"topicConfigTable": {"T": {"order": True, "perm": None}}}, 9)
    assert table.get("T") == TopicConfig("T", 16, 16, 6, "SINGLE_TAG", 0, order=True)
    assert table.data_version == (9, 0)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        *((value, True) for value in (True, 1, 1.9, "true", "TRUE", "True", "1", "Y", "y", "T")),
        *((value, False) for value in (False, 0, 2, -1, "false", "FALSE", "0", "N", "F", "f")),
        *((value, True) for value in (None, "", "null", "NULL")),  # the default
    ],
)
def test_switches_are_read_in_every_spelling_that_java_reads(value, read):
    table = SubscriptionGroupTable({"subscriptionGroupTable": {"g": {"consumeEnable": value}}}, 0)
    assert table.get("g") == SubscriptionGroupConfig("g", read)


@pytest.mark.parametrize("value", ["", "null", "NULL"])
def test_texts_that_are_null_to_java_leave_the_default(value):
    document: Any = {"topicConfigTable": {"T": {"perm": value, "readQueueNums": value}}}
    assert TopicTable(document, 0).get("T") == TopicConfig("T")


@pytest.mark.parametrize("value", ["yes", "t", "n", "2", " true", [], {}])
def test_switches_that_java_refuses_are_damage(value):
    with pytest.raises(ValueError, match="consumeEnable is neither true nor false"):
        SubscriptionGroupTable({"subscriptionGroupTable": {"g": {"consumeEnable": value}}}, 0)


def test_offsets_are_read_in_every_spelling_that_java_reads():
    text = '{\'offsetTable\':{"T@g":{"0":5,1:"7",},},other:{a:1}}'
    document: Any = loads(text)
    assert decode_offsets(document) == {"T@g": {0: 5, 1: 7}}
    written = encode_offsets(document, {"N@g": {3: 1}, "T@g": {1: 8, 0: 5}})
    assert list(written["offsetTable"]) == ["T@g", "N@g"]
    assert list(written["offsetTable"]["T@g"].items()) == [(0, 5), (1, 8)]
    assert written["other"] == {"a": 1}


def test_light_groups_lie_apart_where_the_broker_keeps_them_apart():
    document: Any = {"lmqOffsetTable": {"%LMQ%q@%LMQ%g": 4}, "offsetTable": {}}
    assert decode_offsets(document) == {"%LMQ%q@%LMQ%g": {0: 4}}
    assert encode_offsets(document, {"%LMQ%q@%LMQ%g": {0: 6}, "T@g": {0: 1}}) == {
        "lmqOffsetTable": {"%LMQ%q@%LMQ%g": 6},
        "offsetTable": {"T@g": {0: 1}},
    }


def test_the_newer_of_both_offset_files_counts(tmp_path):
    config = tmp_path / "config"
    config.mkdir()
    assert consumer_offset_file(tmp_path).path.name == "consumerOffset.json"
    lmq = config / "lmqConsumerOffset.json"
    lmq.write_text("{}")
    assert consumer_offset_file(tmp_path).path == lmq
    plain = config / "consumerOffset.json"
    plain.write_text("{}")
    os.utime(lmq, ns=(0, plain.stat().st_mtime_ns + 1))
    assert consumer_offset_file(tmp_path).path == lmq
    os.utime(lmq, ns=(0, plain.stat().st_mtime_ns - 1))
    assert consumer_offset_file(tmp_path).path == plain


def test_a_process_that_removes_what_killed_ones_left_leaves_a_file_that_gets_its_name(tmp_path):
    class RemovedBeside(FileSystem):
        def rename(self, source: Path, target: Path) -> None:
            remove_left(tmp_path)
            super().rename(source, target)

    replace_file(RemovedBeside(), tmp_path / "handled.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["handled.json"]
    assert (tmp_path / "handled.json").read_bytes() == b"new"
