"""The client instances of a process, one per client id (MQClientManager of 4.9)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from client.timing import SYSTEM_CLOCK, Clock, Scheduler, ThreadScheduler
from storage.coordination.locks import ForkAware, at_fork

from .instance import ClientInstance

if TYPE_CHECKING:
    from broker.api.broker import Broker

    from .client_config import ClientConfig


class ClientManager(ForkAware):
    """Instances by client id. Safe for threads. One for the whole process: ``CLIENT_MANAGER``.

    A forked child makes its own: those of its parent have no threads there.

    A test that stops time makes one with its own clock and timers, and without ``threads``: then
    only ``run_once`` of the services pulls or rebalances.
    """

    def __init__(
        self,
        *,
        clock: Clock = SYSTEM_CLOCK,
        schedulers: Callable[[str], Scheduler] = ThreadScheduler,
        threads: bool = True,
    ) -> None:
        self.clock: Final = clock
        self._schedulers = schedulers
        self._threads = threads
        self._lock = threading.Lock()  # guards the table
        self._instances: dict[str, ClientInstance] = {}
        at_fork(self)

    def after_fork(self) -> None:
        """Have no instance in the child."""
        self._lock = threading.Lock()
        self._instances = {}

    def get_or_create(self, config: ClientConfig, brokers: Iterable[Broker]) -> ClientInstance:
        """Give the instance of ``config.client_id``; ``brokers`` are added to its own.

        Its settings are those of the first call. Raises ClientConfigError if it has another broker
        of the same name: then give one of the clients another ``instance_name``.
        """
        client_id = config.client_id
        with self._lock:
            instance = self._instances.get(client_id)
            if instance is None:
                instance = self._instances[client_id] = ClientInstance(
                    config,
                    brokers,
                    clock=self.clock,
                    schedulers=self._schedulers,
                    threads=self._threads,
                    on_shutdown=self._forget,
                )
                return instance
        for broker in brokers:
            instance.add_broker(broker)
        return instance

    def persist_all_consumer_offset(self) -> None:
        """Commit the progress of all consumers of this process now, not when their time comes."""
        with self._lock:
            instances = list(self._instances.values())
        for instance in instances:
            instance.persist_all_consumer_offset()

    def _forget(self, instance: ClientInstance) -> None:
        with self._lock:
            if self._instances.get(instance.client_id) is instance:
                del self._instances[instance.client_id]


CLIENT_MANAGER: Final = ClientManager()
