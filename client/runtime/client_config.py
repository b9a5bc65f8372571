"""What producers and consumers have in common (org.apache.rocketmq.client.ClientConfig)."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, fields, replace
from typing import Final

from client.arguments import check_settings
from storage.config import FROM_ONE
from storage.format.shapes import MAX_LONG

DEFAULT_INSTANCE_NAME: Final = "DEFAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings of a client instance; immutable. The first client of an instance sets them."""

    client_ip: str = "127.0.0.1"
    """First part of the client id. RocketMQ takes an address of the machine; clients of a broker in
    a folder are on this machine, and a fixed name keeps their broadcast progress."""
    instance_name: str = DEFAULT_INSTANCE_NAME
    """Second part of the client id. Clustering consumers and producers that leave it at DEFAULT
    get a name of their own."""
    unit_name: str = ""
    """Third part of the client id, if there is one."""
    enable_stream_request_type: bool = False
    """Whether the client id ends in ``@STREAM``."""

    local_offset_store_dir: str = ""
    """Folder of broadcast progress; empty: ``.rmqctl_offsets`` in the user's home
    (rocketmq.client.localOffsetStoreDir). The file knows brokers by name only: give stores whose
    brokers have one name folders of their own."""
    poll_name_server_interval_ms: int = 30_000
    """How often routes are refreshed (pollNameServerInterval)."""
    heartbeat_broker_interval_ms: int = 30_000
    """How often this client sends heartbeats to brokers (heartbeatBrokerInterval)."""
    persist_consumer_offset_interval_ms: int = 5_000
    """How often consumers commit their progress (persistConsumerOffsetInterval)."""
    rebalance_interval_ms: int = 20_000
    """How often queues are divided anew without a reason
    (rocketmq.client.rebalance.waitInterval)."""
    pull_time_delay_mills_when_exception: int = 1_000
    """How long a queue is not pulled after a pull failed; 3000 in older clients."""

    def __post_init__(self) -> None:
        check_settings(self, fields(ClientConfig), _RANGES)

    @property
    def client_id(self) -> str:
        """``ip@instance[@unit][@STREAM]``: the client id (ClientConfig.buildMQClientId)."""
        parts = [self.client_ip, self.instance_name]
        if self.unit_name.strip():
            parts.append(self.unit_name)
        if self.enable_stream_request_type:
            parts.append("STREAM")
        return "@".join(parts)

    def with_own_instance_name(self) -> ClientConfig:
        """Replace the name DEFAULT by ``pid#nanoseconds`` (changeInstanceNameToPID)."""
        if self.instance_name != DEFAULT_INSTANCE_NAME:
            return self
        return replace(self, instance_name=f"{os.getpid()}#{time.monotonic_ns()}")


_RANGES: Final = {
    "poll_name_server_interval_ms": FROM_ONE,
    "heartbeat_broker_interval_ms": FROM_ONE,
    "persist_consumer_offset_interval_ms": FROM_ONE,
    "rebalance_interval_ms": (1, MAX_LONG),
    "pull_time_delay_mills_when_exception": (1, MAX_LONG),
}
