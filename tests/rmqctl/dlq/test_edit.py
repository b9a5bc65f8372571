"""Changing messages on their way: --edit, --set-property, --set-body, --pipe."""

import io
import json
import signal
import stat
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from broker.retry.redrive_properties import own_properties
from rmqctl import app
from rmqctl.admin.dead_letters.rewrite import Rewrite, rewriting_from
from rmqctl.cli.signals import Terminated, TimeLimit
from rmqctl.dlq.edit import content_of, document_of
from storage.format.message import Message, MessageExt
from storage.format.properties import encode_properties
from tests.support.cli import call, run
from tests.support.dead_letters import bury

DO = ("--execute", "--yes", "-q")
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\x01\x02"), max_size=9)
NAMES = VALUES.filter(bool)
JSON = st.recursive(
    st.none() | st.integers() | VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(VALUES, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def dead(store):
    run("topic", "create", "t", "--queues", 1)
    message = Message("t", b'{"sum": 12}', tags="A", keys="k  two", flag=7)
    message.properties["color"] = "red"
    return bury(store, "g", [message, Message("t", b"\xff\x00"), Message("t", b"text \x1b[2J")])


def redriven():
    found = run("consume", "t", "-e", "-o", "json", "-q").json()
    return [message for message in found if "RMQCTL_REDRIVES" in message["properties"]]


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """An editor that runs the shell lines that ``does`` is given, with the file as $1."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    script, saw = tmp_path / "an editor", tmp_path / "saw"

    def set_lines(lines):
        script.write_text(f'#!/bin/sh\ncp "$1" "{saw}"\n{lines}\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", f"'{script}'")
        monkeypatch.delenv("VISUAL", raising=False)

    return SimpleNamespace(does=set_lines, saw=lambda: json.loads(saw.read_text("utf-8")), path=saw)


def record(body, properties, flag=0):
    return MessageExt("%DLQ%g", body, encode_properties(properties), flag=flag)


@given(
    st.one_of(
        st.binary(max_size=40),
        st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace")),
        JSON.map(lambda value: json.dumps(value).encode()),
    ),
    st.dictionaries(NAMES, VALUES, max_size=4),
    st.integers(-(1 << 31), (1 << 31) - 1),
)
@pytest.mark.slow
def test_what_is_not_touched_comes_back_byte_for_byte(body, properties, flag):
    from rmqctl.dlq.edit import _as_text

    message = record(body, properties, flag)
    document, style = document_of(message)
    text = _as_text(document)
    assert all(char == "\n" or char.isprintable() or ord(char) > 0x9F for char in text)
    content = content_of(text, style)
    assert (content.body, content.flag) == (body, flag)
    assert content.properties is not None
    assert list(content.properties.items()) == list(own_properties(message.properties).items())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ('{"flag": 0}', "one of body"),
        ('{"body": "x", "body_base64": ""}', "one of body"),
        ('{"body": 7}', "body is not a text"),
        ('{"body_base64": "?"}', "body_base64"),
        ('{"body": "x", "colour": 1}', "'colour' is not a field"),
        ('{"body": "x", "flag": 4294967296}', "flag"),
        ('{"body": "x", "properties": {"a": 1}}', "'a' is not a text"),
        ('{"body": "x", "properties": {"DELAY": "3"}}', "DELAY is reserved"),
        ('{"body": "x", "properties": {"RMQCTL_REDRIVES": "0"}}', "RMQCTL_REDRIVES is reserved"),
        ('{"body": "x", "properties": {"a": "\\u0001"}}', "cannot be stored"),
        ('{"body": "\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_what_is_no_message_is_refused(text, wrong):
    from rmqctl.errors import UsageProblem

    with pytest.raises(UsageProblem, match=wrong):
        content_of(text, None)


@pytest.mark.slow
@pytest.mark.feature(91)
def test_a_message_is_changed_in_the_editor(dead, editor):
    editor.does("sed -i 's/12/13/; s/red/blue/' \"$1\"")
    assert run("dlq", "redrive", "g", "0", "--edit", *DO).code == 0
    assert editor.saw() == {
        "flag": 7,
        "properties": {"TAGS": "A", "KEYS": "k  two", "color": "red"},
        "body_json": {"sum": 12},
    }
    (message,) = redriven()
    assert (message["body"], message["flag"], message["tags"]) == ('{"sum": 13}', 7, "A")
    assert message["properties"]["color"] == "blue"
    assert message["properties"]["KEYS"] == "k  two"
    assert message["properties"]["RMQCTL_REDRIVES"] == "1"


@pytest.mark.parametrize(
    ("lines", "code", "sentence"),
    [
        ("true", 7, "the text was not changed in the editor"),
        ('rm "$1"', 7, "the editor removed the file; nothing was sent"),
        ('rm "$1"; mkdir "$1"', 7, "cannot be read: Is a directory; nothing was sent"),
        (': > "$1"', 7, "the edited text is empty"),
        ("exit 3", 7, "exit code 3"),
        ('echo "{" > "$1"', 2, "not JSON"),
        ('echo \'{"body": ""}\' > "$1"', 2, "body length is zero"),
    ],
)
def test_an_edit_that_comes_to_nothing_sends_nothing(dead, editor, lines, code, sentence):
    editor.does(lines)
    done = run("dlq", "redrive", "g", "0", "--edit", *DO)
    assert (done.code, sentence in done.err, done.out) == (code, True, "")
    assert redriven() == []


def test_an_edit_that_is_malformed_is_kept(dead, editor):
    editor.does('echo "{ much work" > "$1"')
    sentence = run("dlq", "redrive", "g", "0", "--edit", *DO).err
    kept = sentence.rpartition("kept in ")[2].partition(";")[0]
    assert Path(kept).read_text("utf-8") == "{ much work\n"


WAITS = """
import os, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.kill(os.getppid(), signal.SIGTERM)
signal.sigwait({signal.SIGTERM})
pathlib.Path(sys.argv[1]).write_text("restored")
"""


def redrive_in_an_editor():
    return call("dlq", "redrive", "g", "0", "--edit", *DO, start_new_session=True)


class Terminal(io.StringIO):
    """A terminal where an answer is typed, or where an exception ends the wait for it."""

    def __init__(self, answer=""):
        super().__init__(answer if isinstance(answer, str) else "")
        self.ends = None if isinstance(answer, str) else answer

    def isatty(self):
        return True

    def readline(self, size=-1):
        if self.ends is not None:
            raise self.ends
        return super().readline(size)


@pytest.fixture
def asked(monkeypatch):
    """Calls the program on a terminal; gives its exit code and standard error."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def call_it(answer, *args):
        err = Terminal()
        with monkeypatch.context() as patched:
            patched.setattr(sys, "stdin", Terminal(answer))
            patched.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), "utf-8"))
            patched.setattr(sys, "stderr", err)
            return app.main(args), err.getvalue()

    yield call_it
    for number, handler in before.items():
        signal.signal(number, handler)


def kept_in(words):
    """The text in the file that a warning names."""
    return Path(words.partition("the edited text is kept in ")[2].splitlines()[0]).read_text()


EDITED = '{"body": "much work"}'


@pytest.mark.parametrize(
    ("answer", "code"),
    [("n\n", 7), ("", 7), (KeyboardInterrupt(), 130), (Terminated(), 143), (TimeLimit(), 124)],
)
def test_an_edit_that_is_not_sent_is_kept_however_the_question_ends(
    dead, editor, asked, answer, code
):
    editor.does(f"echo '{EDITED}' > \"$1\"")
    ended, words = asked(answer, "dlq", "redrive", "g", "0", "--edit")
    assert ended == code
    assert kept_in(words) == f"{EDITED}\n"
    assert redriven() == []


def test_an_edit_that_is_sent_is_not_kept(dead, editor, asked, tmp_path):
    editor.does(f"echo '{EDITED}' > \"$1\"")
    ended, words = asked("y\n", "dlq", "redrive", "g", "0", "--edit")
    assert (ended, "kept in" in words) == (0, False)
    assert [message["body"] for message in redriven()] == ["much work"]
    assert list(tmp_path.glob("rmqctl-*")) == []


def test_an_edit_is_kept_where_the_editor_fails_or_the_message_is_refused(dead, editor):
    editor.does(f"echo '{EDITED}' > \"$1\"; exit 130")
    done = run("dlq", "redrive", "g", "0", "--edit", *DO)
    assert (done.code, "exit code 130" in done.err) == (7, True)
    assert kept_in(done.err) == f"{EDITED}\n"
    editor.does(
        "{ printf '{\"body\": \"'; head -c 4194305 /dev/zero | tr '\\0' x; printf '\"}'; } > \"$1\""
    )
    done = run("dlq", "redrive", "g", "0", "--edit", *DO)
    assert (done.code, len(kept_in(done.err))) == (1, 4194305 + 12)
    assert redriven() == []


@pytest.mark.slow
def test_an_interrupt_from_the_keyboard_is_for_the_editor(dead, editor):
    """The terminal sends it to the editor and to the program; an editor such as vi goes on."""
    editor.does("trap '' INT; kill -INT 0; sed -i 's/12/13/' \"$1\"")
    done = redrive_in_an_editor()
    assert (done.code, done.err) == (0, "")
    assert [message["body"] for message in redriven()] == ['{"sum": 13}']


@pytest.mark.slow
def test_an_editor_that_the_keyboard_ends_ends_the_call(dead, editor):
    editor.does('echo much work > "$1"; kill -INT 0')
    done = redrive_in_an_editor()
    assert (done.code, redriven()) == (130, [])
    kept = done.err.removeprefix("rmqctl: warning: the edited text is kept in ").strip()
    assert Path(kept).read_text("utf-8") == "much work\n"


@pytest.mark.slow
@pytest.mark.parametrize("edit", ["true", 'echo much work > "$1"'])
def test_an_end_from_outside_lets_the_editor_put_the_terminal_right(dead, editor, edit, tmp_path):
    """SIGTERM to the program only: the editor gets it, too, and what was changed is kept."""
    end = tmp_path / "end"
    editor.does(f"{edit}; exec {sys.executable} -c '{WAITS}' {end}")
    done = redrive_in_an_editor()
    assert (done.code, redriven()) == (143, [])
    assert end.read_text() == "restored"
    folders = list(tmp_path.glob("rmqctl-*"))
    if edit == "true":
        assert (done.err, folders) == ("", [])
    else:
        (kept,) = folders[0].iterdir()
        assert done.err == f"rmqctl: warning: the edited text is kept in {kept}\n"
        assert kept.read_text("utf-8") == "much work\n"


def test_the_editor_sees_no_control_characters(dead, editor):
    editor.does("true")
    run("dlq", "redrive", "g", "2", "--edit", *DO)
    assert b"\x1b" not in editor.path.read_bytes()
    assert editor.saw()["body"] == "text \x1b[2J"
    run("dlq", "redrive", "g", "1", "--edit", *DO)
    assert editor.saw()["body_base64"] == "/wA="


def test_one_message_is_edited_and_no_editor_opens_in_a_dry_run(dead, editor):
    editor.does("true")
    assert run("dlq", "redrive", "g", "--all", "--edit", *DO).code == 2
    plan = run("dlq", "redrive", "g", "0", "--edit", "-o", "json").json()
    assert plan[0]["note"] == "to be edited"
    assert not editor.path.exists()


def test_an_edit_is_part_of_the_run_that_is_resumed():
    from broker.retry.redrive import Content

    edit = Content(b"\xff\x00", {"a": "b"}, 3)
    for rewriting in (
        Rewrite(edited=edit),
        Rewrite({"x": ""}, b"\x00", "cat", None, True),
        Rewrite(),
    ):
        entry = json.loads(json.dumps(rewriting.entry()))
        assert rewriting_from(entry) == rewriting


@pytest.mark.slow
def test_properties_are_set_and_taken_away(dead):
    options = ("--set-property", "color=", "--set-property", "why=a=b", "--set-property", "TAGS=B")
    plan = run("dlq", "redrive", "g", "0", *options, "-o", "json").json()
    assert plan[0]["note"] == "without color; why is a=b; TAGS is B"
    run("dlq", "redrive", "g", "0", *options, *DO)
    (message,) = redriven()
    assert (message["tags"], message["body"]) == ("B", '{"sum": 12}')
    assert message["properties"]["why"] == "a=b"
    assert "color" not in message["properties"]
    assert run("dlq", "redrive", "g", "0", "--set-property", "UNIQ_KEY=x").code == 2
    assert run("dlq", "redrive", "g", "0", "--set-property", "x").code == 2


@pytest.mark.slow
def test_a_body_is_set_from_a_file(dead, tmp_path):
    path = tmp_path / "body"
    path.write_bytes(b"\x00new" * 2000)
    run("dlq", "redrive", "g", "1", "--set-body", path, *DO)
    (message,) = redriven()
    assert message["body"] == "\x00new" * 2000
    assert message["sys_flag"] & 1, "packed as a producer would"
    assert run("dlq", "redrive", "g", "1", "--set-body", tmp_path / "no").code == 2
    path.write_bytes(b"")
    assert run("dlq", "redrive", "g", "1", "--set-body", path).code == 2


@pytest.mark.feature(91)
@pytest.mark.slow
def test_a_body_that_is_too_large_is_not_sent_however_well_it_is_packed(dead, tmp_path):
    body = tmp_path / "body"
    body.write_bytes(bytes((4 << 20) + 1))
    for change in (("--set-body", body), ("--pipe", f"cat '{body}'")):
        done = run("dlq", "redrive", "g", 0, *change, "--execute", "-y", "-o", "json")
        (receipt,) = done.json()
        assert receipt["applied"] is False
        assert receipt["note"] == (
            "not sent: the message body has 4194305 bytes, allowed are 4194304"
        )


@pytest.mark.slow
def test_a_program_makes_the_new_body(dead):
    run("dlq", "redrive", "g", "0", "--pipe", "sed s/12/14/", *DO)
    assert redriven()[0]["body"] == '{"sum": 14}'
    assert run("dlq", "redrive", "g", "0", "--pipe", "no-such-program").code == 2
    assert run("dlq", "redrive", "g", "0", "--pipe", "'").code == 2
    nothing = run("dlq", "redrive", "g", "1", "--pipe", "true", *DO, "-o", "json")
    assert (nothing.code, "no output" in nothing.json()[0]["note"]) == (1, True)


@pytest.mark.parametrize("change", ["--set-body", "--pipe", "--edit"])
def test_an_empty_body_is_sent_where_it_is_asked_for(dead, editor, change, tmp_path):
    (tmp_path / "body").write_bytes(b"")
    editor.does('echo \'{"body": ""}\' > "$1"')
    value = {"--set-body": [tmp_path / "body"], "--pipe": ["true"], "--edit": []}[change]
    refused = run("dlq", "redrive", "g", "0", change, *value, *DO, "-o", "json")
    assert refused.code in (1, 2)
    assert "--allow-empty" in refused.err + refused.out
    assert redriven() == []
    done = run("dlq", "redrive", "g", "0", change, *value, "--allow-empty", *DO)
    assert done.code == 0, done.err
    assert [message["body"] for message in redriven()] == [""]


@pytest.mark.slow
def test_no_shell_is_between_a_message_and_the_program(dead, tmp_path):
    marker = tmp_path / "marker"
    run("dlq", "redrive", "g", "0", "--pipe", f"cat - ; touch {marker}", *DO)
    run("dlq", "redrive", "g", "0", "--pipe", f"echo $(touch {marker}) $RMQ_KEYS", *DO)
    assert not marker.exists()
    assert redriven()[-1]["body"].rstrip("\n") == f"$(touch {marker}) $RMQ_KEYS"
