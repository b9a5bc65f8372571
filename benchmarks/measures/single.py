"""One message a call: our put (exclusive and shared) against one transaction a message.

Peers that are slow take as many messages as a round can bear; time is per message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import perf_counter

from benchmarks.contest import Contestant
from benchmarks.goals import BY_KEY, row
from benchmarks.ours import new_store
from benchmarks.peers.known import PEERS, missing, open_peer
from benchmarks.report import Missing, Row
from benchmarks.run import Run
from benchmarks.workload import BESIDES, messages
from storage.format.encode import MessageInner

NAME = "single"
_BODY = 1024
_SHARES = {
    "SQLite": 10,
    "Redis": 10,
    "persist-queue": 400,
    "litequeue": 20,
    "diskcache": 40,
}
"""What part of our number of messages a peer is given, if not all."""


def measure(run: Run) -> Iterator[Row | Missing]:
    count = run.sized(1_000_000, 40_000)
    sent = messages(count, _BODY)
    contestants: dict[str, Contestant] = {
        "exclusive": lambda: _ours(run, sent, exclusive=True),
        "shared": lambda: _ours(run, sent, exclusive=False),
    }
    judged = {key.partition("/")[2] for key in BY_KEY if key.startswith(("exclusive/", "shared/"))}
    for name in PEERS:
        if run.quick and name not in judged:
            continue
        with run.folder() as folder:
            if reason := missing(name, folder):
                yield Missing(f"single append vs {name}", reason)
                continue
        few = sent[: max(1, count // _SHARES.get(name, 1))]
        contestants[name] = _scaled(run, name, few, count / len(few))
    if "lmdb" in contestants:
        contestants["shared lmdb"] = lambda: _shared_lmdb(run, sent)
    times = run.take_turns("single append", contestants, memory=count * (_BODY + BESIDES))
    us = {name: f"{times.median(name) / count * 1e6:.2f} us" for name in contestants}
    for mode in ("exclusive", "shared"):
        for name in PEERS:
            peer = "shared lmdb" if (mode, name) == ("shared", "lmdb") else name
            if peer not in contestants:
                continue
            ratios = times.ratios(peer, mode)
            if (key := f"{mode}/{name}") in BY_KEY:
                sides = (us[mode], us[peer])
                yield row(key, sides, ratios, detail="1 KiB", samples=times.of)
            else:
                yield Row(f"single append, {mode}, vs {name}, 1 KiB", us[mode], us[peer], ratios)


def _timed(put: Callable[[MessageInner], object], sent: list[MessageInner]) -> float:
    start = perf_counter()
    for message in sent:
        put(message)
    return perf_counter() - start


def _ours(run: Run, sent: list[MessageInner], *, exclusive: bool) -> float:
    with run.folder() as folder, new_store(folder, exclusive=exclusive) as store:
        return _timed(store.put_message, sent)


def _scaled(run: Run, name: str, sent: list[MessageInner], factor: float) -> Contestant:
    return lambda: _peer(run, name, sent) * factor


def _peer(run: Run, name: str, sent: list[MessageInner]) -> float:
    with run.folder() as folder:
        log = open_peer(name, folder)
        try:
            log.put(sent[0])
            return _timed(log.put, sent)
        finally:
            log.close()


def _shared_lmdb(run: Run, sent: list[MessageInner]) -> float:
    from benchmarks.peers.lmdb_log import LmdbLog

    with run.folder() as folder:
        log = LmdbLog(folder, shared=True)
        log.put(sent[0])
        seconds = _timed(log.put, sent)
        log.close()
    return seconds
