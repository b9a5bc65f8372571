"""What entries of the change journal have in common."""

from getpass import getuser
from socket import gethostname

from rmqctl.admin.journal_entry import change_note
from rmqctl.cli.context import Cli
from storage.configs.journal_changes import done_moves, undone_by


def test_an_entry_says_which_command_who_where_and_why():
    cli = Cli({})
    cli.command_path = "rmqctl offset undo"
    cli.remember("reason", "wrong day")
    note = change_note(cli, group="g", undo_of=3)
    assert note == {
        "command": "offset undo",
        "user": getuser(),
        "host": gethostname(),
        "reason": "wrong day",
        "undo_of": 3,
        "group": "g",
    }


def move(change_id, previous, **more):
    return {"change_id": change_id, "previous": previous, "moves": [], **more}


def test_a_move_that_is_named_nowhere_was_not_done():
    entries = [{"change_id": 1}, move(2, None), move(3, None), move(5, 3), move(6, 5)]
    assert done_moves(entries, 6) == {3, 5, 6}, "2 was killed before its write"
    assert done_moves(entries, 5) == {3, 5}, "so was 6"
    assert done_moves([], None) == set()


def test_an_undoing_that_was_not_done_undoes_nothing():
    entries = [move(1, None), move(2, 1, undo_of=1), move(3, 1, undo_of=1)]
    assert undone_by(entries, {1, 3}) == {1: 3}
    assert undone_by(entries, {1}) == {}
    assert undone_by([{"change_id": 8, "undo_of": 7, "what": "ack"}], set()) == {7: 8}
