"""Pseudonyms of names: the same name has the same one throughout a bundle, and in no other."""

import hashlib
import hmac
import os
import re
from functools import cached_property
from typing import Final

from storage.configs.subscription_groups import SYSTEM_GROUP_PREFIX, system_groups
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    LMQ_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    is_system_topic,
)

from .vocabulary import program_words

_DIGITS: Final = 10
_SHORT_NUMBER: Final = 4
"""A name of fewer digits is no more than a number in a sentence."""
_MEASURE: Final = re.compile(r"(?:\d+(?:ms|s|m|h|d|kib|mib|gib)?|0x[0-9a-f]+)", re.IGNORECASE)
_ADDRESS: Final = r"\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){3,}"
_PIECE: Final = r"\w+|[^\x00-\x7f]+"
_WORDS: Final = re.compile(f"{_ADDRESS}|{_PIECE}")
_FILE_NUMBER: Final = re.compile(r"\d+(?:@\d+)?")
_KEPT_ENDS: Final = (".json", ".jsonl", ".log", ".bak", ".tmp", ".new", ".lock", ".life", ".notes")

_LAYOUT: Final = frozenset(
    {
        *("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index", "config"),
        *("abort", "checkpoint", "lock", "rmqctl", "manifest", "timerwheel", "timerlog", "pop"),
        *("rocksdbstore", "topics", "subscriptionGroup", "consumerOffset", "delayOffset"),
        *("consumerFilter", "consumerOrderInfo", "lmqConsumerOffset", "transactionMetrics"),
        *("timermetrics", "timercheck", "created", "store", "settings", "deleted", "shared"),
        *("queues", "bells", "services", "offsets", "journal", "samples", "handled", "redrives"),
        *("delays-ended", "sink", "deliveries", "kept", "set-aside", "quarantine", "rebuilt"),
        *("members", "locks", "broadcast", "lost+found"),
    }
)
"""Names of RocketMQ's files and of rmqctl's own, without their ends."""
_FOLDERS_OF: Final = {
    "consumequeue": ("topic",),
    "consumequeue_ext": ("topic",),
    "batchconsumequeue": ("topic",),
    "locks": ("group",),
    "broadcast": ("host", "group"),
}
"""Folders whose entries, and those of these, are named after something."""


class Pseudonyms:
    """Replaces names by ``kind-hash``. The hash is keyed with random bytes that nothing keeps.

    What belongs to RocketMQ itself keeps its name, and so do the prefixes of retry and dead letter
    topics.
    """

    def __init__(self, *, redact: bool = True) -> None:
        """``redact`` False: every method returns what it gets."""
        self.redact = redact
        self._salt = os.urandom(32)
        self._known: dict[str, str] = {}

    def place(self, path: str, sign: str) -> None:
        """Have sentences show ``sign`` in the place of a path."""
        if len(path) > 1:
            self._learn(path, sign)

    def name(self, kind: str, text: str) -> str:
        """The pseudonym of a topic, a group, ``topic@group``, a host or any other text."""
        if not self.redact or not text:
            return text
        if kind == "topic@group":
            topic, at, group = text.partition("@")
            return self.name("topic", topic) + at + self.name("group", group)
        if kind == "topic":
            for prefix in (RETRY_GROUP_TOPIC_PREFIX, DLQ_GROUP_TOPIC_PREFIX):
                if text.startswith(prefix):
                    return prefix + self.name("group", text.removeprefix(prefix))
            if text.startswith(LMQ_PREFIX):
                return LMQ_PREFIX + self.name("topic", text.removeprefix(LMQ_PREFIX))
        if is_system_topic(text) or text.startswith(SYSTEM_GROUP_PREFIX) or text in system_groups():
            return text
        pseudonym = self._pseudonym(kind, text)
        self._learn(text, pseudonym)
        return pseudonym

    def path(self, path: str) -> str:
        """A path below the store: numbers and names of the layout stay."""
        if not self.redact:
            return path
        shown: list[str] = []
        kinds: tuple[str, ...] = ()
        for part in path.split("/"):
            if kinds:
                shown.append(self.name(kinds[0], part))
                kinds = kinds[1:]
            else:
                shown.append(self._entry(part))
                kinds = _FOLDERS_OF.get(part, ())
        return "/".join(shown)

    def sentence(self, text: str) -> str:
        """A sentence of the program: all names in it are replaced, known or not."""
        return self._pattern.sub(self._shown, text) if self.redact else text

    def words(self, text: str) -> str:
        """A text of words of the program, which are shown even if something is named so."""
        return _WORDS.sub(self._shown_word, text) if self.redact else text

    def _entry(self, part: str) -> str:
        stem, ends = part, ""
        while end := next((end for end in _KEPT_ENDS if stem.endswith(end)), ""):
            stem, ends = stem.removesuffix(end), end + ends
        if stem in _LAYOUT or _FILE_NUMBER.fullmatch(stem) or not stem:
            return part
        return self.name("file", stem) + ends

    def _learn(self, text: str, shown: str) -> None:
        if text not in self._known:
            self._known[text] = shown
            self.__dict__.pop("_pattern", None)

    def _pseudonym(self, kind: str, text: str) -> str:
        data = text.encode("utf-8", "surrogatepass")
        return f"{kind}-{hmac.new(self._salt, data, hashlib.sha256).hexdigest()[:_DIGITS]}"

    @cached_property
    def _words(self) -> frozenset[str]:
        return program_words()

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        known = sorted(filter(_is_telling, self._known), key=len, reverse=True)
        names = "".join(rf"(?<!\w){re.escape(name)}(?!\w)|" for name in known)
        return re.compile(f"{names}{_ADDRESS}|{_PIECE}")

    def _shown(self, found: re.Match[str]) -> str:
        text = found.group()
        if text in self._known and _is_telling(text):
            return self._known[text]
        return self._shown_word(found)

    def _shown_word(self, found: re.Match[str]) -> str:
        text = found.group()
        if _MEASURE.fullmatch(text) or text.lower() in self._words:
            return text
        return self._pseudonym("host" if "." in text or ":" in text else "word", text)


def _is_telling(name: str) -> bool:
    return not name.isdigit() or len(name) >= _SHORT_NUMBER
