"""Export the README's pictures from real output: `make pictures`.

Each command really runs, on a pseudo-terminal of fixed width, so that the picture shows what a
user sees. What differs from run to run (times, ids) differs in the picture too. The store of the
console's pictures is that of docs/tasks/at-night.md.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.console_screen import at_home, walk  # noqa: E402 - the clone's own
from tests.support.fixed_clock import fixed_clock, today_at  # noqa: E402

PICTURES = Path(__file__).with_name("pictures")
WIDTH = 110
SCREEN = (34, 120)
"""Lines and columns of the console."""
_BACK = "121212"
"""The background of the console's dark palette; the picture has it everywhere."""
_PLAN = (":write store", "ENTER", "=CHANGES ON", "r", "ENTER", "=earliest", "13:20", "ENTER")
_ANSI = [(0, 0, 0)] * 8
"""The console writes none of these eight."""
SCREENS = {
    "console-overview": ("rmqctl console", "=STOP", "=newest", "=1 group", "=LAST CHANGES"),
    "console-group": ("rmqctl console group billing", "=billing", "=drains", "=140", "=▄"),
    "console-plan": ("rmqctl console groups", "=billing", *_PLAN, "=Type", "=target"),
}
STEPS = (
    "rmqctl store init ./store > broker.conf",
    "rmqctl produce orders LICENSE --tag text",
    'echo \'{"id": 7, "sum": 120}\' | rmqctl produce orders --tag new -k order-7',
    "rmqctl consume orders -e --json-path 'sum > 100' -f '%q:%o %k %g %s\\n'",
    "rmqctl consume orders -g billing -c 150 > /dev/null",
    "rmqctl offset list --where 'lag > 0' --columns group,queue_id,committed_offset,max_offset,lag",
    "rmqctl topic queues orders",
    "rmqctl store fsck",
)


def output_of(command: str, folder: Path) -> str:
    """What a terminal of WIDTH columns gets from a command."""
    master, slave = pty.openpty()
    bin_folder = Path(sys.executable).parent
    environment = {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        "COLUMNS": str(WIDTH),
        "TERM": "xterm-256color",
        "TZ": "UTC",
    }
    with subprocess.Popen(
        ["sh", "-c", command], cwd=folder, env=environment, stdout=slave, stderr=slave
    ) as process:
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 1 << 16)
            except OSError:  # Linux's way to say that the other side is closed
                break
            chunks.append(chunk)
    os.close(master)
    if process.returncode:
        raise SystemExit(f"{command}: exit code {process.returncode}")
    return b"".join(chunks).decode().replace("\r\n", "\n")


def tour() -> Console:
    """Run the steps."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        licence = ROOT / "LICENSE"
        (folder / "LICENSE").write_bytes(licence.read_bytes())
        for step in STEPS:
            console.print(Text.assemble(("$ ", "bold green"), (step, "bold")))
            shown = output_of(step, folder).replace(str(folder), "/home/you")
            console.print(Text.from_ansi(shown), end="")
    return console


def screens() -> Iterator[tuple[str, Console]]:
    """The screens of the console, at 14:02 of today."""
    with tempfile.TemporaryDirectory(prefix="t") as name:
        folder = Path(name)
        os.environ |= {
            **fixed_clock(folder, today_at("14:02:11")),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": name,
            "LOGNAME": "ann",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "COLORTERM": "truecolor",
        }
        os.chdir(folder)
        setup = ROOT / "docs" / "tasks" / "setup" / "at-night.sh"
        subprocess.run(["bash", setup], check=True)
        for picture, steps in SCREENS.items():
            shown = walk(*steps[:1], steps[1:], SCREEN)
            console = Console(record=True, width=SCREEN[1], file=io.StringIO())
            for line in range(SCREEN[0]):
                console.print(_line(shown.cells(line)), end="\n")
            shown.child.close(force=True)
            yield picture, console


def _line(cells: list[Any]) -> Text:
    """A line of a screen, with the folder of the run replaced: its length is the same."""
    line = at_home("".join(cell.data for cell in cells))
    text = Text(end="")
    for style, run in groupby(zip(line, cells, strict=True), lambda pair: _style(pair[1])):
        text.append("".join(letter for letter, _ in run), style)
    return text


def _style(cell: Any) -> Style:
    """The style of a cell of pyte's."""
    fore, back = (None if name in ("default", _BACK) else f"#{name}" for name in (cell.fg, cell.bg))
    return Style(
        color=fore, bgcolor=back, bold=cell.bold, underline=cell.underscore, reverse=cell.reverse
    )


def write(name: str, console: Console) -> None:
    """Write a picture."""
    theme = TerminalTheme((18, 18, 18), (228, 228, 228), _ANSI) if name in SCREENS else None
    svg = console.export_svg(title="rmqctl", unique_id="r", theme=theme)
    svg = re.sub(r"\s*<!--.*?-->", "", svg, flags=re.DOTALL)
    # The picture must not fetch anything: without the web font the reader's own will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / f"{name}.svg").write_text(svg, "utf-8")


def main() -> None:
    """Write all pictures, or those that are named."""
    named = sys.argv[1:]
    if not named or "tour" in named:
        write("tour", tour())
    if not named or set(named) & set(SCREENS):
        for name, console in screens():
            write(name, console)


if __name__ == "__main__":
    main()
