"""What a run of a member ends with: messages that failed are its exit code."""

from typing import TYPE_CHECKING

from rmqctl.errors import CliError, PartlyDone

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
) -> None:
    """Say what became of the messages. PartlyDone (8) if some failed, CliError (1) if all did.

    ``dropped`` is why failed messages are dropped without a retry, None if they are not.
    ``are_skipped``: messages whose bodies cannot be unpacked are skipped, not retried.
    """
    if dropped is not None:
        raise PartlyDone(
            f"{listening.failed} messages of {topic} failed and were dropped: {dropped}"
        )
    attempts, failed = listening.failed, listening.failed_in_the_end
    if failed:
        count = listening.quota.consumed - (attempts - failed)  # each message once
        sentence = f"{failed} of {count} messages failed; they will be retried, or are dead letters"
        raise PartlyDone(sentence) if failed < count else CliError(sentence)
    if attempts:
        cli.say(f"{attempts} attempts failed; an orderly queue waits for its message")
    cli.detail(f"consumed {listening.quota.consumed} messages of {topic}")
    if listening.unreadable:
        fate = "are skipped" if are_skipped else "will be retried, or are dead letters"
        raise PartlyDone(
            f"{listening.unreadable} messages of {topic} have bodies that cannot be unpacked; "
            f"they {fate}"
        )
