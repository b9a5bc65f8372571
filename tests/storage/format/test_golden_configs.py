"""Golden checkpoints and config files, byte for byte, and what RocketMQ reads from them."""

import re
from typing import Any

import pytest

from storage.format import fastjson
from storage.format.checkpoint import CheckpointData
from tests.support import golden

ALL = pytest.mark.parametrize("name", golden.names())


@ALL
def test_the_checkpoint_is_the_same_bytes_and_says_what_rocketmq_reads(name: str) -> None:
    path = golden.store(name) / "checkpoint"
    expected = golden.manifest(name)["checkpoint"]
    assert path.exists() == (expected is not None)
    if expected is None:
        return
    buffer = path.read_bytes()
    checkpoint = CheckpointData.unpack(buffer)
    assert checkpoint.pack() == buffer
    assert expected == {
        "physicMsgTimestamp": checkpoint.physic_msg_timestamp,
        "logicsMsgTimestamp": checkpoint.logics_msg_timestamp,
        "indexMsgTimestamp": checkpoint.index_msg_timestamp,
        "minTimestamp": checkpoint.min_timestamp,
        "minTimestampIndex": checkpoint.min_timestamp_index,
    }


def with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


@ALL
def test_each_config_file_is_the_same_text_and_says_what_fastjson_reads(name: str) -> None:
    configs = golden.manifest(name)["configs"]
    files = {
        path.name: path.read_text(encoding="utf-8")
        for path in (golden.store(name) / "config").iterdir()
        if re.search(r"\.json(\.bak)?$", path.name)
    }
    assert configs.keys() <= files.keys()
    for file, text in files.items():
        value = fastjson.loads(text)
        assert fastjson.dumps(value) == text
        if file in configs:
            assert with_text_keys(value) == configs[file]
