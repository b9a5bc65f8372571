"""How a message is sent, and what kind of message it is."""

from __future__ import annotations

from enum import Enum, IntEnum


class CommunicationMode(Enum):
    """How a request is made: with an answer, with one later, or without."""

    SYNC = "SYNC"
    ASYNC = "ASYNC"
    ONEWAY = "ONEWAY"


class MessageType(IntEnum):
    """What kind of message is sent (org.apache.rocketmq.common.message.MessageType)."""

    Normal_Msg = 0
    Trans_Msg_Half = 1
    Trans_msg_Commit = 2
    Delay_Msg = 3
