"""The options of ``consume`` for a member of a group."""

from collections.abc import Sequence
from typing import NamedTuple

from rmqctl.errors import UsageProblem


class MemberOptions(NamedTuple):
    """Options for joining a group."""

    threads: int | None = None
    orderly: bool = False
    broadcast: bool = False
    command: str | None = None
    max_reconsume_times: int | None = None
    delay_level: int | None = None
    settings: Sequence[str] = ()
    consume_timestamp: int | None = None
    """The consumeTimestamp of the settings, in ms; not among them, as its text has no offset."""

    def with_model(self) -> "MemberOptions":
        """The same; ``--set messageModel=BROADCASTING`` is ``broadcast``, with all that it is."""
        if not any(one.partition("=")[0].strip() == "messageModel" for one in self.settings):
            return self
        from broker.api.members import MessageModel
        from client.consumer.consumer_settings import set_by_name  # lazy: few calls have settings
        from client.errors import ClientConfigError

        try:
            model = set_by_name(self.settings)[0].message_model
        except ClientConfigError as error:
            raise UsageProblem(str(error)) from None
        return self._replace(broadcast=self.broadcast or model is MessageModel.BROADCASTING)

    def check(self, group: str | None, commit: bool | None) -> None:
        """Refuse them without a group, and options that the way of consuming would ignore."""
        self._check_retries()
        if self != MemberOptions() and (group is None or commit is False):
            asked = {
                "--threads": self.threads,
                "--orderly": self.orderly,
                "--broadcast": self.broadcast,
                "--exec": self.command,
                "--max-reconsume-times": self.max_reconsume_times,
                "--delay-level": self.delay_level,
                "--set": self.settings or self.consume_timestamp,
            }
            name = next(
                name
                for name, value in asked.items()
                if value is not None and value is not False and value != ()
            )
            why = "--group" if group is None else "a group that commits: no --no-commit"
            raise UsageProblem(f"{name} needs {why}")

    def _check_retries(self) -> None:
        if self.orderly:
            says_nothing = {"--delay-level": self.delay_level}
            why = (
                "with --orderly: the queue waits at a message that fails "
                "(--set suspendCurrentQueueTimeMillis=MS)"
            )
        elif self.broadcast:
            says_nothing = {
                "--delay-level": self.delay_level,
                "--max-reconsume-times": self.max_reconsume_times,
            }
            why = "with --broadcast: broadcasting has no retries, failed messages are dropped"
        else:
            return
        for name, value in says_nothing.items():
            if value is not None:
                raise UsageProblem(f"{name} has no effect {why}")
