"""Topics that have queues on disk and no settings: what makes settings leaves no queue behind."""

import json

import pytest

from tests.support.cli import run


def lose_settings(store):
    for name in ("topics.json", "topics.json.bak"):
        (store / "config" / name).unlink(missing_ok=True)


def settings(store):
    document = json.loads((store / "config" / "topics.json").read_text())
    table = document["topicConfigTable"]
    return {name: (row["readQueueNums"], row["writeQueueNums"]) for name, row in table.items()}


@pytest.fixture
def eight(store):
    """A topic with a message in each of eight queues."""
    run("topic", "create", "t", "--queues", 8)
    for queue in range(8):
        assert run("produce", "t", "-Q", queue, stdin=b"x\n").code == 0
    lose_settings(store)
    return store


@pytest.mark.slow
@pytest.mark.parametrize("form", ["jsonl", "csv", "raw"])
def test_an_import_makes_settings_for_all_queues(eight, tmp_path, form):
    file = tmp_path / f"t.{form}"
    assert run("message", "export", "t", "--save", file).code == 0
    result = run("message", "import", file)
    assert result.code == 0, result.err
    assert settings(eight)["t"] == (8, 8)
    assert len(run("consume", "t", "-e").lines) == 16


@pytest.mark.slow
def test_an_import_keeps_queues_that_it_does_not_need(eight, tmp_path):
    file = tmp_path / "one.jsonl"
    file.write_text('{"topic":"t","queue_id":0,"body":"x"}\n')
    assert run("message", "import", file).code == 0
    assert settings(eight)["t"] == (8, 8)


@pytest.mark.slow
def test_a_load_makes_settings(store):
    run("topic", "create", "rmqctl-bench", "--queues", 2)
    assert run("produce", "rmqctl-bench", "-Q", 1, stdin=b"x\n").code == 0
    lose_settings(store)
    result = run("bench", "produce", "--queues", 4, "-c", 1, "--warm-up", "0s")
    assert result.code == 0, result.err
    assert settings(store)["rmqctl-bench"] == (4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["produce", "both"])
@pytest.mark.parametrize("queues", [(), ("--queues", 2)], ids=["default", "fewer"])
def test_a_load_leaves_no_queue_behind(eight, command, queues):
    result = run("bench", command, "t", "--existing", *queues, "-c", 1, "--warm-up", "0s")
    assert result.code == 0, result.err
    assert settings(eight)["t"] == (8, 8)
    assert len(run("consume", "t", "-e").lines) == 9


def test_a_load_names_one_queue(store):
    run("topic", "create", "rmqctl-bench", "--queues", 1)
    result = run("bench", "produce", "--queues", 4, "-c", 1)
    assert "exists with 1 queue, not 4" in result.err


@pytest.mark.slow
@pytest.mark.parametrize("dry", [(), ("-n",)], ids=["done", "dry run"])
def test_a_creation_with_fewer_queues_names_what_is_no_longer_read(eight, dry):
    result = run("topic", "create", "t", "--queues", 1, *dry)
    assert result.code == 0
    assert (
        "topic t has 8 queues on disk: queues from 1 on are no longer read; 7 messages lie there"
    ) in result.err
    run("topic", "create" if dry else "alter", "t", "--queues", 8, *(() if dry else ("-y",)))


@pytest.mark.slow
def test_a_creation_with_all_queues_warns_of_nothing(eight):
    result = run("topic", "create", "t", "--queues", 8)
    assert (result.code, result.err) == (0, "")


@pytest.mark.slow
def test_a_first_send_names_what_no_group_reads_then(eight):
    result = run("produce", "t", stdin=b"y\n")
    assert result.code == 0
    assert "no group reads its queues from 4 to 7 then" in result.err
    assert settings(eight)["t"] == (4, 4)
    assert "no group reads" not in run("produce", "t", stdin=b"y\n").err
    assert run("topic", "alter", "t", "--read-queue-nums", 8, "-y").code == 0
    assert len(run("consume", "t", "-e").lines) == 10
