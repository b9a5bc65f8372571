"""The terms of ``rmqctl explain``: words, codes, states, settings, fields, commands."""

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final, NamedTuple

from rmqctl.cli.tree import TREE, CommandRef
from rmqctl.parse.meanings import ROOT, meanings, modules_named, printed_rows


class Term(NamedTuple):
    """A term that can be explained."""

    term: str
    kind: str
    text: str
    also: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    forms: tuple[tuple[str, str], ...] = ()
    """The ways to write it, each with its meaning."""


_FINDING: Final = "finding of store fsck"
_GROUPS_SEE: Final = ("lag show", "offset inspect")

_ENUMS: Final[tuple[tuple[str, str, str, tuple[str, ...]], ...]] = (
    ("storage.tools.fsck.findings", "Code", _FINDING, ("store fsck",)),
    ("analytics.lag.health", "Health", "health of a group", ("lag show", "lag check")),
    ("analytics.lag.queue_position", "OffsetState", "state of a group in a queue", _GROUPS_SEE),
    (
        "rmqctl.admin.offsets.orphan_rows",
        "Problem",
        "finding of offset orphans",
        ("offset orphans",),
    ),
    ("rmqctl.admin.lag.check_rows", "Verdict", "word of lag check", ("lag check",)),
    ("broker.api.send", "SendStatus", "outcome of sending a message", ("produce",)),
    ("storage.results", "PutMessageStatus", "outcome of storing a message", ()),
    ("storage.results", "GetMessageStatus", "outcome of reading a queue", ()),
    ("broker.api.pull", "PullStatus", "outcome of a pull", ()),
    ("client.listener.listener", "ConsumeConcurrentlyStatus", "result of a listener", ()),
    ("client.listener.listener", "ConsumeOrderlyStatus", "result of an orderly listener", ()),
    ("broker.api.transactions", "LocalTransactionState", "state of a transaction", ()),
    ("broker.api.members", "MessageModel", "mode of a group", ("group describe",)),
    ("broker.api.members", "ConsumeType", "mode of a group", ("group describe",)),
    ("broker.api.offsets", "ConsumeFromWhere", "start of a new group", ("consume",)),
    (
        "storage.read.by_time",
        "Boundary",
        "message for a time",
        ("resetOffsetByTime",),
    ),
    ("storage.config", "FlushDiskType", "when a message is acknowledged", ("produce",)),
)
_PROPERTIES: Final = (
    "storage.format.message",
    "broker.api.failure_reason",
    "broker.retry.redrive_properties",
)
"""Modules whose constants are names of properties."""
_SETTINGS: Final = (
    ("storage.config", "StoreConfig", "setting of a store"),
    ("broker.config", "BrokerConfig", "setting of a broker"),
    ("client.consumer.consumer_config", "ConsumerConfig", "setting of a consumer"),
    ("client.producer.config", "ProducerConfig", "setting of a producer"),
    ("client.runtime.client_config", "ClientConfig", "setting of a client"),
)


def normal(text: str) -> str:
    """The key of a term for lookups: its letters and digits, in lower case."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


@cache
def known_terms() -> tuple[Term, ...]:
    """All terms, read once for all look-ups of a process."""
    return tuple(all_terms())


def all_terms() -> Iterator[Term]:
    """All terms; a name with several meanings occurs once for each."""
    from .glossary import WORDS

    for term, word in WORDS.items():
        yield Term(term, "word", word.text, word.also, word.see)
    yield _time()
    yield from _conditions()
    for code in meanings("rmqctl.exit_codes"):
        yield Term(code.value, "exit code", code.text, (code.name, f"exit code {code.value}"))
    for module, owner, kind, see in _ENUMS:
        for found in meanings(module, owner):
            yield Term(found.name, kind, found.text, (), see)
    for answer in meanings("broker.errors", "ResponseCode"):
        yield Term(answer.name, "answer of a broker", answer.text, (answer.value,))
    for module, owner, kind in _SETTINGS:
        for found in meanings(module, owner):
            yield Term(found.name, kind, found.text, _java_name(found.text))
    yield from _properties()
    yield from _own_settings()
    yield from _commands()
    yield from _fields()


def _time() -> Term:
    """The forms of a time."""
    from storage.parse.time_forms import RULES, TITLE, form_lines

    text = "\n".join((TITLE, *RULES))
    return Term("time", "form", text, ("times", "T"), ("consume", "offset reset"), form_lines())


def _conditions() -> Iterator[Term]:
    """The forms of --where and --json-path."""
    from rmqctl.parse import condition_forms as forms

    text = "\n".join((forms.WHERE_TITLE, *forms.WHERE_RULES))
    see = ("lag show", "topic list")
    yield Term("where", "form", text, ("--where", "condition"), see, forms.WHERE_FORMS)
    text = "\n".join((forms.JSON_TITLE, *forms.JSON_RULES))
    see = ("consume", "message search")
    yield Term("json-path", "form", text, ("--json-path", "JSONPath"), see, forms.JSON_FORMS)


def _properties() -> Iterator[Term]:
    for module in _PROPERTIES:
        for found in meanings(module):
            if found.value.isupper():
                yield Term(found.value, "property of a message", found.text, (), ("message get",))


def _own_settings() -> Iterator[Term]:
    from rmqctl.cli.settings import KEYS

    for name, (_, meaning) in KEYS.items():
        text = f"{meaning[:1].upper()}{meaning[1:]}."
        yield Term(name, "setting of rmqctl", text, (f"RMQCTL_{name.upper()}",), ("config show",))


def _java_name(text: str) -> tuple[str, ...]:
    """RocketMQ's name of a setting, which its docstring has in brackets."""
    found = re.search(r"\(([a-z]\w*[A-Z]\w*)\)", text)
    return (found[1],) if found else ()


def _commands() -> Iterator[Term]:
    for name, entry in TREE.items():
        if isinstance(entry, CommandRef):
            yield Term(name, "command", entry.help + ".", (), (name,))
        else:
            for verb, leaf in entry.verbs.items():
                yield Term(f"{name} {verb}", "command", leaf.help + ".", (), (f"{name} {verb}",))


def _fields() -> Iterator[Term]:
    """Fields of rows; rows that describe a field in the same words share a term."""
    printing = _commands_by_row()
    found: dict[tuple[str, str], list[str]] = {}
    for module in _row_modules():
        for field in meanings(module, "*"):
            if field.owner in printing:
                found.setdefault((field.name, field.text), []).extend(printing[field.owner])
    for (name, text), commands in found.items():
        yield Term(name, "field", text[:1].upper() + text[1:] + ".", (), tuple(commands))


def _row_modules() -> list[str]:
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in modules_named("rows")
    ]


def _commands_by_row() -> Mapping[str, list[str]]:
    rows = printed_rows()
    commands: dict[str, list[str]] = {}
    for name, entry in TREE.items():
        leaves = {"": entry} if isinstance(entry, CommandRef) else entry.verbs
        for verb, leaf in leaves.items():
            row = rows.get((leaf.module, leaf.function))
            if row is not None:
                commands.setdefault(row, []).append(f"{name} {verb}".strip())
    return commands


_EXIT_CODE: Final = re.compile(r"(?:exit|rc|code|status|return)+(\d+)")
_EXIT_CODES: Final = frozenset({"exitcodes", "exitcode", "exitstatus", "returncodes", "returncode"})


def find(question: str) -> list[Term]:
    """All meanings of a term, by its name or another name; all exit codes by their kind."""
    wanted = normal(question).replace("-", "")
    if wanted in _EXIT_CODES:
        return [term for term in known_terms() if term.kind == "exit code"]
    number = _EXIT_CODE.fullmatch(wanted)
    wanted = number[1] if number else normal(question)
    return [
        term
        for term in known_terms()
        if wanted and wanted in {normal(term.term), *map(normal, term.also)}
    ]


def nearest(question: str) -> list[str]:
    """Up to three similar terms."""
    names = {normal(name): name for term in known_terms() for name in (*term.also, term.term)}
    return [names[name] for name in get_close_matches(normal(question), names, 3, 0.6)]
