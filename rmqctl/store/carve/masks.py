"""The rules of ``--mask`` on records that are carved."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rmqctl.message.exchange.masked_traces import TOLD, TRACE_STARTS
from rmqctl.message.exchange.masking import Rule, masked, property_changes

if TYPE_CHECKING:
    from rmqctl.admin.store.record_transform import PropertyChange
    from storage.format.message import MessageExt

_OF_BODIES: Final = frozenset({"body", "json", *TOLD})
"""Fields of rules that may change a body: bodies of traces contain all but properties."""


class RuleMask:
    """Rules as a rmqctl.admin.store.record_transform.PropertyMask."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.unpacks = any(rule.field in _OF_BODIES for rule in rules)
        """Whether a rule may change bodies."""
        self.special_starts = TRACE_STARTS if self.unpacks else ()
        """How bodies begin that contain values of other messages."""

    def apply(self, message: "MessageExt") -> None:
        """Mask a message."""
        masked(message, self._rules)

    def property_changes(self) -> "Sequence[PropertyChange] | None":
        """What it does to a message that is not special, if it changes properties only."""
        return property_changes(self._rules)
