"""Transactions: half messages, and how they end."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from storage.format.message import MessageExt


class LocalTransactionState(StrEnum):
    """What became of a producer's local transaction (LocalTransactionState of 4.9)."""

    COMMIT_MESSAGE = "COMMIT_MESSAGE"
    ROLLBACK_MESSAGE = "ROLLBACK_MESSAGE"
    UNKNOW = "UNKNOW"
    """Not known yet: the broker will ask."""


class EndTransactionRequest(NamedTuple):
    """The end of a transaction (EndTransactionRequestHeader).

    ``transaction_state_table_offset`` (its queue offset in the half topic) and ``commitlog_offset``
    name the half message. ``from_check`` marks an answer to a check.
    """

    producer_group: str
    transaction_state_table_offset: int
    commitlog_offset: int
    state: LocalTransactionState
    from_check: bool = False
    msg_id: str = ""
    transaction_id: str = ""


class CheckTransactionState(NamedTuple):
    """A broker's question (CheckTransactionStateRequestHeader with the half message as body).

    ``message`` shows the real topic and queue. The offsets go into ``end_transaction``.
    """

    producer_group: str
    message: MessageExt
    transaction_state_table_offset: int
    commitlog_offset: int
    msg_id: str
    transaction_id: str


class TransactionApi(Protocol):
    """Ending transactions; half messages come by ``send`` with property TRAN_MSG."""

    def end_transaction(self, request: EndTransactionRequest) -> None:
        """Commit or roll back a half message; UNKNOW does nothing (END_TRANSACTION).

        Raises BrokerSystemError if the half message is missing or another one.
        """
        ...
