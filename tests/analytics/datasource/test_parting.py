"""Where two logs part, found while they are written and damaged."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest

from analytics.datasource.plan.log_now import LogNow, look_at_log
from analytics.datasource.stream.parting import parts_at
from analytics.report.stores import StoreRef
from tests.support.hand_made import TINY, HandMade, Stored

CONFIG = TINY.with_(mapped_file_size_commit_log=4096, mapped_file_size_consume_queue=140)


def common_part() -> HandMade:
    made = HandMade(CONFIG)
    for number in range(20):
        made.put("T", number % 2, b"common")
    return made


def with_more(made: HandMade, *queue_ids: int, body: bytes) -> HandMade:
    made = deepcopy(made)
    for queue_id in queue_ids:
        made.put("T", queue_id, body)
    return made


def look(made: HandMade, root: Path) -> LogNow:
    root.mkdir(exist_ok=True)
    return look_at_log(StoreRef(root.name, str(made.write(root))))


def damage(root: Path, record: Stored) -> None:
    start = record.commitlog_offset % 4096
    path = root / "commitlog" / f"{record.commitlog_offset - start:020}"
    with path.open("r+b") as file:
        file.seek(start + 4)  # what says that a record begins
        file.write(b"????")


@pytest.mark.parametrize("later", [(), (0,), (0, 1)], ids=["nothing", "one queue", "each queue"])
def test_messages_that_came_after_the_look_hide_no_parting(
    tmp_path: Path, later: tuple[int, ...]
) -> None:
    made = common_part()
    lost = with_more(made, *[0, 1] * 8, body=b"lost, and of another length")
    own = with_more(made, 0, 1, 0, body=b"own")
    master, slave = look(lost, tmp_path / "master"), look(own, tmp_path / "slave")
    with_more(own, *later, body=b"stored after the look").write(tmp_path / "slave")
    assert parts_at(slave, master, lost.log_end) == made.log_end


def test_a_damaged_record_where_the_other_log_has_none_hides_no_parting(tmp_path: Path) -> None:
    made = common_part()
    lost = with_more(made, *[0, 1] * 8, body=b"lost, and of another length")
    own = with_more(made, 0, 1, 0, 1, 2, body=b"own")
    master, slave = look(lost, tmp_path / "master"), look(own, tmp_path / "slave")
    for record in own.messages[-3:-1]:
        damage(tmp_path / "slave", record)
    assert parts_at(slave, master, lost.log_end) == made.log_end


def test_a_log_that_parts_nowhere_and_is_shorter_goes_on_at_its_end(tmp_path: Path) -> None:
    made = common_part()
    lost = with_more(made, 0, 1, body=b"more")
    master, slave = look(lost, tmp_path / "master"), look(made, tmp_path / "slave")
    assert parts_at(slave, master, lost.log_end) == made.log_end
    assert parts_at(slave, master, made.messages[7].commitlog_offset) == (
        made.messages[7].commitlog_offset
    )


def test_a_place_from_which_on_the_logs_differ_is_found_at_once(tmp_path: Path) -> None:
    made = common_part()
    one, two = with_more(made, 0, 1, 0, body=b"one"), with_more(made, 1, 0, body=b"two")
    log, other = look(one, tmp_path / "one"), look(two, tmp_path / "two")
    parting, later = made.log_end, one.messages[-1].commitlog_offset
    assert parts_at(log, other, two.log_end, parting) == parting
    assert parts_at(log, other, two.log_end, later) == later
    known = made.messages[11].commitlog_offset
    assert parts_at(log, other, two.log_end, known) == parting
