"""What the image of the Containerfile does, without containers: user, folders, variables.

The root folder has a Python, its libraries, and the wheels that are installed; nothing else.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = """
rmqctl store init --quiet > /dev/null
printf 'hello\\nworld\\n' | rmqctl produce greetings --quiet > /dev/null
rmqctl consume greetings -e
rmqctl consume greetings -g readers -c 1 > /dev/null
rmqctl offset list -o tsv --columns lag --no-headers | sort
rmqctl store fsck -o json --columns ok --quiet
rmqctl doctor -o tsv --columns check,status --no-headers | grep -c -e error -e warning || true
touch /anywhere 2>/dev/null || echo "the user may write to the volume only"
id -u
"""
PRINTED = """\
hello
world
0
0
0
1
{
  "ok": true
}
0
the user may write to the volume only
10001
"""

pytestmark = pytest.mark.long


def instructions() -> dict[str, str]:
    """The last instruction of each kind, of the last stage."""
    text = (ROOT / "Containerfile").read_text("utf-8").rpartition("\nFROM ")[2]
    lines = text.replace("\\\n", " ").splitlines()[1:]
    return {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line.strip()}


def test_the_last_stage_is_not_root_and_its_volume_is_the_store() -> None:
    image = instructions()
    assert image["USER"] == "10001"
    assert image["VOLUME"] == image["WORKDIR"] == "/store"
    assert "RMQCTL_STORE=/store" in image["ENV"]
    assert image["ENTRYPOINT"] == '["rmqctl"]'


def test_the_main_job_in_a_root_that_has_nothing_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    if shutil.which("unshare") is None:
        pytest.skip("needs unshare on PATH")
    image, root = instructions(), tmp_path / "root"
    program = root / "opt" / "rmqctl"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(program), str(ROOT)]
    subprocess.run(pip, check=True)
    for name in ("bin", "proc", "dev", "tmp", "store", "usr/local/bin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    tmp_path.chmod(0o755)
    base = Path(sys.base_prefix)
    bound = {Path("/lib"), Path("/lib64"), Path("/usr"), Path("/bin"), base}
    mounts = []
    for folder in sorted(bound, key=str):
        if folder.exists() and not (folder != Path("/usr") and folder.is_relative_to("/usr")):
            target = root / folder.relative_to("/")
            target.mkdir(parents=True, exist_ok=True)
            mounts.append(f"mount --rbind -o ro {folder} {target}")
    script = [
        *("set -e", *mounts),
        f"mount -t proc proc {root}/proc",
        f"mount -t tmpfs -o uid={image['USER']} volume {root}/store",
        *(
            f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}"
            for name in DEVICES
        ),
        f"cd {root}/store",
        f"exec chroot --userspec={image['USER']}:{image['USER']} {root} /bin/sh -c {inside(base)}",
    ]
    done = subprocess.run(
        ["unshare", "-mnpf", "sh", "-c", "\n".join(script)],
        env={
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "PYTHONPATH": "/opt/rmqctl",
            **dict(word.split("=", 1) for word in image["ENV"].split()),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == PRINTED


DEVICES = ("null", "urandom")


def inside(base: Path) -> str:
    """The commands, with ``rmqctl`` as the program that is installed."""
    python = base / "bin" / f"python3.{sys.version_info.minor}"
    return shlex.quote(f'cd /store; rmqctl() {{ {python} -P -m rmqctl "$@"; }}\n{COMMANDS}')
