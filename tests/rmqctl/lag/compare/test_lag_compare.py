"""``lag show --compare`` and ``lag record``: the lag at an earlier time and now."""

import json
import subprocess

import pytest

from storage.configs.offset_samples import OffsetSamples
from tests.support.cli import call, limited, run, start
from tests.support.consumers import eventually
from tests.support.hand_made import START_MS, TINY, HandMade

T = START_MS


@pytest.fixture
def store(tmp_path):
    """A message a second, forty of them; the group has read all but two by now."""
    root = tmp_path / "store"
    made = HandMade(TINY)
    for number in range(40):
        made.put("T", number % 2, step_ms=1000)
    made.write(root)
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text(
        '{"topicConfigTable":{"T":{"topicName":"T","readQueueNums":2,"writeQueueNums":2,"perm":6}}}'
    )
    committed(root, 19)
    return root


def committed(root, offset):
    table = {"offsetTable": {"T@g": {"0": offset, "1": offset}}}
    (root / "config" / "consumerOffset.json").write_text(json.dumps(table))


def sampled(root):
    samples = OffsetSamples(root)
    for at, offset in ((T + 10_000, 2), (T + 20_000, 5), (T + 30_000, 9)):
        samples.append({"T@g": {0: offset, 1: offset}}, {}, at)


def compared(root, *options, code=0):
    result = run("lag", "show", "g", "-S", root, "-o", "json", "--compare", *options)
    assert result.code == code, result.err
    return result, (result.json() if code == 0 else [])


@pytest.mark.feature(50)
def test_a_time_shows_then_now_and_the_difference(store):
    sampled(store)
    _, [row] = compared(store, T + 20_000)
    assert (row["lag_then"], row["lag"], row["lag_change"]) == (10, 2, -8)
    assert row["oldest_unread_age_then_ms"] == 9_000
    change = row["oldest_unread_age_ms"] - row["oldest_unread_age_then_ms"]
    assert row["oldest_unread_age_change_ms"] == change
    assert row["then_timestamp"] == T + 20_000


def test_a_time_that_no_process_recorded_is_unknown_and_what_records_is_said(store):
    result, [row] = compared(store, T + 20_000)
    assert (row["lag_then"], row["lag"], row["lag_change"]) == (None, 2, None)
    assert "the earlier lag is unknown for 1 of 1 groups" in result.err
    assert "rmqctl lag record FILE" in result.err


def test_a_time_after_as_of_is_refused(store):
    sampled(store)
    refused, _ = compared(store, T + 20_000, "--as-of", T + 10_000, code=2)
    assert refused.err.startswith("rmqctl: --compare: it is ")
    assert "the range ends before it begins" in refused.err
    _, [row] = compared(store, T + 10_000, "--as-of", T + 20_000)
    assert (row["lag_then"], row["lag"], row["lag_change"]) == (6, 10, 4)
    _, [row] = compared(store, T + 20_000, "--as-of", T + 20_000)
    assert row["lag_change"] == 0


def test_a_record_after_as_of_is_named(store, tmp_path):
    sampled(store)
    saved = tmp_path / "record.jsonl"
    assert run("lag", "record", saved, "-S", store).code == 0
    result, [row] = compared(store, saved, "--as-of", T + 20_000)
    assert (row["lag_then"], row["lag"]) == (2, 10)
    assert "rmqctl: warning: the record is later than --as-of" in result.err
    result, _ = compared(store, saved)
    assert "is later" not in result.err


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_a_file_of_lag_show_is_compared(store, tmp_path, form):
    saved = tmp_path / "then.json"
    saved.write_bytes(run("lag", "show", "-S", store, "-o", form).raw)
    committed(store, 20)
    _, [row] = compared(store, saved)
    assert (row["lag_then"], row["lag"], row["lag_change"]) == (2, 0, -2)
    assert (row["oldest_unread_age_ms"], row["then_timestamp"]) == (0, None)


def test_a_file_of_lag_report_is_compared(store, tmp_path):
    saved = tmp_path / "report.json"
    report = run("lag", "report", "--engine", "local", "-S", store, "-o", "json")
    saved.write_bytes(report.raw)
    _, [row] = compared(store, saved)
    assert (row["lag_change"], row["then_timestamp"]) == (0, report.json()["as_of"])


def test_records_are_appended_and_the_last_before_a_time_is_taken(store, tmp_path):
    file = tmp_path / "lag.jsonl"
    for offset in (10, 15):
        committed(store, offset)
        result = run("lag", "record", file, "-S", store)
        assert (result.code, result.out, result.err) == (0, "", "")
    first, second = (json.loads(line)["as_of"] for line in file.read_text().splitlines())
    committed(store, 20)
    _, [row] = compared(store, file)
    assert (row["lag_then"], row["lag"], row["then_timestamp"]) == (10, 0, second)
    result, [row] = compared(store, first, "--recorded", file)
    assert (row["lag_then"], row["lag_change"]) == (20, -20)
    assert "compared with the record of" in result.err
    result, [row] = compared(store, first - 1, "--recorded", file)
    assert row["lag_then"] is None
    assert "has no record that is as old" in result.err


def test_a_record_that_a_crash_has_cut_hides_no_other(store, tmp_path):
    file = tmp_path / "lag.jsonl"
    assert run("lag", "record", file, "-S", store).code == 0
    whole = file.read_bytes()
    file.write_bytes(whole + whole[:50])
    assert compared(store, file)[1][0]["lag_then"] == 2
    assert run("lag", "record", file, "-S", store).code == 0
    assert len(file.read_bytes().splitlines()) == 3
    assert compared(store, file)[1][0]["lag_then"] == 2


@pytest.mark.parametrize("left", [1, 5, 50], ids="{} bytes".format)
def test_a_first_record_that_was_cut_hides_no_later_one(store, tmp_path, left):
    """The disk was full, or the machine lost its power, while the file was begun."""
    file = tmp_path / "lag.jsonl"
    assert run("lag", "record", file, "-S", store).code == 0
    file.write_bytes(file.read_bytes()[:left])
    for _ in range(2):
        assert run("lag", "record", file, "-S", store).code == 0
    assert len(file.read_bytes().splitlines()) == 3
    assert compared(store, file)[1][0]["lag_then"] == 2


def test_a_record_that_was_cut_and_no_other_is_refused(store, tmp_path):
    file = tmp_path / "lag.jsonl"
    file.write_text('{"as_of":17')
    result, _ = compared(store, file, code=2)
    assert "is not JSON of 'lag record'" in result.err


def test_recording_writes_nothing_to_the_store(store, tmp_path):
    before = sorted(path for path in store.rglob("*"))
    assert run("lag", "record", tmp_path / "lag.jsonl", "-S", store).code == 0
    assert sorted(path for path in store.rglob("*")) == before
    inside = run("lag", "record", store / "lag.jsonl", "-S", store)
    assert inside.code == 2
    assert "lies in the store" in inside.err
    assert sorted(path for path in store.rglob("*")) == before


@pytest.mark.slow
def test_recording_goes_on_until_the_time_limit(store, tmp_path):
    file = tmp_path / "lag.jsonl"

    def recorded(limit):
        file.unlink(missing_ok=True)
        command = ["lag", "record", file, "-S", store, "--interval", "100ms"]
        return run(*command, "--timeout", limit)

    def count():
        return len(file.read_text().splitlines()) if file.exists() else 0

    assert limited(recorded, lambda _: count() > 1).code == 124
    assert count() > 1


@pytest.mark.slow
def test_each_record_has_what_others_have_changed(store, tmp_path):
    """What did not change since the record before is not read again; each of these changes it."""
    file = tmp_path / "lag.jsonl"

    def lags():
        """Of the last whole record."""
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        groups = json.loads(lines[-1])["groups"] if lines else []
        return {row["group"]: row["lag"] for row in groups}

    with start("lag", "record", file, "-S", store, "--interval", "100ms") as process:
        try:
            eventually(lambda: lags() == {"g": 2})
            committed(store, 5)
            eventually(lambda: lags() == {"g": 30})
            assert call("produce", "T", "-S", store, stdin=b"one\n").code == 0
            eventually(lambda: lags() == {"g": 31})
            reset = ("offset", "reset", "h", "-t", "T", "-S", store, "--to-earliest", "--new-group")
            assert call(*reset, "-y").code == 0
            eventually(lambda: lags() == {"g": 31, "h": 41})
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["nowhere"], "there is no file of this name"),
        (["2199-01-01"], "lies in the future"),
        (["-1h", "--by", "queue"], "leave out --by queue"),
    ],
)
def test_what_cannot_be_compared_is_refused(store, options, reason):
    result, _ = compared(store, *options, code=2)
    assert reason in result.err


def test_a_file_of_another_form_is_refused(store, tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"a": 1}')
    result, _ = compared(store, other, code=2)
    assert "is not JSON of 'lag record'" in result.err


@pytest.mark.slow
def test_records_may_lie_any_time_apart(store, tmp_path):
    file = tmp_path / "lag.jsonl"
    recording = start("lag", "record", file, "--interval", "99999999h", "-S", store)
    with recording:
        eventually(file.exists)
        with pytest.raises(subprocess.TimeoutExpired):
            recording.wait(0.5)
        recording.terminate()
        assert recording.wait() == 143, recording.stderr.read()


def test_a_group_that_has_no_progress_now_is_named(store, tmp_path):
    path = store / "config" / "consumerOffset.json"
    table = {f"T@g{number}": {"0": 10, "1": 10} for number in range(8)}
    path.write_text(json.dumps({"offsetTable": table}))
    saved = tmp_path / "then.json"
    saved.write_bytes(run("lag", "show", "-S", store, "-o", "json").raw)
    path.write_text(json.dumps({"offsetTable": {"T@g0": {"0": 19, "1": 19}}}))
    result = run("lag", "show", "-S", store, "-o", "json", "--compare", saved)
    assert [row["group"] for row in result.json()] == ["g0"]
    assert "group g1 in T had progress at the earlier time, and has none now" in result.err
    assert "2 more groups and topics had progress, and have none now" in result.err
    assert "g0" not in result.err
    chosen = run("lag", "show", "g0", "-S", store, "-o", "json", "--compare", saved)
    assert chosen.err == ""


@pytest.mark.parametrize("options", [(), ("--dry-run",)], ids=" ".join)
@pytest.mark.parametrize(
    "text", ["topic,queue\n", "{}\n", '[{"group":"g"}]', "\n", '{\n  "as_of": 1}', "notes"]
)
def test_a_file_of_another_form_is_not_appended_to(store, tmp_path, text, options):
    file = tmp_path / "notes"
    file.write_text(text)
    result = run("lag", "record", file, *options, "-S", store)
    assert (result.code, file.read_text()) == (2, text)
    assert f"{file} is no file of 'lag record'" in result.err


@pytest.mark.parametrize("text", ["", "{", '{"as_of":12'])
def test_an_empty_file_and_a_record_that_was_cut_are_appended_to(store, tmp_path, text):
    file = tmp_path / "lag.jsonl"
    file.write_text(text)
    assert run("lag", "record", file, "-S", store).code == 0
    assert json.loads(file.read_text().splitlines()[-1])["groups"]


def test_standard_output_is_no_file_to_append_to(store, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("lag", "record", "-", "-S", store)
    assert (result.code, (tmp_path / "-").exists()) == (2, False)
