"""Compiles the C files of storage/native at installation; without a compiler it stays pure.

``python hatch_build.py`` does it in this folder, and says what went wrong if something did.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

SOURCES = "storage/native"
TARGET = "storage/native/_compiled.abi3.so"
_LIMITED_API = "-DPy_LIMITED_API=0x030b0000"
_MINUTE = 60


def compile_native(root: Path) -> str:
    """Compile beside the source; gives "" or why it could not be done."""
    compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")
    target = root / TARGET
    staged = target.with_suffix(".new")
    command = [*compiler, "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", _LIMITED_API]
    command += [f"-I{sysconfig.get_paths()['include']}", "-o", str(staged)]
    for folder in (SOURCES, f"{SOURCES}/common"):
        command += ["-I", str(root / folder)]
    command += map(str, sorted((root / SOURCES).rglob("*.c")))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_MINUTE, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        return done.stderr
    staged.replace(target)  # whoever has the old one mapped keeps it
    return ""


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program, where no build backend is installed
    pass
else:

    class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
        """Has the wheel carry the compiled module, for all Pythons from 3.11 on."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile before files are collected; say so if that does not work."""
            if self.target_name != "wheel":
                return
            reason = compile_native(Path(self.root))
            if reason:
                self.app.display_warning(f"without compiled loops: {reason}")
                return
            build_data["artifacts"].append(TARGET)
            build_data["pure_python"] = False
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"cp311-abi3-{platform}"


if __name__ == "__main__":
    sys.exit(compile_native(Path(__file__).parent) or 0)
