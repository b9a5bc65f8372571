"""Hooks around the calls of a listener (ConsumeMessageHook of 4.9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from client.hooks import CONSUME_CONTEXT_TYPE, ConsumeMessageContext, ConsumeReturnType, call_hooks

if TYPE_CHECKING:
    from client.hooks import ConsumeMessageHook
    from storage.format.message import MessageExt, MessageQueue


def call_before(
    hooks: Sequence[ConsumeMessageHook],
    group: str,
    messages: Sequence[MessageExt],
    queue: MessageQueue,
) -> ConsumeMessageContext:
    """Call hooks before a call of the listener; gives the context for afterwards."""
    context = ConsumeMessageContext(consumer_group=group, messages=messages, message_queue=queue)
    call_hooks((hook.consume_message_before for hook in hooks), context)
    return context


def call_after(
    hooks: Sequence[ConsumeMessageHook],
    context: ConsumeMessageContext,
    status: str,
    return_type: ConsumeReturnType,
    *,
    success: bool,
) -> None:
    """Call hooks with the outcome."""
    context.status = status
    context.success = success
    context.props[CONSUME_CONTEXT_TYPE] = return_type.name
    call_hooks((hook.consume_message_after for hook in hooks), context)


def return_type(
    answer: object, error: BaseException | None, *, failed: bool, timed_out: bool
) -> ConsumeReturnType:
    """Name how a listener returned; TIME_OUT is for hooks only, its answer counts all the same."""
    if error is not None:
        return ConsumeReturnType.EXCEPTION
    if answer is None:
        return ConsumeReturnType.RETURNNULL
    if timed_out:
        return ConsumeReturnType.TIME_OUT
    return ConsumeReturnType.FAILED if failed else ConsumeReturnType.SUCCESS
