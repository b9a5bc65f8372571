"""Messages as producers may give them, odd ones too, to compare two paths."""

from __future__ import annotations

from hypothesis import strategies as st

from storage.format.message import Message, MessageExt

_NAMES = st.sampled_from(
    ["TAGS", "KEYS", "UNIQ_KEY", "KEY", "a", "\u00e9", "\u20ac", "name", "UNIQ_KEYS", "PGROUP"]
)
_ODD_NAMES = _NAMES | st.sampled_from(
    ["DELAY", "WAIT", "TRAN_MSG", "CLUSTER", "", "a\x01b", "a\x02b", "\ud800"]
)
_TEXTS = st.text(" ab-\u00e9\u20ac\U0001f600", min_size=1, max_size=12)
_ODD_TEXTS = _TEXTS | st.sampled_from(
    ["", "true", "false", "3", "\x01", "x\x02y", "\udc00", "k" * 40_000]
)


@st.composite
def plain_messages(draw: st.DrawFn, topic: str = "T") -> Message:
    """Messages that ask for nothing but to be stored."""
    body = draw(st.binary(min_size=1, max_size=40))
    flag = draw(st.integers(-(1 << 31), (1 << 31) - 1))
    if draw(st.booleans()):  # their properties are made when they are first read
        texts = st.none() | _TEXTS
        return Message(topic, body, flag=flag, tags=draw(texts), keys=draw(texts))
    properties = draw(st.dictionaries(_NAMES, _TEXTS, max_size=6))
    return Message(topic, body, flag=flag, properties=properties)


@st.composite
def any_messages(draw: st.DrawFn, topic: str = "T") -> Message:
    """Messages of which every part may be odd."""
    if draw(st.booleans()):
        return draw(plain_messages(topic))
    if not draw(st.integers(0, 5)):
        return MessageExt(topic, b"body", b"TAGS\x01a")
    message = Message(draw(st.sampled_from([topic, "U", "%RETRY%g"])), b"")
    message.body = draw(st.binary(max_size=120))
    message.flag = draw(st.sampled_from([0, 1, -1, 1 << 30]))
    message.properties = draw(st.dictionaries(_ODD_NAMES, _ODD_TEXTS, max_size=5))
    return message
