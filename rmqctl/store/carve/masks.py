"""The rules of ``--mask`` on records that are carved."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rmqctl.message.exchange.masked_traces import TOLD
from rmqctl.message.exchange.masking import Rule, masked

if TYPE_CHECKING:
    from storage.format.message import MessageExt

_OF_BODIES: Final = frozenset({"body", "json", *TOLD})
"""Fields of rules that may change a body: bodies of traces contain all but properties."""


class RuleMask:
    """Rules as a rmqctl.admin.store.record_transform.Mask."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self.unpacks = any(rule.field in _OF_BODIES for rule in rules)
        """Whether a rule may change bodies."""

    def apply(self, message: "MessageExt") -> None:
        """Mask a message."""
        masked(message, self._rules)
