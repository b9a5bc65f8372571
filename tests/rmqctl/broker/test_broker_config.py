"""``broker config``: settings of a store count for every process that opens it."""

import json
from dataclasses import fields

import pytest

from broker.config import BrokerConfig
from broker.embedded.broker import EmbeddedBroker
from rmqctl.admin.broker.settings import java_name
from storage.config import FIXED_FIELDS, SMALL_STORE, StoreConfig
from storage.configs.store_settings import (
    StoreSettings,
    read_store_settings,
    write_store_settings,
)
from storage.store import MessageStore
from tests.support import golden
from tests.support.cli import ROOT, run


def row(name):
    (found,) = run("broker", "config", "get", name, "-o", "json").json()
    return found


def change(name, value, *options):
    return run("broker", "config", "set", name, value, "--yes", "-o", "json", *options)


@pytest.mark.slow
@pytest.mark.feature(128)
def test_what_is_set_is_what_the_next_opener_has(store):
    result = change("fileReservedTime", 24)
    assert result.code == 0, result.err
    assert result.json() == [
        {
            "setting": "file_reserved_time_hours",
            "old": "72",
            "value": "24",
            "origin": "rmqctl/settings.json",
            "broker_conf": "fileReservedTime=24",
            "fixed": False,
            "meaning": "Age at which a commit log file may be deleted (fileReservedTime).",
            "applied": True,
        }
    ]
    with MessageStore.open(store) as opened:
        assert opened.config.file_reserved_time_hours == 24
    assert row("file-reserved-time-hours")["value"] == "24"


@pytest.mark.slow
def test_the_broker_goes_by_it(store):
    change("autoCreateTopicEnable", "false")
    assert run("produce", "new", stdin=b"x\n").code == 3
    change("autoCreateTopicEnable", "true")
    change("maxMessageSize", 3)
    assert run("produce", "new", stdin=b"long\n").code == 2
    change("brokerName", "b2")
    assert run("topic", "queues", "SELF_TEST_TOPIC", "-o", "json").json()[0]["broker"] == "b2"


@pytest.mark.slow
def test_an_option_of_one_call_leaves_the_others_as_they_are(store):
    change("brokerName", "b2")
    change("maxMessageSize", 3)
    assert run("produce", "t", "--sync", stdin=b"long\n").code == 2
    assert run("produce", "t", "--sync", "-q", stdin=b"ok\n").code == 0
    assert run("consume", "t", "-g", "g", "-e", "-o", "json").json()[0]["body"] == "ok"


@pytest.mark.slow
def test_the_default_comes_back(store):
    change("deleteWhen", "02;14")
    assert row("deleteWhen")["origin"] == "rmqctl/settings.json"
    result = run("broker", "config", "set", "deleteWhen", "--unset", "--yes", "-o", "json")
    assert (result.json()[0]["old"], result.json()[0]["value"]) == ("02;14", "04")
    assert (row("deleteWhen")["value"], row("deleteWhen")["origin"]) == ("04", "built-in")
    assert read_store_settings(store).store == {}


@pytest.mark.slow
def test_a_java_broker_is_told_what_it_needs(store):
    change("fileReservedTime", 24)
    change("keepFailureReasons", "false")  # which it does not have
    lines = run("broker", "config", "get", "--broker-conf").lines
    assert lines == [
        "mappedFileSizeCommitLog=16777216",
        "mappedFileSizeConsumeQueue=600000",
        "maxHashSlotNum=50000",
        "maxIndexNum=200000",
        "fileReservedTime=24",
    ]


@pytest.mark.slow
@pytest.mark.feature(149)
def test_a_change_is_in_the_journal(store):
    change("fileReservedTime", 24, "--reason", "disk")
    (path,) = (store / "rmqctl/journal").iterdir()
    entry = json.loads(path.read_text())["entry"]
    assert (entry["command"], entry["what"]) == ("broker config", "file_reserved_time_hours")
    assert (entry["old"], entry["new"], entry["reason"]) == (72, 24, "disk")


@pytest.mark.slow
def test_nothing_is_written_without_a_yes_or_in_a_dry_run(store):
    assert run("broker", "config", "set", "fileReservedTime", 24).code == 7
    assert run("broker", "config", "set", "fileReservedTime", 24, "-n").code == 0
    assert change("fileReservedTime", 72).err.startswith("there is nothing to change")
    assert not (store / "rmqctl/settings.json").exists()


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (["set", "maxIndexNum", "3"], 7, "max_index_num is fixed for the life of a store"),
        (["set", "fileReservedTme", "3"], 2, "did you mean 'fileReservedTime'?"),
        (["get", "nope"], 2, "there is no broker setting 'nope'"),
        (["set", "fileReservedTime", "long"], 2, "'long' is not a number"),
        (["set", "flushDiskType", "LATER"], 2, "'LATER' is not one of ASYNC_FLUSH, SYNC_FLUSH"),
        (["set", "autoCreateTopicEnable", "7"], 2, "'7' is neither true nor false"),
        (["set", "messageDelayLevel", "1s soon"], 2, "message_delay_level: "),
        (["set", "deleteWhen", "25"], 2, "'25' is not a list of hours"),
        (["set", "store_host", "here"], 2, "store_host: "),
        (["set", "brokerName", " "], 2, "broker_name is ' '; it must not be empty"),
        (["set", "disk_space_clean_forcibly_ratio", "2"], 2, "is not a fraction from 0 to 1"),
        (["set", "fileReservedTime"], 2, "set takes a SETTING and a VALUE"),
        (["show"], 2, "'show' is neither get nor set"),
        (["get", "--unset"], 2, "--unset is for set"),
    ],
)
def test_what_can_not_be_is_one_sentence(store, args, code, sentence):
    result = run("broker", "config", *args, "-o", "json")
    assert (result.code, result.raw) == (code, b"")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert not (store / "rmqctl/settings.json").exists()


def test_every_setting_has_a_meaning_and_is_documented_with_rocketmqs_name():
    page = (ROOT / "docs/settings.md").read_text()
    for found in run("broker", "config", "-S", golden.store("basic-4.9"), "-o", "json").json():
        assert found["meaning"], found["setting"]
        assert f"`{found['setting']}`" in page
        java = java_name(found["setting"])
        line = next(line for line in page.splitlines() if f"| `{found['setting']}` |" in line)
        cell = line.split("|")[3].strip()
        if java is None:
            assert cell.startswith("(") or "there" in cell or "property" in cell or "," in cell
        else:
            assert cell.split(",")[0].removeprefix("...") in java


def test_a_store_of_another_program_keeps_all_its_own_files(tmp_path):
    root = golden.extract("basic-4.9", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    assert change("fileReservedTime", 24, "-S", root).code == 0
    after = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
    new = {path.relative_to(root).parts[0] for path in set(after) - set(before)}
    assert new <= {"rmqctl", "lock"}
    assert all(after[path] == before[path] for path in before)


@pytest.mark.slow
def test_a_config_that_is_handed_in_is_taken_as_it_is(store):
    change("brokerName", "b2")
    change("fileReservedTime", 24)
    with EmbeddedBroker.open(store, BrokerConfig(), store_config=StoreConfig()) as broker:
        assert broker.name == "broker-a"
        assert broker.view.config.file_reserved_time_hours == 72


NUMBERS = [
    (kind, field.name)
    for kind in (StoreConfig, BrokerConfig)
    for field in fields(kind)
    if type(field.default) is int and field.name not in FIXED_FIELDS
]


def test_each_number_has_a_range_with_its_default():
    for kind, name in NUMBERS:
        low, high = kind.RANGES[name]
        assert low <= getattr(kind(), name) <= high, name
    assert {name for kind in (StoreConfig, BrokerConfig) for name in kind.RANGES} == {
        name for _, name in NUMBERS
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "range_"),
    [
        ("flushIntervalCommitLog", 999_999_999_999_999, "1 to 2147483647"),
        ("flushIntervalCommitLog", 0, "1 to 2147483647"),
        ("syncFlushTimeout", 999_999_999_999_999, "1 to 2147483647"),
        ("flushConsumerOffsetInterval", 0, "1 to 2147483647"),
        ("flushDelayOffsetInterval", 0, "1 to 2147483647"),
        ("transactionCheckInterval", 0, "1 to 2147483647"),
        ("fileReservedTime", 1 << 31, "0 to 2147483647"),
        ("diskMaxUsedSpaceRatio", 101, "0 to 100"),
    ],
)
def test_a_number_outside_of_its_range_is_refused(store, name, value, range_):
    result = change(name, value)
    assert result.code == 2
    assert f" is {value}; it must be {range_}" in result.err
    assert not (store / "rmqctl/settings.json").exists()


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("store", "flush_interval_commit_log_ms", 999_999_999_999_999),
        ("store", "sync_flush_timeout_ms", 0),
        ("broker", "flush_consumer_offset_interval_ms", 0),
        ("broker", "transaction_check_interval_ms", 1 << 31),
    ],
)
@pytest.mark.filterwarnings("default::storage.errors.DamagedFileWarning")
def test_a_recorded_number_outside_of_its_range_is_named(tmp_path, part, name, value):
    root = tmp_path / "recorded"
    MessageStore.create(root, SMALL_STORE)
    write_store_settings(root, StoreSettings(**{"store": {}, "broker": {}, part: {name: value}}))
    result = run("produce", "T", "-S", root, stdin=b"x\n")
    assert result.code == 4
    assert f"settings.json is damaged at byte 0: {name} is {value}; it must be" in result.err
    result = run("topic", "list", "-S", root)
    assert result.code == 0
    assert f"{name} is {value}; it must be" in result.err


@pytest.mark.slow
def test_keep_for_ever_keeps_a_log_of_several_files(store):
    fill = b"".join(b"%d" % n + b"x" * 1_000_000 + b"\n" for n in range(20))
    assert run("produce", "T", "-q", stdin=fill).code == 0
    assert len(list((store / "commitlog").iterdir())) > 1
    result = change("fileReservedTime", 99_999_999)
    assert result.code == 0, result.err
    for words in (
        ("lag", "risk", "--file-reserved-time", "99999999h"),
        ("lag", "risk"),
        ("store", "du"),
        ("store", "clean", "-n"),
        ("lag", "report", "-o", "html", "--save", "report.html"),
    ):
        result = run(*words)
        assert result.code in (0, 3), (words, result.err)
        assert "internal error" not in result.err
