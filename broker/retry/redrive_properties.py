"""Origin of a redriven message: user properties that lead back to its dead letter.

RocketMQ has no redriving: a dead letter that is sent again is a new message. These names are
ordinary user properties, so any client can read them.

A client that gives such a message back keeps them, and so does its next dead letter: so the count
continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.api.failure_reason import FAILURE_PROPERTIES
from storage.format.message import (
    PROPERTY_BUYER_ID,
    PROPERTY_CORRELATION_ID,
    PROPERTY_INNER_MULTI_DISPATCH,
    PROPERTY_INSTANCE_ID,
    PROPERTY_KEYS,
    PROPERTY_MESSAGE_REPLY_TO_CLIENT,
    PROPERTY_MESSAGE_TTL,
    PROPERTY_MESSAGE_TYPE,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    RESERVED_PROPERTIES,
    MessageExt,
)

REDRIVES: Final = "RMQCTL_REDRIVES"
"""How often it was redriven, this time included."""
REDRIVE_DEAD: Final = "RMQCTL_REDRIVE_DEAD"
"""The dead letter's own (offset) id."""
REDRIVE_ORIGIN: Final = "RMQCTL_REDRIVE_ORIGIN"
"""ORIGIN_MESSAGE_ID of the first dead letter: the message that was consumed first."""
REDRIVE_UNIQUE: Final = "RMQCTL_REDRIVE_UNIQUE"
"""Unique id of the message that died first."""
REDRIVE_RUN: Final = "RMQCTL_REDRIVE_RUN"
"""The run that did it; a run takes each dead letter once."""

LINEAGE_PROPERTIES: Final = (
    REDRIVES,
    REDRIVE_DEAD,
    REDRIVE_ORIGIN,
    REDRIVE_UNIQUE,
    REDRIVE_RUN,
)

KEPT_RESERVED: Final = frozenset(
    {
        PROPERTY_KEYS,
        PROPERTY_TAGS,
        PROPERTY_BUYER_ID,
        PROPERTY_INSTANCE_ID,
        PROPERTY_CORRELATION_ID,
        PROPERTY_MESSAGE_REPLY_TO_CLIENT,
        PROPERTY_MESSAGE_TTL,
        PROPERTY_MESSAGE_TYPE,
        PROPERTY_INNER_MULTI_DISPATCH,
    }
)
"""Reserved properties that are the producer's own: a redriven message has them, too."""


def redrive_count(properties: Mapping[str, str]) -> int:
    """Read how often a message was redriven; 0 without a valid count."""
    text = properties.get(REDRIVES, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def own_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Take the producer's properties out of a dead letter's: no traces of retries, none of ours.

    Tag and keys are the producer's. The order stays.
    """
    dropped = {*FAILURE_PROPERTIES, *LINEAGE_PROPERTIES, *(RESERVED_PROPERTIES - KEPT_RESERVED)}
    return {name: value for name, value in properties.items() if name not in dropped}


def lineage_properties(dead: MessageExt, run: str) -> dict[str, str]:
    """Make the properties that lead from a redriven message back to its dead letter."""
    properties = dead.properties
    made = {
        REDRIVES: str(redrive_count(properties) + 1),
        REDRIVE_DEAD: dead.offset_msg_id,
        REDRIVE_RUN: run,
    }
    origin = properties.get(REDRIVE_ORIGIN) or properties.get(PROPERTY_ORIGIN_MESSAGE_ID)
    unique = properties.get(REDRIVE_UNIQUE) or properties.get(
        PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
    )
    if origin:
        made[REDRIVE_ORIGIN] = origin
    if unique:
        made[REDRIVE_UNIQUE] = unique
    return made


def retry_properties(dead: MessageExt) -> dict[str, str]:
    """Make what a dead letter needs to be a retry of the same message: id, origin, real topic."""
    names = (
        PROPERTY_RETRY_TOPIC,
        PROPERTY_ORIGIN_MESSAGE_ID,
        PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX,
    )
    return {name: value for name in names if (value := dead.get_property(name))}
