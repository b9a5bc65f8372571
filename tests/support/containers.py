"""A store on the file systems of a container. Runs in ``unshare -rm`` (tests.support.slim)."""

from __future__ import annotations

import subprocess
from pathlib import Path

from storage.readonly import StoreView
from storage.store import MessageStore
from tests.support.busy_puppet import ROOMY
from tests.support.crash import Acknowledge, Acknowledged, Child, inspect, missing
from tests.support.samples import Sample, new_store, open_store, prepared

ROUNDS = 3
PUTS = 40


def use_layers(folder: str) -> dict[str, object]:
    """A store of an image's layer is written in the layer of a container: by two processes at once,
    of which one is killed each time."""
    top = Path(folder) / "top"
    top.mkdir()
    _mount("-t", "tmpfs", "none", str(top))
    for name in ("lower", "upper", "work", "merged"):
        (top / name).mkdir()
    new_store(top / "lower/s", ROOMY)
    with open_store(top / "lower/s", ROOMY) as store:
        first = _puts(store, "image", 5)
    layers = f"lowerdir={top}/lower,upperdir={top}/upper,workdir={top}/work"
    _mount("-t", "overlay", "-o", layers, "overlay", str(top / "merged"))
    return _use(top / "merged/s", first)


def use_volume(folder: str) -> dict[str, object]:
    """The same on a volume in memory."""
    top = Path(folder) / "top"
    top.mkdir()
    _mount("-t", "tmpfs", "none", str(top))
    new_store(top / "s", ROOMY)
    return _use(top / "s", [])


def _use(root: Path, acknowledged: list[Acknowledged]) -> dict[str, object]:
    killed = 0
    for number in range(ROUNDS):
        writers = [_Writer(root, f"{number}{letter}") for letter in "ab"]
        writers[0].child.kill_within(0.15)
        for writer in writers:
            was_killed, answers = writer.child.wait()
            killed += was_killed
            for index, (places, offsets) in answers.items():
                acknowledged.append(Acknowledged(writer.sample(index), places[0], offsets[0]))
        with StoreView.open(root, ROOMY) as view:
            seen = view.max_offset_in_queue("A", 0)
        expected = 1 + max(one.queue_offset for one in acknowledged)
        if seen < expected:
            return {"failures": [f"a reader sees {seen} messages of {expected}"]}
    open_store(root, ROOMY).close()  # the killed one may have died last
    found = inspect(root, ROOMY)
    return {
        "failures": found.problems + missing(found, acknowledged),
        "killed": killed,
        "messages": len(acknowledged),
    }


class _Writer:
    def __init__(self, root: Path, name: str) -> None:
        self.name = name

        def run(acknowledge: Acknowledge) -> None:
            with open_store(root, ROOMY) as store:
                for number in range(PUTS if name.endswith("b") else 100_000):
                    acknowledge(number, store.put(prepared([self.sample(number)])))

        self.child = Child(run)

    def sample(self, number: int) -> Sample:
        return Sample(f"{self.name}-{number}", "A")


def _puts(store: MessageStore, name: str, count: int) -> list[Acknowledged]:
    found = []
    for number in range(count):
        sample = Sample(f"{name}-{number}", "A")
        result = store.put(prepared([sample]))
        found.append(
            Acknowledged(sample, int(result.commitlog_offsets[0]), int(result.queue_offsets[0]))
        )
    return found


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


def kind_of_layers(folder: str) -> str:
    """The kind of file system that a folder of a container's layer is on."""
    from storage.platform.mounts import file_system_of

    top = Path(folder) / "top"
    top.mkdir()
    _mount("-t", "tmpfs", "none", str(top))
    for name in ("lower", "upper", "work", "merged"):
        (top / name).mkdir()
    layers = f"lowerdir={top}/lower,upperdir={top}/upper,workdir={top}/work"
    _mount("-t", "overlay", "-o", layers, "overlay", str(top / "merged"))
    return file_system_of(top / "merged")
