r"""Masking rules: values that an export must not contain.

``--mask 'json.customer.email=hash, property.token=drop, keys=hash'``, or ``--mask @FILE`` with one
rule per line. A rule is FIELD=ACTION.

    body               the whole body
    json.PATH          the value at a path of a JSON body: json.order.email, json.items[*].name.
                       A body that is not JSON, or has a name twice in one object, is masked as a
                       whole, and is no match of the path
    keys               each key
    tags               the tag
    property.NAME      one property; property.* is all user properties
    ids=hash           unique ids, which contain the address of a client; copies of a message keep
                       a common id
    hosts=drop         the addresses of client and broker, also in offset ids, and the properties
                       that name a client, such as REPLY_TO_CLIENT

    drop               removes it: an empty body, no property, no member
    stars              a * for each character
    hash               12 hex digits; equal texts stay equal within one export, and over all exports
                       with the same --mask-key. Guesses cannot be tested without the key
    text:TEXT          TEXT instead

Rules apply in order. Traces contain values of other messages, which are masked by the same rules.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from broker.api.failure_reason import FAILURE_CLIENT
from broker.retry.redrive_properties import REDRIVE_DEAD, REDRIVE_ORIGIN, REDRIVE_UNIQUE
from rmqctl.cli.given_file import read_given
from rmqctl.errors import UsageProblem
from rmqctl.parse.near_names import did_you_mean
from storage.counted import counted
from storage.format.crc import crc32
from storage.format.message import (
    PROPERTY_KEYS,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RESERVED_PROPERTIES,
    split_keys,
)

from .masked_traces import TOLD, ids_in, is_trace, masked_trace, without_host

if TYPE_CHECKING:
    from rmqctl.admin.store.record_transform import PropertyChange
    from rmqctl.cli.context import Cli
    from storage.format.message import MessageExt

Change = Callable[[str], str | None]
"""The new text of an old one; None drops it."""

_Keyed = tuple["hashlib._Hash", "hashlib._Hash"]
_HASH_BLOCK: Final = hashlib.sha256().block_size
_HASH_DIGITS: Final = 12
_ID_DIGITS: Final = 32
_ONE_WAY: Final = {"ids": "hash", "hosts": "drop"}
_FIELDS: Final = ("body", "json", "keys", "tags", "property", *_ONE_WAY)
_ELSEWHERE: Final = {
    "value": "body",
    "payload": "body",
    "headers": "property",
    "header": "property",
}
"""Names of other tools, and the names here."""
_IDS: Final = (PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, REDRIVE_UNIQUE)
_OFFSET_IDS: Final = (PROPERTY_ORIGIN_MESSAGE_ID, REDRIVE_DEAD, REDRIVE_ORIGIN)
_BORN_HOST: Final = "__BORNHOST"
"""The address of the client, which a proxy of RocketMQ 5 adds."""
_CLIENTS: Final = (FAILURE_CLIENT, PROPERTY_MESSAGE_REPLY_TO_CLIENT, _BORN_HOST)
"""Properties with the id or the address of a client; its id begins with its address."""
_REMEMBERED: Final = 512
"""Values of a property whose masks are remembered."""
_MOST_STEPS: Final = 100
_FIRST_STEP: Final = re.compile(r"(?:\[(\d+|\*)\]|([^.\[\]]+))")
_STEP: Final = re.compile(r"(?:\.?\[(\d+|\*)\]|\.([^.\[\]]+))")
_KEPT: Final = frozenset({PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX, PROPERTY_KEYS, PROPERTY_TAGS})


@dataclass(slots=True)
class Rule:
    """One rule: ``field`` is body, json, keys, tags or property; ``name`` follows its dot."""

    field: str
    name: str
    change: Change
    text: str = ""
    """The text of the rule."""
    matched: bool = False
    """Whether the rule matched in the messages so far."""
    whole: int = 0
    """Bodies that were masked as a whole, as they are not JSON."""


def given_rules(cli: "Cli", mask: str | None, mask_key: str | None) -> list[Rule]:
    """The rules of ``--mask`` with the key of ``--mask-key``; none without ``--mask``."""
    if mask is None:
        if mask_key is not None:
            raise UsageProblem("--mask-key needs --mask")
        return []
    if mask_key == "":
        raise UsageProblem("--mask-key: the key is empty, so the hashes could be guessed")
    return cli.parsed("--mask", lambda text: parse_rules(text, mask_key), mask)


def parse_rules(text: str, key: str | None) -> list[Rule]:
    """The rules of an option's text; ValueError for a malformed one, OSError for a missing file."""
    if text.startswith("@"):
        lines = read_given(text[1:]).decode().splitlines()
        parts = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not parts:
            raise ValueError(f"{text[1:]} has no rule")
    else:
        parts = text.split(",")
    secret = secrets.token_bytes(32) if key is None else key.encode("utf-8", "surrogateescape")
    keyed = _keyed(secret)
    return [_rule(part.strip(), keyed) for part in parts]


def _rule(text: str, keyed: _Keyed) -> Rule:
    target, equals, action = (part.strip() for part in text.partition("="))
    field, dot, name = target.partition(".")
    plain = field in {"body", "keys", "tags", *_ONE_WAY} and not dot
    named = field in {"json", "property"} and bool(name)
    if not equals or not (plain or named):
        hint = "" if field in _FIELDS else did_you_mean(field, _FIELDS, _ELSEWHERE)
        if not hint and not equals and _steps(path := target.removeprefix("$.")):
            hint = f"; the field of a JSON body: json.{path}=hash"
        raise ValueError(
            f"{text!r} is not a rule (such as body=drop, json.PATH=hash, keys=hash, "
            f"property.NAME=stars){hint}"
        )
    if field == "json" and not _steps(name):
        raise ValueError(f"{name!r} is not a path (such as order.email or items[*].name)")
    if field in _ONE_WAY and action != _ONE_WAY[field]:
        raise ValueError(f"{text!r} is not a rule: {field} can only be {field}={_ONE_WAY[field]}")
    if field == "ids":
        return Rule(field, name, lambda text: _hashed(text, keyed)[:_ID_DIGITS].upper(), text)
    return Rule(field, name, _change(action, keyed), text)


def _change(action: str, keyed: _Keyed) -> Change:
    if action.startswith("text:"):
        return lambda _: action.removeprefix("text:")
    match action:
        case "drop":
            return lambda _: None
        case "stars":
            return lambda text: "*" * len(text)
        case "hash":
            return lambda text: _hashed(text, keyed)[:_HASH_DIGITS]
    raise ValueError(f"{action!r} is not one of drop, stars, hash, text:TEXT")


def _keyed(secret: bytes) -> _Keyed:
    """The two hashes of HMAC-SHA256 that have taken in the key, inner and outer."""
    key = secret if len(secret) <= _HASH_BLOCK else hashlib.sha256(secret).digest()
    key = key.ljust(_HASH_BLOCK, b"\0")
    inner, outer = (bytes(byte ^ pad for byte in key) for pad in (0x36, 0x5C))
    return hashlib.sha256(inner), hashlib.sha256(outer)


def _hashed(text: str, keyed: _Keyed) -> str:
    within, around = keyed[0].copy(), keyed[1].copy()
    within.update(text.encode("utf-8", "surrogateescape"))
    around.update(within.digest())
    return around.hexdigest()


def masked(message: "MessageExt", rules: Sequence[Rule]) -> "MessageExt":
    """Apply all rules to the message object. Raises BodyError as ``body`` does."""
    told = [rule for rule in rules if rule.field in TOLD]
    trace = None
    if told and is_trace(body := message.body):
        trace = message.body = body  # kept, so that a rule that changes it is seen
    for rule in rules:
        match rule.field:
            case "ids":
                _mask_ids(message, rule, trace)
            case "hosts":
                _mask_hosts(message, rule)
            case "body":
                rule.matched |= bool(message.body)
                _set_body(message, _text(message.body), rule.change)
            case "json":
                _mask_json(message, rule)
            case "keys":
                keys = message.keys
                rule.matched |= bool(keys)
                _set_property(message, PROPERTY_KEYS, masked_keys(keys, rule))
            case "tags":
                rule.matched |= bool(message.tags)
                _set_property(message, PROPERTY_TAGS, rule.change(message.tags or ""))
            case _:
                _mask_property(message, rule)
    if trace is not None and message.body is trace:
        _store_body(message, masked_trace(trace, told))
    return message


def property_changes(rules: Iterable[Rule]) -> "list[PropertyChange] | None":
    """What :func:`masked` does to the properties of a message that is no trace, one after the
    other; None if it does more than that, or which properties it changes depends on the message."""
    found: list[PropertyChange] = []
    for rule in rules:
        match rule.field:
            case "ids":
                found += [(name, _value_change(rule)) for name in _IDS]
            case "keys":
                found.append((PROPERTY_KEYS, _keys_change(rule)))
            case "tags":
                found.append((PROPERTY_TAGS, _repeated(_value_change(rule))))
            case "property" if rule.name != "*":
                found.append((rule.name, _repeated(_value_change(rule))))
            case _:
                return None
    return found


def _value_change(rule: Rule) -> Callable[[str], str]:
    def changed(value: str) -> str:
        rule.matched = True
        return rule.change(value) or ""

    return changed


def _keys_change(rule: Rule) -> Callable[[str], str]:
    def changed(value: str) -> str:
        if " " not in value:  # one key, mostly
            rule.matched = True
            return (rule.change(value) or "").replace(" ", "_")
        keys = split_keys(value)
        rule.matched |= bool(keys)
        return masked_keys(keys, rule)

    return changed


def _repeated(change: Callable[[str], str]) -> Callable[[str], str]:
    """The same for values that mostly come again, as tags do and keys do not."""
    return lru_cache(_REMEMBERED)(change)


def unmatched(rules: Iterable[Rule]) -> list[str]:
    """A sentence for each rule that matched nothing, as its name may be misspelt."""
    return [
        f"--mask: {rule.text} matched nothing{_but_whole(rule.whole)}"
        for rule in rules
        if not rule.matched
    ]


def _but_whole(count: int) -> str:
    if not count:
        return ""
    bodies = counted(count, "body that is not JSON was", "bodies that are not JSON were")
    return f"; {bodies} masked as a whole"


def masked_keys(keys: Iterable[str], rule: Rule) -> str:
    """Keys with a rule applied, as stored."""
    changed = [_one_word(rule.change(key)) for key in keys]
    return " ".join(key for key in changed if key)


def _text(body: bytes) -> str:
    return body.decode("utf-8", "surrogateescape")


def _set_body(message: "MessageExt", text: str, change: Change) -> None:
    _store_body(message, (change(text) or "").encode("utf-8", "surrogateescape"))


def _store_body(message: "MessageExt", body: bytes) -> None:
    message.body = body
    # With the old CRC a guess of the body could be verified.
    message.body_crc = crc32(body)


def _mask_json(message: "MessageExt", rule: Rule) -> None:
    from rmqctl.parse.json_texts import parse_given, write_json

    try:
        value = parse_given(message.body)
        found = _replace(value, _steps(rule.name), rule.change)
        text = write_json(value) if found else ""
    except ValueError:
        rule.whole += bool(message.body)
        _set_body(message, _text(message.body), rule.change)
        return
    if found:
        rule.matched = True
        _set_body(message, text, lambda text: text)


@lru_cache(maxsize=64)
def _steps(path: str) -> list[str | int]:
    """``a.b[0][*]`` as its steps; empty for a malformed path."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        found = (_STEP if steps else _FIRST_STEP).match(path, at)
        if found is None:
            return []
        number = found[1]
        steps.append(found[2] if number is None else "*" if number == "*" else int(number))
        at = found.end()
        if len(steps) > _MOST_STEPS:
            return []
    return steps


def _replace(value: Any, steps: list[str | int], change: Change) -> bool:
    """Change the values at a path, in place; returns whether there were any."""
    step, rest = steps[0], steps[1:]
    places: list[Any]
    if step == "*":
        places = list(range(len(value))) if isinstance(value, list) else list(_names(value))
    elif isinstance(value, list):
        places = [step] if isinstance(step, int) and step < len(value) else []
    else:
        places = [step] if step in _names(value) else []
    found = False
    for place in reversed(places):  # from the end, as a removal shifts later items
        if rest:
            found = _replace(value[place], rest, change) or found
            continue
        found = True
        text = change(_as_text(value[place]))
        if text is None:
            del value[place]
        else:
            value[place] = text
    return found


def _names(value: Any) -> Any:
    return value.keys() if isinstance(value, dict) else ()


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    import json

    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _mask_property(message: "MessageExt", rule: Rule) -> None:
    names = [rule.name]
    if rule.name == "*":
        names = [name for name in message.properties if name not in RESERVED_PROPERTIES]
    for name in names:
        value = message.get_property(name)
        if value is not None and (name not in _KEPT or rule.name != "*"):
            rule.matched = True
            _set_property(message, name, rule.change(value))


def _set_property(message: "MessageExt", name: str, value: str | None) -> None:
    properties = dict(message.properties)
    if name not in properties:
        return
    if value:
        properties[name] = value
    else:
        del properties[name]
    message.properties = properties


def _mask_ids(message: "MessageExt", rule: Rule, trace: bytes | None) -> None:
    for name in _IDS:
        value = message.get_property(name)
        if value is not None:
            rule.matched = True
            _set_property(message, name, rule.change(value))
    if trace is not None:
        known = ids_in(trace)
        keys = [(rule.change(key) or "") if key in known else key for key in message.keys]
        _set_property(message, PROPERTY_KEYS, " ".join(keys))


def _mask_hosts(message: "MessageExt", rule: Rule) -> None:
    rule.matched = True
    message.born_host_bytes = bytes(len(message.born_host_bytes))
    message.store_host_bytes = bytes(len(message.store_host_bytes))
    for name in _CLIENTS:
        _set_property(message, name, None)
    for name in _OFFSET_IDS:
        value = message.get_property(name)
        if value is not None:
            _set_property(message, name, without_host(value))


def _one_word(key: str | None) -> str:
    """Keys are separated by blanks: a text with blanks would be several keys."""
    return (key or "").replace(" ", "_")
