"""``consume --verbose`` warns only of what an operator can act on."""

import pytest

from tests.support.cli import run


@pytest.fixture
def orders(store):
    run("topic", "create", "orders", "--queues", 4)
    assert run("produce", "orders", "-q", stdin=b"\n".join(b"%d" % n for n in range(40))).code == 0
    return store


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--exec", "true"], ["--exec", "true", "--orderly"], []])
def test_a_run_that_consumes_all_has_no_warning(orders, options):
    result = run("consume", "orders", "-g", "g", "-e", "-v", *options)
    assert result.code == 0
    assert "WARNING" not in result.err
    assert "MessageQueue(" not in result.err
    assert run("lag", "show", "g", "-o", "json").json()[0]["lag"] == 0


@pytest.mark.slow
def test_log_records_name_a_queue_in_words(orders):
    result = run("consume", "orders", "-g", "g", "-e", "--debug", "--exec", "true")
    assert "queue 3 of orders on" in result.err
    assert "MessageQueue(" not in result.err
