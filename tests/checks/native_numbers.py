"""Fail when numbers of C are not those of Python's modules; `--write` writes their headers."""

import sys
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rmqctl.output.encoded_rows import Style, Value  # noqa: E402 - the clone's own
from rmqctl.parse import json_plan  # noqa: E402
from rmqctl.produce.given_rows import Part  # noqa: E402
from storage.append import fast_append_batch  # noqa: E402
from storage.coordination import shared_state, wakeup, write_lock  # noqa: E402
from storage.coordination.shared_state import Word  # noqa: E402
from storage.files import read_files  # noqa: E402
from storage.files.fs import WORD  # noqa: E402
from storage.format import cq_unit, crc, index_file, layout  # noqa: E402
from storage.format.encode import MessageInner  # noqa: E402
from storage.format.record import MESSAGE_MAGIC_V1, MESSAGE_MAGIC_V2  # noqa: E402
from storage.format.sys_flag import REPLACED_FLAG, MessageSysFlag  # noqa: E402
from storage.read.message_table import BUFFERS  # noqa: E402
from storage.store import LARGE_BODY  # noqa: E402

FIRST = "/* Numbers of Python's modules; `make numbers` has written them from there. */\n"
WORDS = (
    *("FROM", "TO", "STAGE", "LOG_END", "FAILED", "HOLDER_PID", "KEYS_FROM", "KEYS_TO"),
    *("LAST_STORE_TIMESTAMP", "INDEX_FILE", "UNDO_INDEX_FILE", "UNDO_INDEX_HEADER"),
    *("LOCK_WANTED", "CONFIGS", "LINE_INTERRUPTED", "LINE_ONCE", "LINE_TURNS"),
)
SHORT = {"PREPARED_TRANSACTION_OFFSET": "PREPARED_OFFSET"}
"""Fields of MessageInner that have another name in C."""


Numbers = Iterator[tuple[str, Mapping[str, int]]]
"""Modules, each with the numbers of it that C uses, by their names there."""


def of_format() -> Numbers:
    yield (
        "storage/format/layout.py, cq_unit.py, crc.py, sys_flag.py",
        {
            "HEAD": layout.HEAD_SIZES[0],
            "QUEUE_OFFSET_AT": layout.QUEUE_OFFSET_POSITION,
            "LEAST": layout.MIN_RECORD_SIZE,
            "UNIT": cq_unit.CQ_STORE_UNIT_SIZE,
            "PRE_BLANK_SIZE": cq_unit.PRE_BLANK_SIZE,
            "MAGIC_V1": MESSAGE_MAGIC_V1,
            "MAGIC_V2": MESSAGE_MAGIC_V2,
            "LONGEST_PROPERTIES": layout.MAX_PROPERTIES_LENGTH,
            "CRC_MASK": crc.CRC_MASK,
            "BORN_V6": MessageSysFlag.BORNHOST_V6_FLAG,
            "STORED_V6": MessageSysFlag.STOREHOSTADDRESS_V6_FLAG,
            "V6_BITS": MessageSysFlag.BORNHOST_V6_FLAG | MessageSysFlag.STOREHOSTADDRESS_V6_FLAG,
            "COMPRESSED": MessageSysFlag.COMPRESSED_FLAG,
            "NO_UNIT": MessageSysFlag.TRANSACTION_PREPARED_TYPE,
            "ROLLBACK": MessageSysFlag.TRANSACTION_ROLLBACK_TYPE,
        },
    )


def of_inner_messages() -> Numbers:
    fields = [SHORT.get(name.upper(), name.upper()) for name in MessageInner._fields]
    yield (
        "storage/format/encode.py: places of a MessageInner",
        {name: place for place, name in enumerate([*fields, "FIELDS"])},
    )


def of_index_files() -> Numbers:
    yield (
        "storage/format/index_file.py",
        {
            "HEADER": index_file.INDEX_HEADER_SIZE,
            "SLOT": index_file.HASH_SLOT_SIZE,
            "ENTRY": index_file.INDEX_ENTRY_SIZE,
        },
    )


def of_appending() -> Numbers:
    shared = vars(shared_state)
    yield "storage/files/fs.py", {"WORD": WORD}
    yield (
        "storage/coordination/shared_state.py",
        {
            **{name: shared[name] for name in shared if name.startswith("STAGE_")},
            **{name: getattr(Word, name) for name in WORDS},
            **{name: shared[name] for name in ("WAITER_FLAGS", "WAITER_TOPICS", "WAITER_WAKERS")},
            **{name: shared[name] for name in ("MAX_WAITERS", "SLOTS")},
        },
    )
    yield (
        "storage/coordination/write_lock.py",
        {
            "WRITE_LOCK_BYTE": write_lock.WRITE_LOCK_BYTE,
            "QUICK_GAP_US": round(write_lock._QUICK_GAP * 1e6),
        },
    )
    yield (
        "storage/coordination/wakeup.py",
        {name: getattr(wakeup, name) for name in ("TOPIC_BITS", "BY_SOCKET", "BY_WORD")},
    )
    yield (
        "storage/append/fast_append_batch.py",
        {
            f"BATCH{name}": number
            for name, number in vars(fast_append_batch).items()
            if name in ("_NO_ROOM", "_NO_QUEUE", "_NO_INDEX")
        },
    )
    yield "storage/store.py", {"LARGE_BODY": LARGE_BODY}


def of_readers() -> Numbers:
    names = ("MAGIC", "LOCK_MTIME", "LOG_END", "KEYS_FROM", "FILES_GENERATION", "MADE")
    yield (
        "storage/coordination/shared_state.py",
        {
            **{name: getattr(Word, name) for name in names},
            "SHARED_STATE_MAGIC": shared_state.SHARED_STATE_MAGIC,
        },
    )
    yield "storage/files/read_files.py", {"FEW_BYTES": read_files.FEW_BYTES}


def of_tables() -> Numbers:
    names = [name.upper() for name in BUFFERS]
    yield (
        "storage/read/message_table.py: places of the buffers",
        {name: place for place, name in enumerate([*names, "BUFFERS"])},
    )
    yield "storage/format/sys_flag.py", {"REPLACED": REPLACED_FLAG}


def of_rows() -> Numbers:
    yield "rmqctl/output/encoded_rows.py: how values are written", vars_of(Style)
    yield "rmqctl/output/encoded_rows.py: kinds of values", {**vars_of(Value), "KINDS": len(Value)}


def of_given_rows() -> Numbers:
    yield "rmqctl/produce/given_rows.py: kinds of columns", {**vars_of(Part), "KINDS": len(Part)}


def of_json_tests() -> Numbers:
    module = "rmqctl/parse/json_plan.py"
    yield f"{module}: what is known of a body", vars_of(json_plan.Answer)
    yield f"{module}: conditions", {**vars_of(json_plan.Kind), "NODES": len(json_plan.Kind)}
    yield f"{module}: orders", vars_of(json_plan.Order)
    yield f"{module}: numbers", vars_of(json_plan.Number)


def vars_of(kind: type[IntEnum]) -> Mapping[str, int]:
    return {member.name: int(member) for member in kind}


HEADERS = {
    "storage/native/common/numbers.h": of_format,
    "storage/native/common/inner_fields.h": of_inner_messages,
    "storage/native/common/index_numbers.h": of_index_files,
    "storage/native/reading/steady_numbers.h": of_readers,
    "storage/native/reading/table_numbers.h": of_tables,
    "storage/native/writing/appending_numbers.h": of_appending,
    "rmqctl/native/input_numbers.h": of_given_rows,
    "rmqctl/native/row_numbers.h": of_rows,
    "rmqctl/native/json_numbers.h": of_json_tests,
}


def text(name: str) -> str:
    """A header."""
    guard = f"RMQCTL_{Path(name).stem.upper()}_H"
    parts = [FIRST, f"#ifndef {guard}\n#define {guard}\n"]
    for module, found in HEADERS[name]():
        members = "".join(f"    {member} = {number},\n" for member, number in found.items())
        parts.append(f"\n/* {module} */\nenum {{\n{members}}};\n")
    return "".join([*parts, "\n#endif\n"])


def main() -> int:
    stale = [
        name
        for name in HEADERS
        if not (ROOT / name).exists() or (ROOT / name).read_text("utf-8") != text(name)
    ]
    if "--write" in sys.argv[1:]:
        for name in stale:
            (ROOT / name).write_text(text(name), "utf-8")
    elif stale:
        print(f"numbers of C are stale: {', '.join(stale)}; run `make numbers`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
