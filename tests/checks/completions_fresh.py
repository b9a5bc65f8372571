"""Fail when a script in completions/ is not what the program prints; `--write` writes them."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from rmqctl.help.completion_command import SCRIPTS  # noqa: E402 - the clone's own


def main() -> int:
    stale = []
    for name, text in SCRIPTS.values():
        path = ROOT / "completions" / name
        if "--write" in sys.argv[1:]:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            stale.append(f"completions/{name}")
    if stale:
        print(f"stale: {', '.join(stale)}; run `make completions`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
