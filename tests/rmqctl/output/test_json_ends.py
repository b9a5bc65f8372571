"""What is printed as JSON is JSON, whatever ended the command."""

import json
import signal

import pytest

from tests.support.cli import run, start


@pytest.fixture
def store(tmp_path):
    root = tmp_path / "store"
    assert run("store", "init", root, "--small").code == 0
    assert run("produce", "orders", "-S", root, stdin=b"one\ntwo\n").code == 0
    assert run("consume", "orders", "-g", "billing", "-c", "1", "-e", "-S", root).code == 0
    return root


@pytest.mark.parametrize("command", [("lag", "watch", "-i", "100ms"), ("consume", "orders")])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGALRM, 124), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
@pytest.mark.slow
def test_an_array_that_was_begun_has_an_end(store, command, number, code):
    """SIGALRM is how --timeout ends it."""
    with start(*command, "-o", "json", "--timeout", "1h", "-S", store) as process:
        printed = process.stdout.read(20)
        process.send_signal(number)
        printed += process.stdout.read()
    assert process.returncode == code
    assert json.loads(printed)


@pytest.mark.parametrize("options", [["--limit", "0"], ["--where", "queues > 100000"]])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_thing_that_is_left_out_is_null(store, form, options):
    assert run("store", "info", "-S", store, "-o", form, *options).out == "null\n"
