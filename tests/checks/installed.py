"""The main job with an installed rmqctl, in a fresh folder; needs nothing else of this project.

``python installed.py [--compiled | --pure]``: with the interpreter of the environment that has it.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RMQCTL = Path(sys.executable).parent / "rmqctl"
PACKAGES = ["storage", "client", "rmqctl"]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        store = ["-S", str(Path(folder) / "store")]

        def rmqctl(*args: str, stdin: str = "") -> str:
            done = subprocess.run(
                [RMQCTL, *store, *args],
                cwd=folder,
                env={**os.environ, "HOME": folder},
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise SystemExit(f"rmqctl {' '.join(args)}: {done.stderr}")
            return done.stdout

        facts = json.loads(rmqctl("version", "-o", "json"))
        wanted = {"--compiled": PACKAGES, "--pure": []}
        for option in sys.argv[1:]:
            if facts["compiled"] != wanted[option]:
                raise SystemExit(f"{option}: the compiled packages are {facts['compiled']}")
        rmqctl("store", "init", "--quiet")
        rmqctl("topic", "create", "greetings", "--queues", "1", "--quiet")
        rmqctl("produce", "greetings", "--quiet", stdin="hello\nworld\n")
        for args, printed in {
            ("consume", "greetings", "-e"): "hello\nworld\n",
            ("consume", "greetings", "-g", "readers", "-c", "1"): "hello\n",
            ("offset", "list", "-o", "tsv", "--columns", "lag", "--no-headers"): "1\n",
            ("store", "fsck", "--quiet", "-o", "json", "--columns", "ok"): '{\n  "ok": true\n}\n',
        }.items():
            if rmqctl(*args) != printed:
                raise SystemExit(f"rmqctl {' '.join(args)} printed {rmqctl(*args)!r}")
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
