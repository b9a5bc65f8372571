"""What libraries log: each line once, a traceback with --debug only."""

import logging

import pytest

from rmqctl.cli.context import Cli
from rmqctl.cli.logs import show_logs


@pytest.fixture
def logger():
    logger = logging.getLogger("rmqctl")
    before = logger.handlers[:], logger.level
    yield logger
    logger.handlers[:], logger.level = before


def failing():
    raise ValueError("no number")


@pytest.mark.parametrize(("option", "tracebacks"), [("verbose", 0), ("debug", 1)])
def test_a_line_comes_once_though_services_begin_by_the_way(option, tracebacks, logger, capsys):
    cli = Cli()
    cli.given[option] = True
    for _ in range(2):  # the command itself, then services_by_the_way
        show_logs(cli)
    try:
        failing()
    except ValueError as error:
        logger.warning("a listener failed: %s", "queue 3", exc_info=error)
    said = capsys.readouterr().err
    assert said.count("a listener failed: queue 3") == 1
    assert said.count("Traceback") == tracebacks
    assert said.count("ValueError: no number") == 1
    if not tracebacks:
        assert said.endswith("a listener failed: queue 3: ValueError: no number\n")


def test_nothing_is_shown_unasked(logger, capsys):
    show_logs(Cli())
    logger.warning("a listener failed")
    assert capsys.readouterr().err == ""
