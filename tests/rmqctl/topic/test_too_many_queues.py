"""Numbers of queues beyond what a list of queues can hold: bounded, said once, found by fsck."""

import json
import re
from typing import Any

import pytest

from storage.config import SMALL_STORE
from storage.configs.subscription_groups import subscription_groups_file
from storage.configs.topics import topics_file
from storage.errors import DamagedFileWarning
from storage.format.fastjson import loads
from storage.format.shapes import MAX_QUEUES
from storage.store import MessageStore
from tests.support.cli import run

HUGE = 2_147_483_647
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
SAID = "readQueueNums of topic T is 2147483647"


pytestmark = pytest.mark.filterwarnings("default::storage.errors.DamagedFileWarning")


@pytest.fixture(name="root")
def _root(tmp_path, monkeypatch):
    """A store with a topic T of 2^31 - 1 queues and a group g with as many retry queues."""
    store = tmp_path / "s"
    MessageStore.create(store, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(store))
    run("topic", "create", "T", "--queues", 18)
    run("group", "create", "g")
    run("produce", "T", "--queue", 17, "-q", stdin=b"a\n")
    run("consume", "T", "-g", "g", "-e", "-q")
    make_huge(store, TOPICS, "T")
    make_huge(store, GROUPS, "g")
    return store


def make_huge(store, file, name):
    """Set all numbers of queues in one row."""
    path = store / file
    text = path.read_text()
    begin = text.index(f'"{name}":{{')
    end = text.index("}", begin)
    row = re.sub(r'(QueueNums"):\d+', rf"\1:{HUGE}", text[begin:end])
    path.write_text(text[:begin] + row + text[end:])
    assert str(HUGE) in path.read_text()


def topics_in(store):
    document: Any = loads((store / TOPICS).read_text())
    return document["topicConfigTable"]


def counts(path):
    return [int(number) for number in re.findall(r'QueueNums":(\d+)', path.read_text())]


def test_readers_have_the_queues_of_folders_in_place_of_the_number(root):
    with pytest.warns(DamagedFileWarning, match=SAID):
        config = topics_file(root).read(0).items["T"]
    assert (config.read_queue_nums, config.write_queue_nums) == (18, 18)
    with pytest.warns(DamagedFileWarning, match="retryQueueNums of group g is 2147483647"):
        group = subscription_groups_file(root).read(0).items["g"]
    assert group.retry_queue_nums == 1


@pytest.mark.parametrize(
    "words",
    [
        ("consume", "T", "-e"),
        ("produce", "T", "--queue", 0),
        ("topic", "queues", "T"),
        ("lag", "show", "g"),
        ("offset", "inspect", "g"),
        ("store", "recover-offsets", "-n"),
    ],
    ids=lambda words: " ".join(map(str, words[:2])),
)
def test_commands_go_on_and_say_it_once(root, words):
    result = run(*words, stdin=b"b\n")
    assert result.code == 0, result.err
    assert result.err.count(SAID) == 1


@pytest.mark.slow
def test_no_retry_topic_gets_such_a_number(root):
    run("group", "create", "h")
    make_huge(root, GROUPS, "h")
    assert run("consume", "T", "-g", "h", "-e", "-q").code == 0
    written = topics_in(root)
    assert written["%RETRY%h"]["readQueueNums"] == 1
    assert max(counts(root / TOPICS)) <= MAX_QUEUES


@pytest.mark.slow
def test_fsck_names_file_and_topic_and_its_remedy_works(root):
    found = [
        row
        for row in run("store", "fsck", "-o", "json").json()["findings"]
        if row["code"] == "QUEUE_COUNT_WRONG"
    ]
    assert [(row["file"], row["what"]) for row in found] == [
        (TOPICS, "topic T has 2147483647 as readQueueNums"),
        (TOPICS, "topic T has 2147483647 as writeQueueNums"),
        (GROUPS, "group g has 2147483647 as retryQueueNums"),
    ]
    for row in found[1:]:
        words = row["fix"].replace(" N", " 2").split()[1:]
        assert run(*words, "--yes").code == 0
    assert max(counts(root / TOPICS) + counts(root / GROUPS)) < MAX_QUEUES
    assert "QUEUE_COUNT_WRONG" not in run("store", "fsck").out


def test_a_change_of_another_topic_writes_the_queues_of_folders(root):
    assert run("topic", "create", "other").code == 0
    written = topics_in(root)["T"]
    assert (written["readQueueNums"], written["writeQueueNums"]) == (18, 18)


@pytest.mark.parametrize("count", [MAX_QUEUES + 1, HUGE])
def test_no_command_takes_such_a_number(store, count):
    run("topic", "create", "T")
    run("group", "create", "g")
    for words in (
        ("topic", "create", "x", "--queues", count),
        ("topic", "alter", "T", "--queues", count, "--yes"),
        ("group", "create", "x", "--retry-queue-nums", count),
        ("group", "alter", "g", "--retry-queue-nums", count, "--yes"),
    ):
        result = run(*words)
        assert result.code == 2
        assert str(count) in result.err


@pytest.mark.slow
def test_recover_config_never_writes_such_a_number(root):
    offsets = root / "config/consumerOffset.json"
    (root / "rmqctl/offsets.log").unlink()
    (root / "rmqctl/offsets.json").unlink(missing_ok=True)
    offsets.write_text(json.dumps({"offsetTable": {"Lost@g": {str(HUGE): 1}}}))
    text = (root / TOPICS).read_text()
    (root / TOPICS).write_text(text[: text.rindex("perm")])
    (root / f"{TOPICS}.bak").unlink(missing_ok=True)
    assert run("store", "recover-config", "--execute", "--yes").code == 0
    written = topics_in(root)
    assert written["Lost"]["readQueueNums"] == 1
    assert max(counts(root / TOPICS)) <= MAX_QUEUES
