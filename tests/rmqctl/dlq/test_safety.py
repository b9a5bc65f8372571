"""No part of a message controls a terminal, or becomes part of a command line."""

import re

import pytest

from broker.api.send_back import SendBackRequest
from broker.embedded.broker import EmbeddedBroker
from storage.format.message import Message
from tests.support.cli import run
from tests.support.examples import one_in

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\n\t"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FAILURE = {
    "RMQCTL_FAILURE_CLASS": f"Error{ESCAPE}",
    "RMQCTL_FAILURE_MESSAGE": f"text{ESCAPE}",
    "RMQCTL_FAILURE_STACK": ESCAPE,
    "RMQCTL_FAILURE_TIME": ESCAPE,
    "RMQCTL_FAILURE_CLIENT": ESCAPE,
}


@pytest.fixture
def hostile(store):
    """A dead letter and a retry of group g in which everything that can be is hostile."""
    message = Message("t", f"$(reboot) {ESCAPE}".encode(), tags=f"tag{ESCAPE}", keys=f"k{ESCAPE}")
    message.properties[f"name{ESCAPE}"] = f"=1+1{ESCAPE}"
    ids = []
    with EmbeddedBroker.open(store) as broker:
        for level in (-1, 17):
            sent = broker.send(message)
            ids.append(sent.msg_id)
            (stored,) = broker.query_unique("t", sent.msg_id)
            broker.send_message_back(
                SendBackRequest(
                    "g", "t", stored.commitlog_offset, sent.msg_id, level, failure=FAILURE
                )
            )
    return ids[1]


LOOKS = (
    ("dlq", "list"),
    ("dlq", "browse", "g"),
    ("dlq", "show", "g", "0"),
    ("dlq", "groups", "g"),
    ("dlq", "groups", "g", "--by", "tag"),
    ("dlq", "groups", "g", "--by", "key"),
    ("dlq", "groups", "g", "--by", "shape"),
    ("dlq", "export", "g"),
    ("dlq", "redrive", "g", "0", "--dry-run"),
    ("dlq", "ack", "g", "0", "--dry-run"),
    ("retry", "browse", "g"),
    ("retry", "agenda"),
    ("retry", "now", "g", "--all", "--dry-run"),
)


@pytest.mark.parametrize("form", one_in(2, ["table", "wide", "md"]))
@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_no_control_character_reaches_a_person(hostile, look, form):
    done = run(*look, "-o", form)
    assert done.code == 0
    assert RAW.findall(done.out + done.err) == []


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_lines_stay_lines_for_programs(hostile, look):
    as_json = run(*look, "-o", "json").json()
    rows = as_json if isinstance(as_json, list) else [as_json]
    assert len(run(*look, "-o", "jsonl").raw.rstrip(b"\n").split(b"\n")) == len(rows)
    assert len(run(*look, "-o", "tsv").raw.rstrip(b"\n").split(b"\n")) == len(rows) + 1


def test_every_attempt_is_shown_without_control_characters(hostile):
    done = run("retry", "show", "g", hostile, "-o", "wide")
    assert (done.code, len(done.lines), RAW.findall(done.out)) == (0, 3, [])


def test_nothing_of_a_message_becomes_a_command(hostile, store, tmp_path):
    saw = tmp_path / "saw"
    script = tmp_path / "see"
    script.write_text(f'#!/bin/sh\nenv | grep -a ^RMQ_ > {saw}; echo "$#" >> {saw}; cat\n')
    script.chmod(0o755)
    done = run("dlq", "redrive", "g", "0", "--pipe", script, "--execute", "--yes", "-q")
    assert done.code == 0
    seen = saw.read_text("utf-8")
    assert seen.splitlines()[-1] == "0", "no arguments"
    assert "RMQ_TAGS=tag\x1b]0;owned" in seen
    found = run("consume", "t", "-e", "-o", "json", "-q").json()
    bodies = {message["body"] for message in found}
    assert bodies == {f"$(reboot) {ESCAPE}"}


def test_what_a_program_complains_of_is_shown_escaped(hostile, tmp_path):
    script = tmp_path / "complain"
    script.write_text("#!/bin/sh\nprintf '\\033[2Jno\\n' >&2; exit 1\n")
    script.chmod(0o755)
    options = ("--pipe", script, "--execute", "--yes", "-o", "wide")
    done = run("dlq", "redrive", "g", "0", *options)
    assert (done.code, RAW.findall(done.out + done.err)) == (1, [])
    assert "\\x1b[2Jno" in done.out
