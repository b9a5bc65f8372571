"""Pictures that tests compare; `python -m tests.support.console_pictures` makes them.

They are taken with ^s by the installed program on a pseudo-terminal, of the store of
docs/tasks/at-night.md, at a time that stands still and on a disk that is always as full. What
depends on the run is replaced: the folder, by one of the same length, and how long a look took.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from .console import Terminal, terminal
from .fixed_clock import fixed_clock

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "tests" / "rmqctl" / "console" / "pictures"
NOW_MS: Final = 1_773_496_931_000
"""2026-03-14 14:02:11 UTC."""
_PREFIX: Final = "console-"


class Screen(NamedTuple):
    """What is shown: the words after ``:``, and a text by which it is known."""

    words: str
    known_by: str
    keys: tuple[str, ...] = ()
    """Typed before it, each after the text that it waits for: ``=TEXT``, else keys."""


SCREENS: Final[Mapping[str, Screen]] = {
    "overview": Screen("overview", "NEEDS ATTENTION"),
    "groups": Screen("groups", "shipping"),
    "group": Screen("group billing", "drains"),
    "topic": Screen("topic orders", "GROUPS"),
    "dead-letters": Screen("dlq billing", "TimeoutError"),
    "plan": Screen(
        "groups",
        "Type billing",
        ("=billing", ":write store\r", "=CHANGES ON", "r\r", "=earliest", "13:20\r"),
    ),
}


class Way(NamedTuple):
    """How screens are shown: the size of the terminal, options and environment."""

    rows: int
    columns: int
    screens: tuple[str, ...]
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


WAYS: Final[Mapping[str, Way]] = {
    "80x24-dark": Way(24, 80, ("overview", "groups", "group", "topic", "dead-letters", "plan")),
    "140x40-light": Way(40, 140, ("overview", "group", "plan"), ("--theme", "light")),
    "140x40-dark": Way(40, 140, ("group",)),
    "80x24-light": Way(24, 80, ("overview",), ("--theme", "light")),
    "80x24-no-color": Way(24, 80, ("overview", "group", "plan"), (), {"NO_COLOR": "1"}),
    "140x40-no-color": Way(40, 140, ("overview",), (), {"NO_COLOR": "1"}),
    "80x24-high-contrast-ascii": Way(
        24, 80, ("overview", "group"), ("--theme", "high-contrast", "--ascii")
    ),
}


class Shop(NamedTuple):
    """The store of the task page, and the environment in which it is shown."""

    folder: Path
    env: dict[str, str]


@contextmanager
def shop() -> Iterator[Shop]:
    """Make the store."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp"))
    try:
        env = {
            **fixed_clock(folder, NOW_MS),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(folder),
            "LOGNAME": "ann",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "COLORTERM": "truecolor",
        }
        setup = ROOT / "docs" / "tasks" / "setup" / "at-night.sh"
        subprocess.run(["bash", setup], check=True, cwd=folder, env={**os.environ, **env})
        yield Shop(folder, env)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def console(shop: Shop, way: Way) -> Iterator[Terminal]:
    """The console, shown in a way."""
    options = ("--every", "300ms", *way.options)
    with terminal(
        shop.folder / "store",
        "contexts",
        *options,
        size=(way.rows, way.columns),
        cwd=shop.folder,
        env={"NO_COLOR": "", **shop.env, **way.env},
    ) as shown:
        shown.until("Contexts")
        yield shown


def show(shown: Terminal, screen: Screen) -> None:
    """Go to a screen."""
    shown.send(f":{screen.words}\r")
    for key in screen.keys:
        if key.startswith("="):
            shown.until(key[1:])
        else:
            shown.send(key)
    shown.until(screen.known_by)


def picture(shown: Terminal, shop: Shop) -> str:
    """A picture of what is shown now, without what depends on the run."""
    found = {path.name for path in shop.folder.glob("*.svg")}
    shown.send("\x13")  # ^s
    shown.until(lambda: {path.name for path in shop.folder.glob("*.svg")} - found)
    (new,) = {path.name for path in shop.folder.glob("*.svg")} - found
    path = shop.folder / new
    text = path.read_text("utf-8")
    path.unlink()
    return without_run(text, shop.folder)


def without_run(text: str, folder: Path) -> str:
    """A picture without what depends on the run."""
    text = text.replace(str(folder), f"/tmp/{_PREFIX}{'0' * 8}")
    return re.sub(r"(look took) ([ \d]+) ms", _no_number, text)


def _no_number(found: re.Match[str]) -> str:
    return f"{found[1]} {'?'.rjust(len(found[2]))} ms"


def settled(shown: Terminal, shop: Shop) -> str:
    """A picture once it is the same twice: all of the screen has been read."""
    before = picture(shown, shop)
    while (now := picture(shown, shop)) != before:
        before = now
    return now


def names() -> Sequence[tuple[str, str]]:
    """The ways and screens of all pictures."""
    return [(way, screen) for way, found in WAYS.items() for screen in found.screens]


def file_of(way: str, screen: str) -> Path:
    """The file of a picture."""
    return FOLDER / f"{screen}-{way}.svg"


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.svg"):
        old.unlink()
    with shop() as made:
        for name, way in WAYS.items():
            with console(made, way) as shown:
                for screen in way.screens:
                    show(shown, SCREENS[screen])
                    file_of(name, screen).write_text(settled(shown, made), "utf-8")


if __name__ == "__main__":
    main()
