"""What a run of a member ends with: messages that failed are its exit code."""

from typing import TYPE_CHECKING

from rmqctl.errors import CliError, PartlyDone
from storage.counted import counted

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli

    from .listener import MemberListener


def judge_run(
    cli: "Cli",
    topic: str,
    listening: "MemberListener",
    dropped: str | None,
    *,
    are_skipped: bool,
    waits: bool,
) -> None:
    """Say what became of the messages. PartlyDone (8) if some failed, CliError (1) if all did.

    ``dropped`` is why failed messages are dropped without a retry, None if they are not.
    ``are_skipped``: messages whose bodies cannot be unpacked are skipped, not retried.
    ``waits``: a queue waits at a message that fails, however often.
    """
    if dropped is not None:
        failed = counted(listening.failed, "message")
        were = "was" if listening.failed == 1 else "were"
        raise PartlyDone(f"{failed} of {topic} failed and {were} dropped: {dropped}")
    attempts, failed_in_the_end = listening.failed, listening.failed_in_the_end
    if failed_in_the_end:
        count = listening.quota.consumed - (attempts - failed_in_the_end)  # each message once
        fate = _fate(failed_in_the_end, waits=waits)
        sentence = f"{failed_in_the_end} of {counted(count, 'message')} failed; {fate}"
        raise PartlyDone(sentence) if failed_in_the_end < count else CliError(sentence)
    if attempts:
        cli.say(f"{counted(attempts, 'attempt')} failed; an orderly queue waits for its message")
    cli.detail(f"consumed {counted(listening.quota.consumed, 'message')} of {topic}")
    if unreadable := listening.unreadable:
        has = "has a body" if unreadable == 1 else "have bodies"
        skipped = "it is skipped" if unreadable == 1 else "they are skipped"
        raise PartlyDone(
            f"{counted(unreadable, 'message')} of {topic} {has} that cannot be unpacked; "
            f"{skipped if are_skipped else _fate(unreadable, waits=waits)}"
        )


def _fate(failed: int, *, waits: bool) -> str:
    if waits:
        return "its queue waits at it" if failed == 1 else "their queues wait at them"
    if failed == 1:
        return "it will be retried, or is a dead letter"
    return "they will be retried, or are dead letters"
