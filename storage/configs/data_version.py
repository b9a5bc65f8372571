"""The version of a table that a broker shows to name servers (DataVersion of 4.9)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from storage.format.java_numbers import java_long


class DataVersion(NamedTuple):
    """When a table changed last (ms), and how often since it began."""

    timestamp: int
    counter: int = 0

    def next_version(self, now_ms: int) -> Self:
        """Give the version after one more change (DataVersion.nextVersion)."""
        return self._replace(timestamp=now_ms, counter=self.counter + 1)

    @classmethod
    def from_json(cls, value: Any, now_ms: int) -> Self:
        """Read the member ``dataVersion``; a missing one is that of a table that begins now.

        Raises ValueError or TypeError for members that are no numbers.
        """
        if not isinstance(value, dict):
            return cls(now_ms)
        timestamp, counter = value.get("timestamp"), value.get("counter")
        return cls(
            now_ms if timestamp is None else java_long(timestamp),
            0 if counter is None else java_long(counter),
        )

    def into_json(self, value: Any) -> dict[str, Any]:
        """Write it over the old member, keeping what 5.x adds."""
        if not isinstance(value, dict):
            return {"counter": self.counter, "timestamp": self.timestamp}
        return {**value, "counter": self.counter, "timestamp": self.timestamp}
