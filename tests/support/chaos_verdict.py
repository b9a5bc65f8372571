"""What is true after a chaos run: nothing lost, every repeat explained, order kept, no queue alone.

A *taking* is the time in which one process has one queue. It begins at an offset: the progress
that the group had by then. So a record that comes in two takings is explained if the later one
began at it or before it, that is, if it was not acknowledged; within a taking a record comes
again only if the listener said so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from storage.format.message import retry_topic
from storage.readonly import StoreView
from tests.support.chaos import (
    DELAY_LEVELS,
    GROUPS,
    ORDERLY,
    QUEUES,
    TOPIC,
    Kill,
    Told,
    attempts,
    stored_messages,
)
from tests.support.chaos_journal import DONE, LATER

KILLED: Final = "its owner was killed"
GIVEN_UP: Final = "its owner gave it up"
LEFT: Final = "its owner left"

Queue = tuple[str, int]


class Got(NamedTuple):
    """One call of a listener. ``times`` is how often the message had been sent back."""

    time: int
    offset: int
    times: int
    said: str
    id: str


@dataclass
class Taking:
    """One process has one queue, from ``begin`` to ``end`` (ns)."""

    name: str
    queue: Queue
    begin: int
    first: int
    end: int = 0
    how: str = LEFT
    got: list[Got] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.name} from {self.first} of {self.queue}"


@dataclass
class Verdict:
    """What was found. ``problems`` has to be empty, the rest is for reading."""

    problems: list[str] = field(default_factory=list)
    consumed: Counter[str] = field(default_factory=Counter)
    repeats: Counter[str] = field(default_factory=Counter)
    """Calls of listeners that would not have been without kills and changes, by group and cause."""
    alone_s: dict[str, list[float]] = field(default_factory=dict)
    """How long queues had no owner, by group and by what their last owner met."""
    warnings: Counter[str] = field(default_factory=Counter)
    """The first words of the consumers' warnings."""

    @property
    def longest_alone_s(self) -> float:
        return max(max(seconds) for seconds in self.alone_s.values())

    def __str__(self) -> str:
        alone = {
            key: f"{len(s)} times, median {sorted(s)[len(s) // 2]:.3f} s, longest {max(s):.3f} s"
            for key, s in sorted(self.alone_s.items())
        }
        found = {
            "consumed": dict(self.consumed),
            "repeats": dict(self.repeats),
            "alone": alone,
            "warnings": dict(self.warnings.most_common(10)),
        }
        return "\n".join(f"{what}: {value}" for what, value in found.items())


def judge(root: Path, told: Told, kills: Sequence[Kill]) -> Verdict:
    """Compare journals and store."""
    verdict = Verdict()
    killed = {kill.name: kill.time for kill in kills}
    for events in told.events.values():
        verdict.warnings.update(
            " ".join(event.words[:7]) for event in events if event.kind == "warned"
        )
    with StoreView.open(root) as view:
        stored = {
            (queue_id, message.queue_offset): message.body.decode()
            for queue_id in range(QUEUES)
            for message in stored_messages(view, TOPIC, queue_id)
        }
        _judge_sent(verdict, told, stored)
        for group in GROUPS:
            takings = _takings(verdict, told, group, killed)
            _judge_group(verdict, group, takings, set(stored.values()))
            _judge_repeats(verdict, group, takings)
            _judge_retries(verdict, view, group, takings, told.ending)
            if group == ORDERLY:
                _judge_order(verdict, takings)
            _judge_owners(verdict, group, takings, [k.time for k in kills if k.group == group])
    return verdict


def _judge_sent(verdict: Verdict, told: Told, stored: dict[tuple[int, int], str]) -> None:
    """What was acknowledged is where it was said to be; nothing is stored twice."""
    for events in told.events.values():
        for event in events:
            if event.kind == "sent":
                _, queue_id, offset, message = event.words
                if stored.get((int(queue_id), int(offset))) != message:
                    verdict.problems.append(f"{message} is not at {queue_id}:{offset}")
    twice = len(stored) - len(set(stored.values()))
    if twice:
        verdict.problems.append(f"{twice} messages are stored twice")


def _takings(
    verdict: Verdict, told: Told, group: str, killed: dict[str, int]
) -> dict[Queue, list[Taking]]:
    """The takings of each queue, in the order of time."""
    found: dict[Queue, list[Taking]] = {}
    for name, events in told.events.items():
        if not name.startswith(group):
            continue
        open_takings: dict[Queue, Taking] = {}
        for event in events:
            if event.kind not in ("took", "gave", "got"):
                continue
            queue = event.words[0], int(event.words[1])
            taking = open_takings.get(queue)
            if event.kind == "took":
                taking = Taking(name, queue, event.time, int(event.words[2]))
                open_takings[queue] = taking
                found.setdefault(queue, []).append(taking)
            elif event.kind == "gave":
                if taking is not None:  # else it was given up before the first pull
                    taking.end, taking.how = event.time, GIVEN_UP
            elif taking is None:
                verdict.problems.append(f"{name} got {event.words} and never took the queue")
            else:
                offset, times, said, message = event.words[2:]
                taking.got.append(Got(event.time, int(offset), int(times), said, message))
        for taking in open_takings.values():
            if taking.how != GIVEN_UP:
                taking.end = killed.get(name, events[-1].time)
                taking.how = KILLED if name in killed else LEFT
    for takings in found.values():
        takings.sort(key=lambda taking: taking.begin)
    return found


def _judge_group(
    verdict: Verdict, group: str, takings: dict[Queue, list[Taking]], stored: set[str]
) -> None:
    done = {
        got.id
        for of_queue in takings.values()
        for taking in of_queue
        for got in taking.got
        if got.said == DONE
    }
    verdict.consumed[group] = len(done)
    missing = stored - done
    if missing:
        verdict.problems.append(f"{group} has not consumed {len(missing)}: {sorted(missing)[:5]}")
    if done - stored:
        verdict.problems.append(f"{group} has consumed what is not stored: {done - stored}")


def _judge_repeats(verdict: Verdict, group: str, takings: dict[Queue, list[Taking]]) -> None:
    for of_queue in takings.values():
        last: dict[int, Taking] = {}
        for taking in of_queue:
            said: dict[int, str] = {}
            for got in taking.got:
                if got.offset < taking.first:
                    verdict.problems.append(f"{taking}: got {got.offset}, acknowledged before")
                if got.offset in said:
                    # Orderly listeners get again what they suspended; no other message comes again.
                    if group != ORDERLY or said[got.offset] != LATER:
                        verdict.problems.append(f"{taking}: got {got.offset} twice")
                elif got.offset in last:
                    how = last[got.offset].how
                    cause = f"unacknowledged when {how}"
                    verdict.repeats[f"{group}: {cause}"] += 1
                said[got.offset] = got.said
            last.update(dict.fromkeys(said, taking))


def _judge_retries(
    verdict: Verdict,
    view: StoreView,
    group: str,
    takings: dict[Queue, list[Taking]],
    ending: int,
) -> None:
    """Each failure is sent back once, and delivered once; more only around kills.

    What failed when consumers were leaving only may still wait, or lie unconsumed.
    """
    if group == ORDERLY:
        if view.max_offset_in_queue(retry_topic(group), 0):
            verdict.problems.append(f"{group}: retries of an orderly group")
        return
    everything = [got for of_queue in takings.values() for t in of_queue for got in t.got]
    failed = Counter((got.id, got.times + 1) for got in everything if got.said == LATER)
    awaited = {(g.id, g.times + 1) for g in everything if g.said == LATER and g.time < ending}
    waited = Counter(  # all levels: what cannot be sent back is sent, later than asked for
        attempt for level in range(DELAY_LEVELS) for attempt in attempts(view, level)
    )
    delivered = Counter(
        (message.body.decode(), message.reconsume_times)
        for message in stored_messages(view, retry_topic(group), 0)
    )
    came = {(got.id, got.times) for got in everything}
    for retry, times in waited.items():
        if times > failed[retry]:
            verdict.problems.append(f"{retry} failed {failed[retry]} times, sent back {times}")
        if retry in awaited and not delivered[retry]:
            verdict.problems.append(f"{retry} was sent back and never delivered")
    for retry, times in delivered.items():
        if not waited[retry]:
            verdict.problems.append(f"{retry} was delivered and never sent back")
        if retry in awaited and retry not in came:
            verdict.problems.append(f"{retry} was delivered and not consumed")
        # The deliverer notes its offsets every 10 s: after its death some come again.
        verdict.repeats[f"{group}: delivered again after a kill"] += max(0, times - waited[retry])
    verdict.repeats[f"{group}: failed again because unacknowledged"] = sum(
        times - 1 for times in waited.values()
    )
    verdict.consumed[f"{group}: retries"] = sum(delivered.values())


def _judge_order(verdict: Verdict, takings: dict[Queue, list[Taking]]) -> None:
    """One at a time and one after the other; back only after a kill, and after no gap."""
    for queue, of_queue in takings.items():
        for taking, following in pairwise(of_queue):
            if taking.got and taking.got[-1].time > following.begin:
                verdict.problems.append(f"{taking} went on when there was {following}")
        seen = 0  # all below were consumed
        end = 0  # where the last owner would have gone on
        for number, taking in enumerate(of_queue):
            if taking.first > seen:
                verdict.problems.append(f"{taking}: leaves out what follows {seen}")
            before = of_queue[number - 1].how if number else LEFT
            if taking.first != end and before != KILLED:
                verdict.problems.append(f"{taking}: not from {end}, though {before}")
            end = taking.first
            for got in taking.got:
                if got.offset != end:
                    verdict.problems.append(f"{taking}: {got.offset} in place of {end}")
                end = got.offset + (got.said == DONE)
            seen = max(seen, end)
        if not of_queue:
            verdict.problems.append(f"nobody had {queue}")


def _judge_owners(
    verdict: Verdict, group: str, takings: dict[Queue, list[Taking]], kills: Sequence[int]
) -> None:
    """How long queues had no owner. If others are killed before a member has the queue, the time
    counts from the last kill."""
    for (topic, _), of_queue in takings.items():
        if topic != TOPIC:
            continue
        for taking, following in pairwise(of_queue):
            since = max((t for t in kills if taking.end < t < following.begin), default=taking.end)
            alone = max(0.0, (following.begin - since) / 1e9)
            verdict.alone_s.setdefault(f"{group}, {taking.how}", []).append(alone)
