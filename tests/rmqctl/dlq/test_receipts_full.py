"""A redrive of more dead letters than its file of receipts has room for."""

from rmqctl import exit_codes
from storage.configs.journal import Journal
from storage.configs.redrive_runs import RedriveRuns
from tests.rmqctl.dlq.test_resume import COUNT, DO, copies, dead, unhandled
from tests.support.cli import run

__all__ = ["dead"]


def test_a_run_ends_before_its_file_can_not_be_read_and_the_next_one_goes_on(dead, monkeypatch):
    with monkeypatch.context() as small:
        small.setattr("storage.configs.redrive_runs._FULL_AT", 20_000)
        first = run("dlq", "redrive", "g", "--all", *DO, "-o", "json")
        (name,) = RedriveRuns(dead).names()
        full = run("dlq", "redrive", "g", "--resume", name, *DO, "-o", "json")
    sent = len(first.json())
    assert first.code == 8, first.err
    assert 0 < sent < COUNT
    assert f"{sent} of {COUNT} were sent" in first.err
    assert "redrive the others in a new run" in first.err
    assert unhandled() == COUNT - sent
    assert RedriveRuns(dead).is_settled(name)
    assert 20_000 <= RedriveRuns(dead).path_of(name).stat().st_size < 21_000
    assert (full.code, full.raw) == (1, b"")
    assert "redrive the others in a new run" in full.err
    assert run("dlq", "redrive", "g", "--all", *DO).code == 0
    assert unhandled() == 0
    assert set(copies().values()) == {1}


def test_a_run_whose_choice_alone_leaves_no_room_is_refused_before_it_begins(dead, monkeypatch):
    journal = list(Journal(dead).entries())
    with monkeypatch.context() as small:
        small.setattr("storage.configs.redrive_runs._FULL_AT", 2_000)
        refused = run("dlq", "redrive", "g", "--all", *DO)
        assert (refused.code, refused.raw) == (exit_codes.REFUSED, b"")
        assert f"{COUNT} dead letters are too many for one run" in refused.err
        assert "--max" in refused.err
        assert RedriveRuns(dead).names() == []
        assert list(Journal(dead).entries()) == journal
        fewer = run("dlq", "redrive", "g", "--all", "--max", "3", *DO)
        assert fewer.code == 0, fewer.err
    assert unhandled() == COUNT - 3
