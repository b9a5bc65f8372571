"""``doctor --bundle``: what is in the archive, and that no message and no name is."""

import json
import re
import sys
import tarfile
from typing import Any

import pytest

from broker.embedded.broker import EmbeddedBroker
from broker.new_store import create_store
from client.runtime.client_config import ClientConfig
from rmqctl import Message, Producer
from rmqctl.help.bundle import archive
from rmqctl.help.bundle.pseudonyms import Pseudonyms
from storage.config import SMALL_STORE
from storage.configs.subscription_groups import SubscriptionGroupConfig
from storage.configs.topics import TopicConfig
from tests.support import golden, golden_samples
from tests.support.cli import run
from tests.support.dead_letters import give_back
from tests.support.opened_files import opened_below

NAMES = {
    "topic": "ZebraPayments",
    "target": "GnuRefunds",
    "group": "QuaggaBilling",
    "unsettled": "LemurAudit",
    "user": "okapi",
    "host": "ibis-07",
    "reason": "aardwolf ticket 4711-8",
    "broker": "KinkajouBroker",
    "folder": "ocelotcorp",
    "client": "TarsierClient",
    "producers": "MargayProducers",
    "context": "serval-prod",
}
CONTENT = {
    "key": "numbat-key-77",
    "tag": "TapirTag",
    "body": "wombat pays 30",
    "property": "dingoName",
    "value": "dhole value",
    "why": "caracal failed",
    "edited": "the new jerboa",
}
ADDRESS = "203.0.113.77"


@pytest.fixture
def telling(tmp_path, monkeypatch):
    """A store in which everything has a name that is found nowhere else; damaged here and there."""
    root = tmp_path / NAMES["folder"] / "s"
    create_store(root, SMALL_STORE)
    topic, group = NAMES["topic"], NAMES["group"]
    with EmbeddedBroker.open(root) as broker:
        for name in (topic, NAMES["target"]):
            broker.update_topic(TopicConfig(name, 2, 2))
        for name in (group, NAMES["unsettled"]):
            broker.update_group(SubscriptionGroupConfig(name))
        message = Message(
            topic,
            CONTENT["body"].encode(),
            tags=CONTENT["tag"],
            keys=[CONTENT["key"]],
            properties={CONTENT["property"]: CONTENT["value"]},
        )
        sent = [broker.send(message, 0) for _ in range(3)]
        stored = broker.query_unique(topic, sent[0].msg_id)[0]
        give_back(broker, group, stored, why=CONTENT["why"])
        give_back(broker, group, stored, level=3, why=CONTENT["why"])
        note = {"command": "offset reset", "user": NAMES["user"], "host": NAMES["host"]}
        note["reason"] = NAMES["reason"]
        broker.progress.move(group, {(topic, 0): 2}, note)
    on = ("-S", root, "--yes", "-q")
    assert run("broker", "config", "set", "broker_name", NAMES["broker"], *on).code == 0
    assert run("broker", "config", "set", "store_host", f"{ADDRESS}:10911", *on).code == 0
    redrive = ("dlq", "redrive", group, "--all", "--target", NAMES["target"])
    body = tmp_path / "body"
    body.write_text(CONTENT["edited"])
    done = run(*redrive, "--set-body", body, "--set-property", f"{CONTENT['property']}=x", *on)
    assert done.code == 0, done.err
    config = tmp_path / "settings.toml"
    config.write_text(
        f'context = "{NAMES["context"]}"\nreason = "{NAMES["reason"]}"\n'
        f'[contexts.{NAMES["context"]}]\nstore = "{root}"\n'
    )
    monkeypatch.setenv("RMQCTL_CONFIG", str(config))
    _damage(root)
    return root


def _damage(root):
    """Pieces of messages in files that are no place for them, and a topic that no file names."""
    sentence = f"{CONTENT['body']} {CONTENT['key']}"
    (root / "config" / "consumerFilter.json").write_text(f'{{"{sentence}": ')
    (root / "config" / f"{NAMES['client']}.json").write_text(f'{{"{NAMES["client"]}": 1}}')
    journal = root / "rmqctl" / "journal" / "00000001.jsonl"
    journal.write_bytes(
        journal.read_bytes() + f'{{"crc":"00000000","entry":"{sentence}"}}\n'.encode()
    )
    (root / "consumequeue" / NAMES["target"] / "1").mkdir(exist_ok=True)
    (root / "consumequeue" / NAMES["target"] / "1" / CONTENT["tag"]).touch()
    log = root / "commitlog" / f"{0:020d}"
    data = bytearray(log.read_bytes())
    place = data.index(CONTENT["body"].encode())
    data[place] ^= 1  # the checksum fails
    other = data.index(NAMES["topic"].encode(), place + 200)
    data[other : other + 5] = b"Fossa"  # a record of a topic that nothing else knows
    with log.open("r+b") as file:
        file.write(data)


def members(path):
    with tarfile.open(path) as packed:
        return {
            member.name.removeprefix("rmqctl-bundle/"): _content(packed, member)
            for member in packed.getmembers()
        }


def _content(packed, member):
    with packed.extractfile(member) as file:
        return file.read().decode()


def found_in(files, texts):
    """Which of the texts are in names or contents of files."""
    whole = "\n".join([*files, *files.values()]).lower()
    parts = {part for text in texts for part in (text, *re.findall(r"[A-Za-z]{6,}", text))}
    ours = {"refunds", "payments", "client", "broker", "producers", "billing", "ticket", "failed"}
    return sorted(part for part in parts if part.lower() in whole and part.lower() not in ours)


def packed(target, *args, code=0):
    done = run("doctor", "--bundle", target, *args)
    assert done.code == code, done.err
    return members(target)


@pytest.mark.slow
def test_no_name_and_no_message_is_in_it(telling, tmp_path):
    config = ClientConfig(instance_name=NAMES["client"])
    with (
        EmbeddedBroker.open(telling) as broker,
        Producer(NAMES["producers"], brokers=[broker], client_config=config),
    ):
        files = packed(tmp_path / "b.tar.gz")
    assert found_in(files, [*NAMES.values(), *CONTENT.values(), "Fossa", ADDRESS]) == []


@pytest.mark.slow
def test_without_redaction_names_are_in_it_and_messages_are_not(telling, tmp_path):
    files = packed(tmp_path / "b.tar.gz", "--no-redact")
    there = found_in(files, NAMES.values())
    for what in ("topic", "target", "group", "user", "host", "reason", "broker", "folder"):
        assert NAMES[what] in there, what
    assert found_in(files, CONTENT.values()) == [CONTENT["tag"]]  # the name of a file


@pytest.mark.slow
def test_the_same_name_has_one_pseudonym_in_all_files_and_another_one_next_time(telling, tmp_path):
    first, second = packed(tmp_path / "1.gz"), packed(tmp_path / "2.gz")
    pseudonyms = []
    for files in (first, second):
        topics = json.loads(files["store/config/topics.json"])["topicConfigTable"]
        users = {name for name in topics if re.fullmatch(r"topic-[0-9a-f]{10}", name)}
        for name in users:
            assert topics[name]["topicName"] == name
        folders = set(re.findall(r"^consumequeue/(topic-\w+)\t", files["files.tsv"], re.MULTILINE))
        assert folders
        assert folders <= users
        entries = list(map(json.loads, files["store/rmqctl/journal/00000001.jsonl"].splitlines()))
        (reset,) = (entry for entry in entries if entry.get("command") == "offset reset")
        topic, group = reset["moves"][0]["topic"], reset["moves"][0]["group"]
        assert topic in folders
        assert f"%DLQ%{group}" in topics
        assert reset["moves"][0]["new"] == 2
        assert entries[-1] == {"problem": "the checksum is wrong", "bytes": len(moves_line())}
        pseudonyms.append(topic)
        assert f"{topic} queue 0" in files["fsck.jsonl"]
    assert pseudonyms[0] != pseudonyms[1]


def moves_line():
    return f'{{"crc":"00000000","entry":"{CONTENT["body"]} {CONTENT["key"]}"}}'


@pytest.mark.slow
def test_the_manifest_says_what_each_file_is_and_what_could_not_be_read(telling, tmp_path):
    files = packed(tmp_path / "b.tar.gz")
    manifest = json.loads(files["manifest.json"])
    rows = {row["name"]: row for row in manifest["files"]}
    assert manifest["names_replaced"] is True
    assert files.keys() - {"manifest.json"} == {name for name, row in rows.items() if row["bytes"]}
    assert all(row["what"] for row in rows.values())
    assert all(
        len(files[name].encode()) == row["bytes"] for name, row in rows.items() if row["bytes"]
    )
    broken = rows["store/config/consumerFilter.json"]
    assert broken["problem"].startswith("CorruptFileError: ")
    assert "it is not JSON" in broken["problem"]
    for name in ("version.json", "doctor.jsonl", "settings.jsonl", "files.tsv", "fsck.jsonl"):
        assert rows[name]["problem"] is None
    for name in ("store-info.json", "broker-status.json", "broker-settings.jsonl"):
        assert files[name]
    findings = [json.loads(line) for line in files["fsck.jsonl"].splitlines()]
    assert {"RECORD_DAMAGED"} <= {row.get("code") for row in findings}
    assert json.loads(files["shared-state.json"])["words"]["log_end"] > 0


def facts(root):
    """What a change would show in, but for the time of the last reading."""
    return {
        path: (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        for path in [root, *root.rglob("*")]
        for status in [path.lstat()]
    }


@pytest.mark.slow
def test_it_changes_nothing_takes_no_lock_and_writes_nothing_into_the_store(telling, tmp_path):
    before = facts(telling)
    locks: list[Any] = []

    def watch(event, args):
        if event in ("fcntl.fcntl", "fcntl.flock", "fcntl.lockf") and watching:
            locks.append((event, args))

    watching = True
    sys.addaudithook(watch)
    with opened_below(telling):
        packed(tmp_path / "b.tar.gz")
    watching = False
    assert facts(telling) == before
    set_lock = {6, 7, 37, 38}  # F_SETLK, F_SETLKW and those of open files
    taken = [args for event, args in locks if event == "fcntl.flock" or args[1] in set_lock]
    assert len(taken) <= 1, taken  # the trial of the file system, in an unnamed file


@pytest.mark.slow
def test_a_target_that_exists_or_lies_in_the_store_is_refused(store, tmp_path):
    target = tmp_path / "b.tar.gz"
    target.write_text("mine")
    done = run("doctor", "--bundle", target)
    assert (done.code, target.read_text()) == (7, "mine")
    assert "exists already and a bundle replaces nothing" in done.err
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert run("doctor", "--bundle", tmp_path / "link").code == 7
    assert run("doctor", "--bundle", store / "rmqctl" / "b.tar.gz").code == 7
    assert run("doctor", "--no-redact").code == 2
    done = run("doctor", "--bundle", tmp_path / "no" / "b.tar.gz")
    assert (done.code, "No such file" in done.err) == (5, True)


def test_a_bundle_without_a_store_has_the_environment(tmp_path):
    files = packed(tmp_path / "b.tar.gz", "-S", tmp_path / "no")
    assert files.keys() == {"manifest.json", "version.json", "doctor.jsonl", "settings.jsonl"}


@pytest.mark.slow
def test_what_is_too_long_is_cut_and_told(store, tmp_path, monkeypatch):
    for number in range(300):
        (store / "config" / f"{number}.json").write_text(json.dumps({"a" * 3000: number}))
    monkeypatch.setattr(archive, "MOST_BYTES", 300 << 10)
    done = run("doctor", "--bundle", tmp_path / "b.tar.gz")
    assert done.code == 0, done.err
    assert "too long, so cut: " in done.err
    assert (tmp_path / "b.tar.gz").stat().st_size < 300 << 10
    files = members(tmp_path / "b.tar.gz")
    assert sum(map(len, files.values())) <= 300 << 10
    manifest = json.loads(files["manifest.json"])
    assert any(row["lines_left_out"] for row in manifest["files"])


@golden_samples.SOME
@pytest.mark.slow
def test_stores_of_real_brokers_whole_and_damaged(name, tmp_path):
    root = golden.store(name)
    before = facts(root)
    files = packed(tmp_path / "b.tar.gz", "-S", root)
    manifest = json.loads(files["manifest.json"])
    assert facts(root) == before
    problems = {row["name"]: row["problem"] for row in manifest["files"] if row["problem"]}
    assert problems.keys() <= {"shared-state.json"}, problems  # no process of ours was there
    known = {row["topic"] for row in golden.manifest(name).get("queues", [])}
    whole = "\n".join([*files, *files.values()])
    leaked = {t for t in known if t.startswith("Golden") and re.search(rf"\b{t}\b", whole)}
    assert not leaked
    assert (tmp_path / "b.tar.gz").stat().st_size < archive.MOST_BYTES


def test_a_store_that_no_command_can_open_has_a_bundle_all_the_same(tmp_path):
    root = tmp_path / "r"
    (root / "commitlog").mkdir(parents=True)
    (root / "commitlog" / "garbage").write_bytes(b"\xff" * 100)
    (root / "rmqctl").mkdir()
    (root / "rmqctl" / "store.json").write_text('{"version": 99}')
    done = run("doctor", "--bundle", tmp_path / "b.tar.gz", "-S", root)
    assert "could not be read, or not to the end: " in done.err
    files = members(tmp_path / "b.tar.gz")
    manifest = {row["name"]: row for row in json.loads(files["manifest.json"])["files"]}
    assert "commitlog/file-" in files["files.tsv"]
    assert "99" in manifest["store-info.json"]["problem"]
    assert files["store/rmqctl/store.json"] == '{\n "version": 99\n}\n'


def test_folders_that_are_named_after_clients_and_groups_have_their_pseudonyms():
    names = Pseudonyms()
    client, group = names.name("host", "10.0.0.1@X"), names.name("group", "new-orders")
    path = "rmqctl/broadcast/10.0.0.1@X/new-orders/offsets.json"
    assert names.path(path) == f"rmqctl/broadcast/{client}/{group}/offsets.json"
    topic = names.name("topic", "locks")
    assert names.path("consumequeue/locks/0/1") == f"consumequeue/{topic}/0/1"
