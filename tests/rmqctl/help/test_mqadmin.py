import shlex

import pytest

from rmqctl.errors import UsageProblem
from rmqctl.help.mqadmin.given import parse
from rmqctl.help.mqadmin.translate import COMMANDS, known_name, sample, translate
from tests.support.cli import run
from tests.support.parsing import parsed

OFFLINE = [name for name, old in COMMANDS.items() if not isinstance(old.new, str)]
VALUES = {"brokerAddr": "127.0.0.1:10911", "msgId": "7F0000010BDE18B4AAC2000000000000", "perm": "6"}
NUMBERS = {
    *("readQueueNums", "writeQueueNums", "queueId", "offset", "index", "count", "level", "queue"),
    *("retryQueueNums", "retryMaxTimes", "brokerId", "whichBrokerWhenConsumeSlowly", "qid"),
    "MessageNumber",
}
SWITCHES = {
    *("order", "force", "consumeEnable", "consumeFromMinEnable", "consumeBroadcastEnable"),
    *("notifyConsumerIdsChanged", "removeOffset", "showClientIP", "printBody", "calculate"),
    *("offline", "print", "sendMessage"),
}


def words_of(name, *, everything, switch="true"):
    """A call of mqadmin with the options that must be given, or with all of them."""
    words = []
    for letter, (long, takes_value, required) in COMMANDS[name].specs.items():
        if not (required or everything):
            continue
        words.append(f"-{letter}")
        if takes_value:
            value = (
                "3" if long in NUMBERS else switch if long in SWITCHES else VALUES.get(long, "x")
            )
            words.append("2026-01-31#10:00:00:000" if "imestamp" in long else value)
    return words


def test_all_56_commands_of_4_9_8_are_known_in_whatever_case():
    assert len(COMMANDS) == 56
    assert known_name("CONSUMERPROGRESS") == "consumerProgress"
    listed = run("mqadmin", "-o", "json").json()
    assert [row["name"] for row in listed] == list(COMMANDS)
    assert all((row["here"] is None) is (row["why_not"] is not None) for row in listed)


@pytest.mark.parametrize("switch", ["true", "false"])
@pytest.mark.parametrize("everything", [False, True], ids=["required", "all"])
@pytest.mark.parametrize("name", OFFLINE)
def test_every_translation_is_a_line_that_the_program_takes(name, everything, switch):
    words = words_of(name, everything=everything, switch=switch)
    for line in translate(name, [*words, "--yes", "--reason", "a b"]).lines:
        names = parsed(line)
        assert line[: len(names)] == names
        if names != ["mqadmin"]:
            assert "--yes" in line
            assert "a b" in line


@pytest.mark.parametrize("name", OFFLINE)
def test_names_that_look_like_options_stay_names(name):
    old = COMMANDS[name]
    letters = [letter for letter, (long, *_) in old.specs.items() if long in {"topic", "groupName"}]
    words = words_of(name, everything=False)
    for letter in set(letters) & {"t", "g"}:
        if f"-{letter}" in words:
            words[words.index(f"-{letter}") + 1] = "--x"
    for line in translate(name, words).lines:
        assert parsed(line)


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - set(OFFLINE)))
def test_what_needs_a_network_says_so_in_one_sentence(name):
    result = run("mqadmin", name, *words_of(name, everything=True))
    assert (result.code, result.raw) == (1, b"")
    assert result.err.startswith(f"rmqctl: mqadmin {name} has no counterpart here: ")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "new"),
    [
        ("consumerProgress -g billing -n h:9876", "lag show --by queue billing"),
        ("consumerProgress --groupName=billing", "lag show --by queue billing"),
        ("consumerProgress -gbilling", "lag show --by queue billing"),
        ("consumerProgress", "lag show"),
        (
            "resetOffsetByTime -g g -t t -s now -f false --dry-run",
            "resetOffsetByTime -g g -t t -s now --no-force --dry-run",
        ),
        (
            "cloneGroupOffset -s from -d to -t t",
            "offset reset -g to -t t --to-group from --new-group",
        ),
        ("queryMsgById -i A,B", "message get A\nmessage get B"),
        ("sendMessage -t t -p '100% \\n' -k k", r"produce --key k --template '100%% \\n' t"),
        (
            "printMsg -t t -s a||b -b 2026-01-31#10:00:00:000",
            "consume --exit --tag 'a||b' --from '2026-01-31#10:00:00:000' --with-meta t",
        ),
        (
            "updateTopic -t t -r 4 -w 4 -p 6 -o true",
            "topic create --read-queue-nums 4 --write-queue-nums 4 --perm 6 --order t",
        ),
        (
            "queryCq -t t -q 2 -i 300001 -c 5",
            "store dump --where 'queue_offset >= 300001 and queue_offset < 300006' "
            "consumequeue/t/2/00000000000006000000",
        ),
    ],
)
def test_options_become_ours(line, new):
    name, *words = shlex.split(line)
    assert "\n".join(map(shlex.join, translate(name, words).lines)) == new


@pytest.mark.slow
def test_a_topic_that_is_there_is_altered(store):
    run("topic", "create", "t")
    result = run("mqadmin", "updateTopic", "-t", "t", "-w", 3, "-c", "DefaultCluster", "-y")
    assert "ignored: -c (clusterName)" in result.err
    assert "rmqctl topic alter --write-queue-nums 3 t -y" in result.err
    [row] = [row for row in run("topic", "list", "-o", "json").json() if row["topic"] == "t"]
    assert row["write_queues"] == 3


def test_a_unit_is_found_in_the_file_of_this_stores_length(store):
    run("topic", "create", "t", "--queues", 1)
    run("produce", "t", "-q", stdin=b"a\nb\nc\n")
    shown = run("mqadmin", "queryCq", "-t", "t", "-q", "0", "-i", "1", "-c", "1", "-o", "json")
    assert shown.code == 0, shown.err
    assert [row["queue_offset"] for row in shown.json()] == [1]
    lines = translate("queryCq", ["-t", "t", "-q", "0", "-i", "30000"], store).lines
    assert lines[0][-1] == "consumequeue/t/0/00000000000000600000"


def test_the_new_form_is_printed_on_stderr_and_run(store):
    run("mqadmin", "sendMessage", "-t", "t", "-p", "50%\\", "-c", "paid", "-i", "0")
    result = run("mqadmin", "consumeMessage", "-t", "t", "-i", "0", "-n", "localhost:9876")
    assert result.err.splitlines() == [
        "rmqctl: ignored: -n (namesrvAddr)",
        "rmqctl consume --exit --queue 0 --count 128 --with-meta t",
    ]
    assert "\tpaid\t" in result.lines[1]
    assert "\t50%\\\\\t" in result.lines[1]
    quiet = run("-q", "mqadmin", "topicStatus", "-t", "t", "-o", "json")
    assert quiet.err == ""


def test_our_own_options_stand_before_the_name(store):
    run("topic", "create", "t", "--queues", 1)
    result = run("mqadmin", "-o", "json", "topicStatus", "-t", "t")
    assert [row["topic"] for row in result.json()] == ["t"]
    assert run("-o", "csv", "mqadmin", "topicStatus", "-t", "t").lines[0].startswith("topic,")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["consumerProgres"], "has no command 'consumerProgres', did you mean 'consumerProgress'?"),
        (["xyzzy"], "has no command 'xyzzy'"),
        (["topicStatus"], "mqadmin topicStatus: -t (topic) is missing"),
        (["topicStatus", "-t"], "-t needs a value"),
        (["topicStatus", "-t", "t", "-x"], "has no option '-x'"),
        (["topicStatus", "t"], "has no option 't'"),
        (["topicStatus", "-t", "t", "--nope"], "no such option"),
        (["updateSubGroup", "-g", "g", "-s", "maybe"], "-s: 'maybe' is neither true nor false"),
        (["queryCq", "-t", "t", "-q", "0", "-i", "x"], "-i: 'x' is not a number from 0 on"),
        (["queryCq", "-t", "t", "-q", "-1", "-i", "0"], "-q: '-1' is not a number"),
    ],
)
def test_what_mqadmin_does_not_know_is_a_usage_error(store, args, sentence):
    result = run("mqadmin", *args)
    assert result.code == 2
    assert sentence in result.err.splitlines()[-1]


def test_help_shows_options_and_the_new_form():
    row = run("mqadmin", "help", "consumerprogress", "-o", "json")
    assert row.code == 0
    for args in (["help", "deleteTopic"], ["deleteTopic", "-h"], ["deleteTopic", "--help"]):
        assert run("-o", "json", "mqadmin", *args).json() == {
            "name": "deleteTopic",
            "here": "rmqctl topic delete TOPIC",
            "why_not": None,
            "options": ["-t, --topic (required)", "-c, --clusterName"],
        }


@pytest.mark.slow
def test_samples_are_lines_that_the_program_takes():
    for name in OFFLINE:
        for line in sample(name).split("; "):
            assert parsed(shlex.split(line)), line


def test_a_value_may_begin_with_a_dash():
    values, own = parse("topicStatus", COMMANDS["topicStatus"], ["-t", "-x", "--columns=a"])
    assert (values, own) == ({"t": "-x"}, ["--columns=a"])
    with pytest.raises(UsageProblem):
        parse("topicStatus", COMMANDS["topicStatus"], ["-t", "t", "stray"])
