"""Fail when a script in completions/, or the table of parameters that completion reads, is not what
the program's commands give; `--write` writes them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rmqctl.help.completion_command import SCRIPTS  # noqa: E402 - the clone's own
from tests.support.parameter_table import text as table  # noqa: E402


def main() -> int:
    stale = []
    files = {f"completions/{name}": text for name, text in SCRIPTS.values()}
    for name, text in {**files, "rmqctl/completion/parameter_table.py": table()}.items():
        path = ROOT / name
        if "--write" in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            stale.append(name)
    if stale:
        print(f"stale: {', '.join(stale)}; run `make completions`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
