"""What a redrive does with each dead letter."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.retry.failures import origin_of
from broker.retry.redrive_properties import redrive_count
from broker.validation import BODY_LENGTH_ZERO, check_topic
from rmqctl.admin.scan_progress import OnProgress, no_progress
from rmqctl.errors import NotFound, UsageProblem
from rmqctl.output.values import escape_controls
from storage.format.message import (
    DLQ_GROUP_TOPIC_PREFIX,
    RETRY_GROUP_TOPIC_PREFIX,
    SCHEDULE_TOPIC,
    TRANS_HALF_TOPIC,
    TRANS_OP_HALF_TOPIC,
    retry_topic,
)

from .dead_letters import DeadLetters, Place, place_of
from .rows import RedriveRow

if TYPE_CHECKING:
    from broker.api.broker import Broker
    from storage.format.message import MessageExt

    from .rewrite import Rewrite

TO_ORIGIN: Final = "origin"
TO_RETRY: Final = "retry"

SentBefore = Mapping[tuple[Place, str], Sequence[str]]
"""Runs that sent a dead letter, by its position and id, according to their receipts."""


class Planned(NamedTuple):
    """One dead letter of a run. ``target`` None: it is skipped; the row's note says why."""

    place: Place
    target: str | None
    row: RedriveRow


class Planner:
    """Plans what happens to dead letters that are redriven to ``target``.

    ``target`` is ``origin``, ``retry`` or an existing topic; else NotFound or UsageProblem.
    """

    def __init__(
        self,
        broker: "Broker",
        dead_letters: DeadLetters,
        target: str,
        rewriting: "Rewrite",
        max_redrives: int,
        *,
        sent_before: SentBefore,
        to_be_edited: bool = False,
        allow_empty: bool = False,
    ) -> None:
        """``allow_empty``: dead letters with an empty body are sent, too."""
        self._broker = broker
        self._letters = dead_letters
        self._target = target
        self._rewriting = rewriting
        self._max_redrives = max_redrives
        self._sent_before = sent_before
        self._is_to_be_edited = to_be_edited
        self._takes_empty = allow_empty or to_be_edited or rewriting.replaces_body
        self._notes = ["to be edited"] if to_be_edited else rewriting.notes()
        self._known: dict[str, str | None] = {}
        if target not in (TO_ORIGIN, TO_RETRY):
            check_topic(target)
            why_not = self._why_not(target)
            if why_not is not None:
                raise (NotFound if broker.topic(target) is None else UsageProblem)(why_not)

    def plan(
        self,
        messages: Sequence["MessageExt"],
        on_progress: OnProgress = no_progress,
        *,
        most: int | None = None,
    ) -> list[Planned]:
        """The plan of each dead letter, up to the ``most``-th that is sent; None: of all."""
        planned: list[Planned] = []
        left = len(messages) if most is None else most
        for number, message in enumerate(messages):
            if not left:
                break
            on_progress(number, len(messages))
            planned.append(self._planned(message))
            left -= planned[-1].target is not None
        on_progress(len(messages), len(messages))
        return planned

    def _planned(self, message: "MessageExt") -> Planned:
        place = place_of(message)
        runs = self._sent_before.get((place, message.msg_id), ())
        redrives = redrive_count(message.properties) + len(runs)
        origin = origin_of(self._letters.view, message).topic
        target, refusal = self._resolve(origin)
        if refusal is None and redrives >= self._max_redrives:
            refusal = f"not sent: redriven {redrives} times already (--max-redrives)"
        if refusal is None and not (message.raw_body or self._takes_empty):
            refusal = f"not sent: {BODY_LENGTH_ZERO}; --allow-empty sends it anyway"
        if refusal is None and target is not None and not self._is_to_be_edited:
            refusal = self._separator_in(message, target)
        notes = [refusal] if refusal else list(self._notes)
        if self._letters.is_handled(place):
            notes.append("handled before")
        if runs:
            notes.append(f"sent before by {', '.join(runs)}")
        row = RedriveRow(
            message.queue_offset,
            message.msg_id,
            origin,
            None if refusal else target,
            redrives,
            None if refusal else self._rewriting.body_size(message),
            "; ".join(notes) or None,
        )
        return Planned(place, row.target, row)

    def _separator_in(self, message: "MessageExt", target: str) -> str | None:
        """Why a message cannot become a new one: a Java broker has stored U+0001 in a value."""
        if target.startswith(RETRY_GROUP_TOPIC_PREFIX):
            return None
        for name, value in self._rewriting.properties_of(message).items():
            if "\x01" in value:
                shown = escape_controls(name)
                return (
                    f"not sent: the value of property {shown} holds U+0001, which a new message "
                    f"may not have; use --set-property {shown}=VALUE, or --target {TO_RETRY}"
                )
        return None

    def _resolve(self, origin: str | None) -> tuple[str | None, str | None]:
        """The target and, if the message cannot be sent there, the reason."""
        if self._target == TO_RETRY:
            return retry_topic(self._letters.group), None
        if self._target != TO_ORIGIN:
            return self._target, None
        if origin is None:
            return None, "not sent: its original topic is unknown; use --target TOPIC"
        if origin not in self._known:
            self._known[origin] = self._why_not(origin)
        why_not = self._known[origin]
        return origin, None if why_not is None else f"not sent: {why_not}; use --target TOPIC"

    def _why_not(self, topic: str) -> str | None:
        if topic == retry_topic(self._letters.group):
            return None
        if topic.startswith((DLQ_GROUP_TOPIC_PREFIX, RETRY_GROUP_TOPIC_PREFIX)) or topic in (
            SCHEDULE_TOPIC,
            TRANS_HALF_TOPIC,
            TRANS_OP_HALF_TOPIC,
        ):
            return f"topic {topic} is reserved for the broker"
        config = self._broker.topic(topic)
        if config is None:
            return f"topic {topic} does not exist"
        if config.derived:
            return f"topic {topic} has no settings: 'rmqctl topic create {topic}' makes them"
        return None if config.writeable else f"topic {topic} is not writable"


def other_readers(broker: "Broker", group: str, topics: Iterable[str]) -> list[str]:
    """Other groups than ``group`` with progress in one of these topics: they get copies, too."""
    wanted = set(topics)
    return sorted({name for name, topic in broker.consumer_offsets() if topic in wanted} - {group})
