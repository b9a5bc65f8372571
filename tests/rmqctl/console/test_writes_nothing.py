"""The console writes nothing: read only by no key at all, with changes on by no slip of a key."""

import asyncio
import hashlib
import re
import shlex
import shutil
import string
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from textual.events import Key as KeyEvent

from broker.embedded.broker import EmbeddedBroker
from broker.members.living import members_by_group
from broker.new_store import create_store
from rmqctl.console.keys import KEYS, keys_of
from rmqctl.console.plans.sheet import Stage
from rmqctl.console.screens.table import spec_of
from storage.clock import now_ms
from storage.config import SMALL_STORE
from storage.configs.topics import TopicConfig
from storage.format.message import Message
from tests.rmqctl.console.test_rows import RICH_NAMES, places
from tests.support.cli import run
from tests.support.console import drive, terminal
from tests.support.consumer_puppet import consumer_puppet
from tests.support.consumers import eventually
from tests.support.dead_letters import bury, give_back
from tests.support.rich_store import make_rich_store


@pytest.fixture(autouse=True)
def somewhere(tmp_path, monkeypatch):
    """A folder for what is written outside of the store, such as pictures."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


ENDS = {"quit", "suspend"}
ASKING = {*ENDS, "go_to", "find", "find_fuzzy", "export"}
TWICE = {"c": "cc"}
"""Keys that open a list, which takes all other keys, and close it."""
CHARACTERS = {
    **{name: name for name in string.ascii_letters + string.digits},
    "space": " ",
    "colon": ":",
    "slash": "/",
    "asterisk": "*",
    "minus": "-",
    "tilde": "~",
    "question_mark": "?",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "exclamation_mark": "!",
    "full_stop": ".",
    "underscore": "_",
}
"""Keys that type a character."""
STEERING = sorted({name for key in KEYS if key.action not in ENDS for name in key.keys})
ON_PLANS = ["enter"] * 4 + [name for key in KEYS if key.changes for name in key.keys] * 2
RANDOM_KEYS = st.lists(
    st.one_of(
        st.sampled_from(STEERING), st.sampled_from(ON_PLANS), st.sampled_from(sorted(CHARACTERS))
    ),
    min_size=500,
    max_size=500,
)

UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""A list of keys that fails is shown as it is: to shrink it takes many minutes."""


def all_places(store):
    """Every screen, with names of the rich store."""
    with EmbeddedBroker.open(store, read_only=True) as broker:
        msg_id = broker.view.get_message("orders", 0, 0, 1).messages[0].msg_id
    names = {name: values[:1] for name, values in RICH_NAMES.items()}
    return places({**names, "QUEUE": ["0"], "OFFSET": ["0"], "ID": [msg_id]})


def files_of(store):
    """Every file and folder: its times and its bytes."""
    found = {}
    for path in sorted(store.rglob("*")):
        info = path.lstat()
        whole = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(whole).hexdigest()
        found[str(path.relative_to(store))] = (info.st_mtime_ns, info.st_size, digest)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "one_in", [2, pytest.param(1, marks=pytest.mark.long)], ids=["some screens", "all screens"]
)
def test_no_key_of_any_screen_changes_the_store_while_it_is_read_only(tmp_path, one_in):
    store = make_rich_store(tmp_path / "s", now_ms() - 600_000).root
    before = files_of(store)

    async def steps(console):
        app = console.app
        for place in all_places(store)[::one_in]:
            app.paused = False
            app.go(place)
            await console.read()
            for key in keys_of(place.screen):
                if key.action in ENDS:
                    continue
                app.paused = False
                app.go(place)
                for name in (*key.keys, "escape", "escape"):
                    app.on_key(KeyEvent(name, CHARACTERS.get(name)))
                await asyncio.sleep(0)
                assert app.desk.sheet is None
        app.paused = False
        app.go(place)
        await console.read()

    drive(store, steps, "groups")
    assert files_of(store) == before


@pytest.fixture(scope="module")
def busy_store(tmp_path_factory):
    """A store in which every change has something to do."""
    store = tmp_path_factory.mktemp("keys") / "prod-store"
    create_store(store, SMALL_STORE)
    messages = [Message("orders", b"%d" % n, keys=f"k{n}") for n in range(6)]
    bury(store, "billing", messages, ["timeout", "no stock"])
    with EmbeddedBroker.open(store) as broker:
        for number in range(3):
            sent = broker.send(Message("orders", b"again %d" % number))
            (stored,) = broker.query_unique("orders", sent.msg_id)
            give_back(broker, "billing", stored, level=18)
    run("consume", "orders", "-g", "billing", "-e", "-c", "4", "-S", store)
    run("offset", "reset", "billing", "-t", "orders", "--to-earliest", "--yes", "-S", store)
    return store


def press_all(store, keys):
    """Press keys with changes on; gives the names of the stages that were reached."""
    reached = set()
    left = list(keys)

    async def steps(console):
        app = console.app
        app.desk.writes = True
        await console.read()
        while left and app.return_value is None:
            name = left.pop(0)
            app.on_key(KeyEvent(name, CHARACTERS.get(name)))
            await asyncio.sleep(0)
            sheet = app.desk.sheet
            if sheet is not None:
                await console.until(lambda sheet=sheet: sheet.stage is not Stage.READING)
                reached.add(sheet.stage)

    while left:
        drive(store, steps, "dlq", "billing")
    return reached


def check_random_keys(store, keys):
    before = files_of(store)
    reached = press_all(store, keys)
    assert files_of(store) == before
    assert not reached & {Stage.APPLYING, Stage.DONE}
    return reached


@pytest.mark.slow
def test_random_keys_with_changes_on_change_nothing(busy_store):
    reached = set()

    @settings(
        max_examples=1, deadline=None, phases=UNSHRUNK, suppress_health_check=list(HealthCheck)
    )
    @given(RANDOM_KEYS)
    def check(keys):
        reached.update(check_random_keys(busy_store, keys))

    check()
    prefix = ["R", "enter", "enter", "enter", "enter", "x", "enter"]
    assert Stage.NAME in check_random_keys(busy_store, prefix)


@pytest.mark.long
@settings(max_examples=20, deadline=None, phases=UNSHRUNK, suppress_health_check=list(HealthCheck))
@given(RANDOM_KEYS)
def test_ten_thousand_random_keys_with_changes_on_change_nothing(busy_store, keys):
    check_random_keys(busy_store, keys)


WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND")
LOCKING = re.compile(r"F_SETLK|F_OFD_SETLK|LOCK_SH|LOCK_EX")
READING = re.compile(r"^\d+ +(openat\(|fcntl\(|<\.\.\. openat|<\.\.\. fcntl)")
TRACED = (
    "openat,open,creat,fcntl,flock,mkdir,mkdirat,unlink,unlinkat,rename,renameat,renameat2,"
    "ftruncate,truncate,link,linkat,symlink,symlinkat,chmod,fchmod,utimensat,fallocate"
)


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace on PATH")
@pytest.mark.slow
@pytest.mark.parametrize(
    "one_in", [2, pytest.param(1, marks=pytest.mark.long)], ids=["some screens", "all screens"]
)
def test_no_system_call_of_a_walk_opens_a_file_of_the_store_for_writing(tmp_path, one_in):
    store = make_rich_store(tmp_path / "s", now_ms() - 600_000).root
    log = tmp_path / "calls"
    rmqctl = Path(sys.executable).with_name("rmqctl")
    tracer = ["strace", "-f", "-y", "-e", f"trace={TRACED}", "-o", str(log)]
    program = [*tracer, str(rmqctl), "console", "-S", str(store), "groups"]
    before = files_of(store)
    with terminal(store, program=program, size=(24, 140)) as console:
        console.until("readers")
        walked = all_places(store)
        for place in walked[: len(walked) // one_in]:
            console.send(f":{shlex.join((place.screen, *place.names))}\r")
            console.until(f" {spec_of(place.screen).title(place)}"[:60])
            labels = [key.label for key in keys_of(place.screen) if key.action not in ASKING]
            console.send("".join(TWICE.get(label, label) for label in labels if len(label) == 1))
            console.send("\x13")  # ^s
            console.pump()
        console.send(":write s\r")
        console.until("CHANGES ON")
        console.send(":readonly\r")
        console.until("READ ONLY")
        console.send(":q\r")
        assert console.ended() == 0
    check_calls(log, store)
    assert files_of(store) == before


def check_calls(log, store):
    """Of the calls that strace wrote, those with a file of the store only read."""
    calls = [line for line in log.read_text("utf-8", "replace").splitlines() if str(store) in line]
    assert any("O_RDONLY" in line for line in calls)
    assert [line for line in calls if WRITING.search(line) or LOCKING.search(line)] == []
    assert [line for line in calls if not READING.search(line)] == []


@pytest.fixture
def store_with_members(tmp_path):
    """A store beside which a member of ``g`` with queue 0 of T is stopped, and one is dead."""
    store = tmp_path / "s"
    create_store(store, SMALL_STORE)
    with EmbeddedBroker.open(store) as broker:
        broker.update_topic(TopicConfig("T", 2, 2))
        broker.send(Message("T", b"one"), 0)

    def announced():
        return sorted(
            [queue.queue_id for queue in member.consumer.queues or () if queue.topic == "T"]
            for member in members_by_group(store, with_queues=True)["g"]
        )

    with consumer_puppet(store, "g", "a") as member, consumer_puppet(store, "g", "b") as dead:
        member.call("wait_for_queues", queues=[0])
        dead.call("wait_for_queues", queues=[1])
        member.call("persist")
        eventually(lambda: announced() == [[0], [1]], "they have not announced their queues")
        member.stop()  # it writes nothing any more, answers nothing, and lives
        dead.kill()
        yield store


@pytest.mark.slow
def test_members_are_shown_with_their_queues_and_nothing_is_asked_adopted_or_removed(
    store_with_members,
):
    before = files_of(store_with_members)

    async def steps(console):
        await console.read()
        await console.until("T:0")
        await console.press("ctrl+r")
        await console.read()

    drive(store_with_members, steps, "group", "g", size=(140, 40))
    assert files_of(store_with_members) == before


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace on PATH")
@pytest.mark.slow
def test_beside_members_no_system_call_writes_or_locks(store_with_members, tmp_path):
    log = tmp_path / "calls"
    rmqctl = Path(sys.executable).with_name("rmqctl")
    tracer = ["strace", "-f", "-y", "-e", f"trace={TRACED},bind,sendto", "-o", str(log)]
    program = [*tracer, str(rmqctl), "console", "-S", str(store_with_members), "group", "g"]
    with terminal(store_with_members, program=program, size=(40, 140)) as console:
        console.until("T:0")
        console.send(":q\r")
        assert console.ended() == 0
    check_calls(log, store_with_members)
