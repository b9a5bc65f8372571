"""Finding messages by key: limits, collisions, times, and chains that are damaged."""

from __future__ import annotations

import struct
from pathlib import Path

from storage.format.index_file import entry_position
from storage.readonly import StoreView
from tests.support.hand_made import START_MS, TINY, HandMade

ROOMY = TINY.with_(
    mapped_file_size_commit_log=1 << 16,
    mapped_file_size_consume_queue=10_000,
    max_hash_slot_num=11,
    max_index_num=50,
)


def places(view: StoreView, key: str, *arguments: int) -> list[int]:
    found = view.query_message("T", key, *arguments)
    return [message.commitlog_offset for message in found.messages]


def test_the_newest_hits_come_oldest_first(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    stored = [made.put("T", keys=["same"]).commitlog_offset for _ in range(120)]
    with StoreView.open(made.write(tmp_path), ROOMY) as view:
        assert places(view, "same", 3) == stored[-3:]
        assert places(view, "same", 1000) == stored[-64:]  # RocketMQ's own limit
        assert places(view, "other", 3) == []
        found = view.query_message("T", "same", 2)
        assert found.index_offsets == [stored[-1], stored[-2]]
        assert found.index_last_update_phyoffset == stored[-1]


def test_all_messages_of_a_unique_id_are_found_beyond_a_brokers_limit(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    by_id, by_key = [], []
    for _ in range(120):
        both = made.put("T", keys=["AaBB"], properties={"UNIQ_KEY": "AaBB"})
        by_id.append(both.commitlog_offset)
        made.put("T", keys=["BBAa"])
        by_key.append(made.put("T", keys=["AaBB", "more"]).commitlog_offset)
    few = made.config.with_(default_query_max_num=3, max_msgs_num_batch=5)
    root = made.write(tmp_path)
    for config in (made.config, few):
        with StoreView.open(root, config) as view:
            found = [message.commitlog_offset for message in view.find_unique("T", "AaBB")]
            newest = by_key[-config.max_msgs_num_batch :]
            assert found == sorted([*by_id, *newest]), "of senders' keys the newest only"
            assert view.find_unique("T", "other") == []


def test_a_key_of_the_same_hash_is_a_hit_but_not_the_message(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    right = made.put("T", keys=["AaBB"])
    wrong = made.put("T", keys=["BBAa"])
    with StoreView.open(made.write(tmp_path), ROOMY) as view:
        assert places(view, "AaBB") == [right.commitlog_offset, wrong.commitlog_offset]
        unique = view.find_unique("T", "AaBB")
        assert [m.commitlog_offset for m in unique] == [right.commitlog_offset]


def test_times_are_compared_in_whole_seconds_of_the_index(tmp_path: Path) -> None:
    made = HandMade(ROOMY)
    stored = [made.put("T", keys=["k"], step_ms=10_000).commitlog_offset for _ in range(4)]
    with StoreView.open(made.write(tmp_path), ROOMY) as view:
        second = START_MS + 20_000
        assert places(view, "k", 9, second, second) == [stored[1]]
        assert places(view, "k", 9, second, second + 10_500) == stored[1:3]
        assert places(view, "k", 9, 0, START_MS) == []


def test_hits_whose_records_are_gone_are_left_out(tmp_path: Path) -> None:
    made = HandMade(ROOMY.with_(mapped_file_size_commit_log=1024))
    stored = [made.put("T", keys=["k"]).commitlog_offset for _ in range(20)]
    root = made.write(tmp_path)
    (root / "commitlog/00000000000000000000").unlink()
    with StoreView.open(root) as view:
        assert places(view, "k", 99) == [offset for offset in stored if offset >= 1024]
        assert len(view.query_message("T", "k", 99).index_offsets) == 20


def test_a_circle_in_a_chain_ends_the_search(tmp_path: Path) -> None:
    made = HandMade(ROOMY.with_(max_hash_slot_num=1))
    stored = [made.put("T", keys=[f"k{number}"]).commitlog_offset for number in range(5)]
    root = made.write(tmp_path)
    path = next((root / "index").iterdir())
    for number, previous in ((3, 5), (4, 4), (2, 1 << 30), (5, -7)):
        data = bytearray(path.read_bytes())
        struct.pack_into(">i", data, entry_position(1, number) + 16, previous)
        damaged = tmp_path / "index" / path.name
        damaged.write_bytes(data)
        with StoreView.open(root, made.config) as view:
            assert places(view, "none", 9) == []
            assert places(view, "k4", 9) == [stored[4]]
        path.write_bytes(made_index(made, tmp_path))


def made_index(made: HandMade, tmp_path: Path) -> bytes:
    again = made.write(tmp_path / "again")
    return next((again / "index").iterdir()).read_bytes()


def test_a_store_without_an_index_finds_nothing(tmp_path: Path) -> None:
    made = HandMade(ROOMY, index=False)
    made.put("T", keys=["k"])
    with StoreView.open(made.write(tmp_path)) as view:
        assert view.query_message("T", "k") == ([], [], 0, 0)
