"""The documents are right: examples are computed again, and what they name exists."""

import ast
import re
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from broker.api.failure_reason import FAILURE_PROPERTIES
from broker.config import BrokerConfig
from broker.retry.redrive_properties import LINEAGE_PROPERTIES
from rmqctl import exit_codes
from storage.config import SMALL_STORE, StoreConfig
from storage.configs.checksummed_json import seal
from storage.configs.progress_log import EXPORTED, EXPORTING, QUEUES, ProgressLog, table_line
from storage.configs.progress_rows import KnownRows
from storage.configs.progress_table import ProgressTable, QueueProgress
from storage.coordination.shared_state import (
    GONE,
    MAX_WAITERS,
    SHARED_STATE_MAGIC,
    SLOTS,
    WAITER_FLAGS,
    WAITER_TOPICS,
    WAITER_WAKERS,
    Word,
)
from storage.files.fs import FileSystem
from storage.format import cqext, layout, message as message_names
from storage.format.checkpoint import CheckpointData
from storage.format.cq_unit import CQ_STORE_UNIT_SIZE, PRE_BLANK, StoreUnit
from storage.format.encode import MessageInner, prepare
from storage.format.fastjson import dumps
from storage.format.host import pack_host
from storage.format.index_file import INDEX_ENTRY_SIZE, INDEX_HEADER_SIZE, IndexHeader, put_keys
from storage.format.java_hash import java_hash, key_hash, tags_code
from storage.format.message_id import UniqueIds, offset_msg_id
from storage.format.properties import encode_properties
from storage.format.record import blank_record, encode_record
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag
from storage.layout import STORE_FILE, write_sizes
from storage.store import MessageStore

ROOT = Path(__file__).resolve().parent.parent
FORMAT = ROOT / "FORMAT.md"
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {
    "conformance.md",
    "compared.md",
    "benchmarks.md",
    "rows.md",
    "changes.md",
}  # a row of its tables is one line, however many tests it names
BORN, STORED = 1700000000000, 1700000000123
UNIQUE_ID = "7F000001000A18B4AAC20000000003E8"
HOST = pack_host("127.0.0.1:10911")


def record(
    topic: str, body: bytes, properties: bytes, born: str, store: str, **changes: int
) -> bytes:
    given = {"queue_id": 0, "queue_offset": 0, "physical_offset": 0, "version": 1}
    given |= {"born_timestamp": 1, "store_timestamp": 2} | changes
    return encode_record(
        topic=topic,
        body=body,
        properties=properties,
        born_host=pack_host(born),
        store_host=pack_host(store),
        **given,
    )


def plain_record() -> bytes:
    return record(
        "TopicTest",
        b"hello",
        encode_properties({"TAGS": "TagA", "UNIQ_KEY": UNIQUE_ID}),
        "10.0.0.1:50001",
        "127.0.0.1:10911",
        queue_id=2,
        queue_offset=7,
        physical_offset=4096,
        born_timestamp=BORN,
        store_timestamp=STORED,
    )


def version_2_record() -> bytes:
    text = encode_properties({"KEYS": "a b"}) + b"\x02"
    body = "\u4f60\u597d".encode()
    return record("TTTT", body, text, "127.0.0.1:0", "127.0.0.1:10911", version=2)


def three_keys() -> tuple[bytes, bytes, bytes]:
    hashes = [key_hash("TopicTest", key) for key in (UNIQUE_ID, "k1", "k1")]
    times = [STORED, STORED, STORED + 4877]
    puts = put_keys(IndexHeader(), 10, lambda _: 0, hashes, [4096, 4096, 5000], times)
    slots = bytearray(40)
    for slot, value in zip(puts.slots, puts.slot_values, strict=True):
        slots[4 * slot : 4 * slot + 4] = value.to_bytes(4, "big")
    return puts.header.pack(), bytes(slots), puts.entries


def eighth_id() -> bytes:
    ids = UniqueIds(bytes((10, 0, 0, 1)), 4660, 0x18B4AAC2, UTC)
    return bytes.fromhex(ids.take(8, BORN)[7].decode())


HEX: dict[str, Callable[[], bytes]] = {
    "record-v1": plain_record,
    "record-v2": version_2_record,
    "record-v1-ipv6": lambda: record("T", b"", b"", "[::1]:1", "[fe80::1]:10911"),
    "properties": lambda: encode_properties({"TAGS": "TagA", "KEYS": "a b"}),
    "blank": lambda: blank_record(107),
    "offset-message-id": lambda: bytes.fromhex(offset_msg_id(HOST, 4096)),
    "unique-id": eighth_id,
    "unit": lambda: StoreUnit(4096, len(plain_record()), tags_code("TagA")).pack(),
    "unit-negative-hash": lambda: StoreUnit(0, 156, tags_code("polygenelubricants")).pack(),
    "unit-delayed": lambda: StoreUnit(8192, 220, STORED + 10_000).pack(),
    "pre-blank": lambda: PRE_BLANK,
    "ext-address": lambda: cqext.ext_address(0).to_bytes(8, "big", signed=True),
    "index-header": lambda: three_keys()[0],
    "index-slots": lambda: three_keys()[1],
    "index-entries": lambda: three_keys()[2],
    "checkpoint": lambda: CheckpointData(STORED, STORED).pack()[:24],
}


def progress_log() -> str:
    table = ProgressTable(1700000000123456789)
    table.commit("TopicTest@g1", 0, QueueProgress(0, 5))
    table.commit("TopicTest@g1", 1, QueueProgress(0, 7))
    table.move("TopicTest@g1", 1, 3)
    table.change_id = 4
    table.set_exported(table.offsets())
    table.changed = False
    first = table_line(table, 6, None)
    log = ProgressLog(Path("offsets.log"), first, 0, KnownRows)
    commit = log.line_of({QUEUES: {"TopicTest@g1": {0: QueueProgress(0, 6)}}})
    log.note_written(commit)
    begun = log.line_of({EXPORTING: True})
    log.note_written(begun)
    return (first + commit + begun + log.line_of({EXPORTED: True})).decode().replace("\n", "")


def journal_line() -> str:
    moved = {"group": "g1", "topic": "TopicTest", "queue_id": 1, "old": 7, "new": 3}
    moved["generation"] = 1
    change = {"command": "offset reset", "user": "u", "host": "h", "moves": [moved], "previous": 2}
    return seal({"change_id": 4, "at_timestamp": STORED, **change}).decode()


def hashes() -> str:
    texts = ("TagA", "TagB", "TagA||TagB", "TopicTest#ORDER_1", "polygenelubricants")
    return "\n".join(f"{text:22}{java_hash(text):>15}" for text in texts)


def offsets_file() -> str:
    offsets = {"%RETRY%g1@g1": {}, "TopicTest@g1": {0: 5, 1: 7, 10: 3000000000}}
    return dumps({"offsetTable": offsets})


SAMPLES: dict[str, Callable[[], str]] = {
    "hashes": hashes,
    "consumer-offset": offsets_file,
    "offsets-log": progress_log,
    "journal-line": journal_line,
}
BROKEN_TO_FIT = ("offsets-log", "journal-line")
WITH_FILES = {"store-tree", "store-json"}

_BLOCK = re.compile(r"^```(hex|sample) (\S+)\n(.*?)\n```$", re.MULTILINE | re.DOTALL)
_TEST = re.compile(r"^\* \[([a-z0-9-]+)\] `(tests/[\w/]+\.py)`\n  `(test_\w+)`$", re.MULTILINE)


def blocks(kind: str) -> dict[str, str]:
    found = [match.groups() for match in _BLOCK.finditer(FORMAT.read_text())]
    assert len({name for _, name, _ in found}) == len(found)
    return {name: text for block, name, text in found if block == kind}


def table(text: str, first_header: str) -> list[list[str]]:
    """Rows of all tables whose first column has this header, as cells."""
    rows: list[list[str]] = []
    inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells:
            inside = False
        elif inside and not set(cells[0]) <= {"-"}:
            rows.append(cells)
        elif cells[0] == first_header:
            inside = True
    return rows


@pytest.mark.parametrize("name", sorted({*blocks("hex"), *HEX}))
def test_a_hex_example_is_what_the_code_computes(name: str) -> None:
    lines = blocks("hex")[name].splitlines()
    shown = "".join(line.partition("|")[0].replace(" ", "") for line in lines)
    assert shown == HEX[name]().hex()


@pytest.mark.parametrize("name", sorted({*blocks("sample"), *SAMPLES} - WITH_FILES))
def test_a_sample_is_what_the_code_writes(name: str) -> None:
    shown = blocks("sample")[name]
    assert (shown.replace("\n", "") if name in BROKEN_TO_FIT else shown) == SAMPLES[name]()


def test_the_sample_of_the_sizes_is_what_the_code_writes(tmp_path: Path) -> None:
    (tmp_path / "rmqctl").mkdir()
    write_sizes(FileSystem(), tmp_path, StoreConfig())
    written = (tmp_path / "rmqctl" / STORE_FILE).read_text()
    assert blocks("sample")["store-json"] + "\n" == written


def test_the_sample_of_a_store_has_the_files_of_a_store(tmp_path: Path) -> None:
    MessageStore.create(tmp_path, SMALL_STORE)
    message = MessageInner("TopicTest", 0, b"hello", b"", BORN, HOST, HOST, keys=(UNIQUE_ID,))
    with MessageStore.open(tmp_path) as store:
        store.put(prepare([message]))
    files = {
        path.relative_to(tmp_path).as_posix(): path.stat().st_size
        for path in tmp_path.rglob("*")
        if path.is_file() and path.name != "services.lock"
    }
    index = [name for name in files if name.startswith("index/")]
    assert [files.pop(name) for name in index] == [SMALL_STORE.index_file_size]
    assert f"{SMALL_STORE.index_file_size:,}" in FORMAT.read_text()
    shown = (line.rpartition(" ") for line in blocks("sample")["store-tree"].splitlines())
    assert {name: int(size) for name, _, size in shown} == files


def test_fields_follow_one_another_without_gaps() -> None:
    tables: list[list[list[str]]] = []
    for row in (row for row in table(FORMAT.read_text(), "at") if len(row) == 4):
        if row[0] == "0":
            tables.append([])
        tables[-1].append(row)
    ends = {}
    for rows in tables:
        numbered = [row for row in rows if row[0].isdigit()]
        for row, following in pairwise(numbered):
            assert int(row[0]) + int(row[1]) == int(following[0]), row
        ends[numbered[0][2]] = int(numbered[-1][0]) + (
            int(numbered[-1][1]) if numbered[-1][1].isdigit() else 0
        )
    assert ends == {
        "totalSize": layout.HEAD_SIZES[0],
        "commitLogOffset": CQ_STORE_UNIT_SIZE,
        "size": cqext.MIN_EXT_UNIT_SIZE,
        "beginTimestamp": INDEX_HEADER_SIZE,
        "keyHash": INDEX_ENTRY_SIZE,
        "physicMsgTimestamp": 40,
    }


def test_the_words_of_the_page_are_those_of_the_code() -> None:
    rows = {row[1]: int(row[0]) for row in table(FORMAT.read_text(), "word")}
    assert rows == {name: value for name, value in vars(Word).items() if name.isupper()}


def test_the_places_in_the_page_are_those_of_the_code() -> None:
    places = [int(row[0]) for row in table(FORMAT.read_text(), "at") if len(row) == 2]
    assert places == [0, WAITER_FLAGS, WAITER_TOPICS, WAITER_WAKERS, SLOTS]
    assert f"{MAX_WAITERS} waiter flags" in FORMAT.read_text()


def test_constants_are_those_of_the_code() -> None:
    flags = {value for name, value in vars(MessageSysFlag).items() if name.isupper()}
    magics = {layout.MESSAGE_MAGIC_V1, layout.MESSAGE_MAGIC_V2, layout.BLANK_MAGIC}
    known = (
        flags
        | {magic & 0xFFFFFFFF for magic in magics}
        | {SHARED_STATE_MAGIC >> 32, REPLACED_FLAG, -GONE}
    )
    shown = {int(text, 16) for text in re.findall(r"0x([0-9A-Fa-f]+)", FORMAT.read_text())}
    assert shown <= known
    assert flags - shown <= {0}


def test_topics_have_the_names_of_the_store() -> None:
    known = {value for value in vars(message_names).values() if isinstance(value, str)}
    named = re.findall(r"`([A-Z]+(?:_[A-Z]*)*_TOPIC(?:_[A-Z]*)?)`", FORMAT.read_text())
    assert message_names.SCHEDULE_TOPIC in named
    assert set(named) <= known


@cache
def names_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize(("name", "file", "test"), _TEST.findall(FORMAT.read_text()))
def test_a_test_that_is_named_exists(name: str, file: str, test: str) -> None:
    assert (ROOT / file).is_file(), name
    assert test in names_in(ROOT / file), name


def test_each_difference_names_tests_of_the_list() -> None:
    text = FORMAT.read_text()
    listed = [name for name, _, _ in _TEST.findall(text)]
    assert len(set(listed)) == len(listed)
    used = set()
    for row in (*table(text, "damage"), *table(text, "RocketMQ 4.9")):
        names = re.findall(r"\[([a-z0-9-]+)\]", row[-1])
        assert names, f"no test shows: {row[0]}"
        used.update(names)
    assert used == set(listed)


@pytest.mark.parametrize("config", [StoreConfig, BrokerConfig])
def test_settings_are_those_of_the_code(config: type[StoreConfig] | type[BrokerConfig]) -> None:
    rows = table((ROOT / "docs" / "settings.md").read_text(), config.__name__)
    shown = {row[0].strip("`"): row[1].strip("`") for row in rows}
    assert shown == {field.name: _shown(field.default) for field in fields(config)}


def test_the_properties_of_failures_are_those_of_the_code() -> None:
    rows = table((ROOT / "docs" / "retries.md").read_text(), "property")
    assert tuple(row[0].strip("`") for row in rows) == FAILURE_PROPERTIES


def test_the_properties_of_lineage_are_those_of_the_code() -> None:
    rows = table((ROOT / "docs" / "retries.md").read_text(), "lineage")
    assert tuple(row[0].strip("`") for row in rows) == LINEAGE_PROPERTIES


def _shown(value: object) -> str:
    return f"{value:,}" if type(value) is int else str(value)


def test_exit_codes_are_those_of_the_code() -> None:
    rows = table((ROOT / "docs" / "exit-codes.md").read_text(), "code")
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert [int(row[0]) for row in rows] == sorted(codes)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_is_plain_text_of_bounded_width(path: Path) -> None:
    text = path.read_text()
    if path.parent == ROOT / "docs" or path == FORMAT:
        assert text.isascii()
        assert path.name in GENERATED or max(map(len, text.splitlines())) <= 120
    assert text.endswith("\n")
    assert not re.search(r"(?m)[ \t]+$", text)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http:", "https:")):
            continue
        file, _, anchor = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), target
        if anchor:
            assert anchor in headings(linked), target


def headings(path: Path) -> set[str]:
    """Anchors that a Markdown reader makes of a document's headings."""
    found = re.findall(r"(?m)^#+ (.*)$", path.read_text())
    return {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in found}


def test_each_promise_of_security_names_tests_that_exist() -> None:
    rows = [
        line
        for line in (ROOT / "SECURITY.md").read_text().splitlines()
        if line.startswith("| ") and "tests/" in line
    ]
    assert len(rows) > 10
    for row in rows:
        for name in re.findall(r"`(tests/[^`]+)`", row):
            assert "def test_" in (ROOT / name).read_text(), name


def test_an_index_names_every_document() -> None:
    folders = {ROOT / "docs" / name for name in ("tasks", "internals", "decisions")}
    for path in DOCUMENTS:
        index = (path.parent if path.parent in folders else ROOT / "docs") / "README.md"
        assert f"{path.name})" in index.read_text() or path == index, path
