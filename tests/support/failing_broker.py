"""A broker that refuses, fails or answers late, and otherwise forwards to a real one.

    failing = FailingBroker(broker, clock)
    failing.plan("send", BrokerBusyError("overloaded"), LATE(500), LOST, STATUS(not_available))

The first call of ``send`` is refused, the second answers 500 ms late, the third is done but its
answer is lost, the fourth is done and its result shown with another status; all later ones are
passed on as they are. ``always`` does the same with every call.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.api.send import SendStatus
from client.errors import RemotingError, RemotingTimeoutError
from tests.support.manual_time import ManualClock


class OutOfReachError(RemotingError):
    """The connection is gone: nothing was done."""


@dataclass(frozen=True)
class LATE:
    """The answer comes after so many ms."""

    ms: int


@dataclass(frozen=True)
class SILENT:
    """Nothing is done and no answer comes; after so many ms the caller gets an error."""

    ms: int


@dataclass(frozen=True)
class STATUS:
    """The message is stored, and the answer is another one."""

    status: SendStatus


@dataclass(frozen=True)
class THEN:
    """It is done, and the action runs before the answer comes."""

    action: Callable[[], object]


LOST = object()
"""It is done, but no answer comes."""

DOWN = OutOfReachError("the connection is refused")


class FailingBroker:
    """Passes calls on to ``broker``, unless it is planned otherwise."""

    def __init__(self, broker: Any, clock: ManualClock | None = None) -> None:
        self.broker = broker
        self._clock = clock
        self._plans: defaultdict[str, deque[object]] = defaultdict(deque)
        self._always: dict[str, object] = {}
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        """Calls of methods with a plan: name and arguments."""

    @property
    def name(self) -> str:
        return str(self.broker.name)

    def plan(self, method: str, *outcomes: object) -> None:
        self._plans[method].extend(outcomes)

    def always(self, method: str, outcome: object) -> None:
        self._always[method] = outcome

    def heal(self) -> None:
        self._plans.clear()
        self._always.clear()

    def called(self, method: str) -> int:
        return sum(name == method for name, _ in self.calls)

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.broker, name)
        if not callable(real) or name.startswith("_"):
            return real

        def call(*arguments: Any, **options: Any) -> Any:
            if name in self._plans or name in self._always:
                self.calls.append((name, arguments))
            plan = self._plans.get(name)
            outcome = plan.popleft() if plan else self._always.get(name)
            return self._do(outcome, lambda: real(*arguments, **options))

        return call

    def _do(self, outcome: object, do: Callable[[], Any]) -> Any:
        match outcome:
            case BaseException():
                raise outcome
            case LATE(ms):
                self._advance(ms)
                return do()
            case SILENT(ms):
                self._advance(ms)
                raise RemotingTimeoutError(f"no answer within {ms} ms")
            case THEN(action):
                answer = do()
                action()
                return answer
            case STATUS(status):
                return do()._replace(send_status=status)
            case _ if outcome is LOST:
                do()
                raise RemotingTimeoutError("the answer is lost")
            case _:
                return do()

    def _advance(self, ms: int) -> None:
        if self._clock is None:
            raise ValueError("a broker that answers late needs a clock")
        self._clock.advance(ms)
