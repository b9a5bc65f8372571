"""Export the README's picture from real output: `make pictures`.

Each command really runs, on a pseudo-terminal of fixed width, so that the picture shows what a
user sees. What differs from run to run (times, ids) differs in the picture too.
"""

import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURE = Path(__file__).with_name("pictures") / "tour.svg"
WIDTH = 110
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


def main() -> None:
    """Run the steps and write the picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        licence = Path(__file__).resolve().parents[1] / "LICENSE"
        (folder / "LICENSE").write_bytes(licence.read_bytes())
        for step in STEPS:
            console.print(Text.assemble(("$ ", "bold green"), (step, "bold")))
            shown = output_of(step, folder).replace(str(folder), "/home/you")
            console.print(Text.from_ansi(shown), end="")
    svg = console.export_svg(title="rmqctl")
    # The picture must not fetch anything: without the web font the reader's own will do.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg, "utf-8")


if __name__ == "__main__":
    main()
