import json
import os
import stat
import subprocess
import sys

import pytest

from rmqctl.help import doctor
from rmqctl.help.doctor import ERROR, NOTE, OK, WARNING
from tests.support.cli import ROOT, call, run
from tests.support.java_lock import java_lock
from tests.support.linux_forms import needs_linux_forms
from tests.support.mounting import NEW_MOUNTS, skip_unless_mountable
from tests.support.privileges import without_privileges
from tests.support.terminal import on_a_terminal


def rows(*args):
    result = run("doctor", "-o", "json", *args)
    assert result.code == 0, result.err
    return {row["check"]: row for row in result.json()}


@needs_linux_forms  # what is tried needs a file without a name
def test_a_sound_place_has_no_error_and_no_warning(store):
    found = rows()
    assert {row["status"] for row in found.values()} <= {OK, NOTE}
    assert found["python"]["found"].startswith("3.")
    assert "Windows with WSL" in found["system"]["found"]
    assert found["store"]["found"] == f"{store} (variable RMQCTL_STORE)"
    assert found["writers"]["found"] == "none"
    for check in ("locks", "mapping", "reserving", "sync", "room", "file system", "open files"):
        assert found[check]["status"] == OK, check
    assert "numpy" in found["libraries"]["found"]


@pytest.mark.slow
def test_people_get_a_line_each_with_the_advice_below(own_home):
    result = run("doctor")
    assert result.code == 0
    assert "note     store" in result.out
    assert "'rmqctl store init' creates one" in result.out
    assert run("doctor", "--where", "check = python").lines[0] == "check\tstatus\tfound\tadvice"


@pytest.mark.slow
@pytest.mark.parametrize("command", [("doctor",), ("cheat",), ("cheat", "reset")], ids=" ".join)
def test_options_of_rows_have_their_effect(store, command):
    head, *rest = run(*command, "--limit", "1").lines
    assert (len(head.split("\t")) > 1, len(rest)) == (True, 1)
    name = head.split("\t")[0]
    sorted_rows = run(*command, f"--sort=-{name}").lines[1:]
    values = [line.split("\t")[0] for line in sorted_rows]
    assert values == sorted(values, reverse=True)
    assert len(values) > 1


def test_nothing_is_changed_by_looking(store):
    def facts():
        return {
            path: (path.stat().st_mtime_ns, path.stat().st_size)
            for path in [store, *store.rglob("*")]
        }

    before = facts()
    run("doctor")
    assert facts() == before


def test_what_is_no_store_is_an_error(tmp_path):
    result = run("doctor", "-S", tmp_path, "-o", "json")
    assert result.code == 1
    [row] = [row for row in result.json() if row["check"] == "store"]
    assert row["status"] == ERROR
    assert "is not a RocketMQ store" in row["found"]


@pytest.mark.slow
def test_a_java_broker_and_an_unclean_end_are_told(store):
    (store / "abort").touch()
    assert rows()["writers"]["status"] == WARNING
    with java_lock(store):
        row = rows()["writers"]
        assert (row["status"], row["found"]) == (NOTE, "a Java broker")
    (store / "abort").unlink()


@pytest.mark.slow
@needs_linux_forms
def test_a_store_that_may_only_be_read_is_noted(store):
    mode = store.stat().st_mode
    store.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        done = subprocess.run(
            [*without_privileges(), sys.executable, "-m", "rmqctl", "doctor", "-o", "json"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        )
    finally:
        store.chmod(mode)
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert found["store"]["status"] == NOTE
    assert found["store"]["found"].endswith("is read-only")
    assert found["abilities"]["found"] == "not tried: Permission denied"


ON_A_FULL_DISK = """
mount -t tmpfs -o size=2m none disk
head -c $SIZE /dev/zero > disk/other 2> error || test -s error
exec $PYTHON -P -m rmqctl doctor -S disk/store -o json
"""


@pytest.mark.slow
@needs_linux_forms
@pytest.mark.parametrize(
    ("size", "fits"), [(2 << 20, ()), ((2 << 20) - (64 << 10), ("mapping", "sync"))]
)
def test_a_full_disk_is_named_and_what_it_has_no_room_for_is_not_tried(tmp_path, size, fits):
    (tmp_path / "disk").mkdir()
    skip_unless_mountable(tmp_path / "disk")
    done = subprocess.run(
        [*NEW_MOUNTS, "sh", "-eu", "-c", ON_A_FULL_DISK],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable, "SIZE": str(size)},
        capture_output=True,
        check=True,
    )
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert (found["room"]["status"], found["room"]["found"]) == (WARNING, "0 MiB free")
    assert found["locks"]["status"] == OK
    for check in ("mapping", "reserving", "sync"):
        row = found[check]
        if check in fits:
            assert row["status"] == OK
        else:
            assert (row["status"], row["advice"]) == (NOTE, "")
            assert row["found"] == "not tried: No space left on device"


WITHOUT_INODES = """
mount -t tmpfs -o size=1g,nr_inodes=5 none disk
touch disk/1 disk/2 disk/3 disk/4 disk/5 2> error || test -s error
exec $PYTHON -P -m rmqctl doctor -S disk -o json
"""


@pytest.mark.slow
@needs_linux_forms
def test_room_that_cannot_be_used_is_a_warning(tmp_path):
    (tmp_path / "disk").mkdir()
    skip_unless_mountable(tmp_path / "disk")
    done = subprocess.run(
        [*NEW_MOUNTS, "sh", "-eu", "-c", WITHOUT_INODES],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHON": sys.executable},
        capture_output=True,
    )
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert found["room"]["status"] == OK
    row = found["abilities"]
    assert (row["status"], row["found"]) == (WARNING, "not tried: No space left on device")
    assert row["advice"] == "no message is stored: a quota or inodes are used up"


@pytest.mark.parametrize(
    ("name", "release", "status", "word"),
    [
        ("Linux", "6.1", OK, "WSL"),
        ("Linux", "5.15-microsoft-standard-WSL2", OK, "Windows Subsystem"),
        ("Darwin", "23.1", WARNING, "macOS"),
        ("Windows", "11", ERROR, "Windows"),
    ],
)
def test_systems(name, release, status, word):
    row = doctor.system(name, release)
    assert row.status == status
    assert word in row.found
    assert bool(row.advice) is (status != OK)


@pytest.mark.parametrize(
    ("told", "number"),
    [
        ('openjdk version "17.0.9" 2023-10-17\n', "17.0.9"),
        ('java version "1.8.0_392"\n', "8.0_392"),
        ('openjdk version "21" 2023-09-19\n', "21"),
        ("Picked up JAVA_TOOL_OPTIONS\n", None),
        ("", None),
    ],
)
def test_versions_of_java(told, number):
    assert doctor.java_version(told) == number


def java_that(tmp_path, text):
    program = tmp_path / "bin" / "java"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return doctor.java(str(tmp_path))


def test_java_is_optional_whatever_it_is(tmp_path):
    assert java_that(tmp_path, "echo 'openjdk version \"17.0.1\"' >&2").status == OK
    old = java_that(tmp_path, "echo 'java version \"1.8.0_1\"' >&2")
    assert (old.status, old.found.partition(" ")[0]) == (NOTE, "8.0_1")
    broken = java_that(tmp_path, "exit 3")
    assert broken.status == NOTE
    assert "does not run" in broken.found


def test_another_program_of_the_name_is_told(tmp_path, monkeypatch):
    program = tmp_path / "rmqctl"
    program.write_bytes(b"\x7fELF another one")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.program().status == WARNING
    program.write_text(f"#!{sys.executable}\nfrom rmqctl.__main__ import main\n")
    assert doctor.program().status == OK
    program.unlink()
    assert doctor.program().status == NOTE


@needs_linux_forms  # RMQCTL_POSIX is a variable, too
def test_settings_files_and_variables_are_named(store, own_home):
    (own_home / "rmqctl.toml").write_text('tz = "UTC"\n')
    result = run("doctor", "-o", "json", env={"RMQCTL_PROGRESS": "none"})
    found = [row["found"] for row in result.json() if row["check"] == "settings"]
    assert found == [
        f"{own_home}/rmqctl.toml (project)",
        "variables: RMQCTL_PROGRESS, RMQCTL_STORE",
        "output = json (option --output)",
        f"tz = UTC ({own_home}/rmqctl.toml)",
        "progress = none (variable RMQCTL_PROGRESS)",
    ]


@pytest.mark.slow
def test_few_open_files_are_a_warning(store):
    result = call("doctor", "-o", "json", preexec_fn=_few_files)
    [row] = [row for row in result.json() if row["check"] == "open files"]
    assert (row["status"], row["found"]) == (WARNING, "at most 200")


def _few_files():
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (200, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    os.umask(0o022)


OSC = ", copies by OSC 52"


@pytest.mark.parametrize(
    ("size", "env", "status", "found"),
    [
        ((80, 24), {"LANG": "C.UTF-8"}, OK, f"80x24, 256 colors, palette dark, UTF-8{OSC}"),
        (
            (80, 24),
            {"LANG": "C.UTF-8", "TERM": "linux", "COLORFGBG": "0;15"},
            OK,
            "80x24, 16 colors, palette light, UTF-8, copies into a file",
        ),
        ((80, 24), {"LANG": "C.UTF-8", "NO_COLOR": "1"}, OK, f"80x24, no color, UTF-8{OSC}"),
        (
            (80, 24),
            {"LANG": "C", "PYTHONCOERCECLOCALE": "0"},
            NOTE,
            f"80x24, 256 colors, palette dark, not UTF-8{OSC}",
        ),
        ((50, 24), {"LANG": "C.UTF-8"}, NOTE, f"50x24, 256 colors, palette dark, UTF-8{OSC}"),
        ((80, 24), {"TERM": "dumb"}, NOTE, "not on this terminal"),
    ],
)
@pytest.mark.slow
def test_what_a_terminal_can_show_of_the_console(store, size, env, status, found):
    quiet = dict.fromkeys(("LC_ALL", "LC_CTYPE", "COLORTERM", "COLORFGBG"), "")
    quiet["TERM"] = "xterm-256color"
    shown = on_a_terminal(
        ("-m", "rmqctl", "doctor", "-S", store, "-o", "json", "--where", "check = console"),
        columns=size[0],
        lines=size[1],
        env={**quiet, **env},
    )
    (row,) = json.loads(shown)
    assert (row["status"], row["found"]) == (status, found)
    assert bool(row["advice"]) == (status == NOTE)
