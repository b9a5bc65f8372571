"""A root folder that has a Python, its libraries, and what is installed into it; nothing else."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = "/opt/rmqctl"
_DEVICES = ("null", "urandom")


class EmptyRoot:
    """Made below a folder; commands run in it as a user who may write to one volume only."""

    def __init__(self, folder: Path, *, user: str, volume: str) -> None:
        """``user`` is a number; ``volume``, a path in the root, is empty at each run. Skips the
        test without root or ``unshare``."""
        if os.geteuid() != 0:
            pytest.skip("needs root")
        if shutil.which("unshare") is None:
            pytest.skip("needs unshare on PATH")
        folder.chmod(0o755)
        self._root = folder / "root"
        self._user = user
        self._volume = volume
        target = str(self._root) + _PROGRAM
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", target, str(ROOT)]
        subprocess.run(pip, check=True)
        for name in ("proc", "dev", "tmp", "usr/local/bin", volume.strip("/")):
            (self._root / name).mkdir(parents=True, exist_ok=True)
        self._base = Path(sys.base_prefix)

    def run(self, commands: str, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Run lines of a shell in the volume, with ``rmqctl`` as the program that is installed."""
        python = self._base / "bin" / f"python3.{sys.version_info.minor}"
        inside = f'cd {self._volume}; rmqctl() {{ {python} -P -m rmqctl "$@"; }}\n{commands}'
        script = [
            *("set -e", *self._mounts()),
            f"cd {self._root}{self._volume}",
            f"exec chroot --userspec={self._user}:{self._user} {self._root} /bin/sh -c "
            + shlex.quote(inside),
        ]
        return subprocess.run(
            ["unshare", "-mnpf", "sh", "-c", "\n".join(script)],
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "PYTHONPATH": _PROGRAM, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def _mounts(self) -> list[str]:
        root, lines = self._root, []
        for folder in sorted(map(Path, {"/lib", "/lib64", "/usr", "/bin", str(self._base)})):
            if folder.exists() and not (folder != Path("/usr") and folder.is_relative_to("/usr")):
                target = root / folder.relative_to("/")
                target.mkdir(parents=True, exist_ok=True)
                lines.append(f"mount --rbind -o ro {folder} {target}")
        return [
            *lines,
            *(
                f"touch {root}/dev/{name}; mount --bind /dev/{name} {root}/dev/{name}"
                for name in _DEVICES
            ),
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs -o uid={self._user} volume {root}{self._volume}",
        ]
