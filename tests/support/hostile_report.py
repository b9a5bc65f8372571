"""A report with hostile names, of a store that holds them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from analytics.engines.local import LocalEngine
from analytics.lag.selection import Choice
from analytics.report.lag_report import lag_report
from analytics.report.stores import StoreRef
from storage.config import StoreConfig
from storage.configs.consumer_offsets import topic_at_group
from tests.support.hand_made import START_MS, HandMade

NAMES = (
    "<script>window.hit = 1<",
    '"><img src=x onerror="window.hit = 1">',
    "<!--<script>",
    'it\'s "quoted" & `${window.hit = 1}`',
    "\u8ba2\u5355" * 21,
    "\U0001f4e6\U0001f469\u200d\U0001f469\u200d\U0001f467",
    "\u202eltr\u2066 \u05e9\u05dc\u05d5\u05dd",
    "\u2028line\u2029",
    "W" * 127,
    "@@DATA@@",
    "constructor",
    "plain",
)
BROKER = "</script><script>window.hit = 1</script>"
MESSAGES = 480
STEP_MS = 240_000
NOW = START_MS + MESSAGES * STEP_MS + 30_000
"""Half a minute after the last message; the first was stored 32 hours before."""

_SIZES = StoreConfig(mapped_file_size_commit_log=1 << 16, mapped_file_size_consume_queue=2000)


def hostile_store(root: Path) -> Path:
    """A store with a topic and a tag of each name, each read by a group of another one's name."""
    root.mkdir(parents=True)
    store = HandMade(_SIZES)
    count = len(NAMES)
    for number in range(MESSAGES):
        name = NAMES[number % count]
        tag = None if number % 7 == 0 else NAMES[(number + 5) % count]
        store.put(name, number // count % 3, tags=tag, step_ms=STEP_MS)
    store.write(root)
    table = {
        topic_at_group(topic, NAMES[(at + 1) % count]): {"0": at, "1": 0}
        for at, topic in enumerate(NAMES)
    }
    table[topic_at_group("gone <i>", "<b>lost</b>")] = {"0": 1}
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / "consumerOffset.json").write_text(json.dumps({"offsetTable": table}))
    return root


def document(root: Path) -> dict[str, Any]:
    """The report of a store as ``lag report -o json`` prints it."""
    refs = [StoreRef(BROKER, str(root))]
    made = lag_report(LocalEngine(), refs, NOW, Choice())
    assert not made.unreadable
    fields = json.loads(json.dumps(made.report.document()))
    return {"as_of": fields.pop("as_of"), "engine": "local", **fields, "elapsed_ms": 1}
