"""Compiles the C files at installation; without a compiler rmqctl stays pure.

``python hatch_build.py`` does it in this folder, and says what went wrong if something did.
``RMQCTL_PURE=1`` at installation leaves them out: such a wheel is good for every platform.
``RMQCTL_COMPILED=1`` fails where they cannot be compiled. ``CC`` names another compiler than the
one that Python was made with.

A wheel and an sdist carry the commit that they were made from (``rmqctl/build.json``), which
``rmqctl version`` shows; an installation of this folder itself (``pip install -e``) does not.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

MODULES = ("storage/native", "client/native", "rmqctl/native")
"""Folders of one module each. What all share lies in the first: native.h and common/."""
_NAME = "_compiled.abi3.so"
_LIMITED_API = "-DPy_LIMITED_API=0x030b0000"
# What the limited API of 3.11 lacks would compile as a guess, and crash.
_REFUSED = "-Werror=implicit-function-declaration"
_FLAGS = ("-O2", "-Wall", "-Wextra", _REFUSED, "-shared", "-fPIC", "-pthread", _LIMITED_API)
# Names of Python are found when the module is loaded; elsewhere that goes without saying.
_FLAGS_OF = {"darwin": ("-undefined", "dynamic_lookup")}
_MINUTE = 60
_COMPILING = 10 * _MINUTE
"""On a busy machine; else it takes ten seconds."""
_BUILT = "rmqctl/build.json"
_OFF = frozenset({"", "0", "false", "no", "off"})


def compile_native(root: Path) -> str:
    """Compile beside the source; gives "" or why it could not be done.

    Then no module is left that may lack what the program asks of it: the forms in Python serve.
    """
    reason = _compile_modules(root)
    if reason:
        for folder in MODULES:
            (root / folder / _NAME).unlink(missing_ok=True)
    return reason


def _compile_modules(root: Path) -> str:
    named = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    try:
        compiler = shlex.split(named)
    except ValueError as error:
        return f"CC={named}: {error}"
    for folder in MODULES:
        reason = _compile_module(compiler, root, folder)
        if reason:
            return reason
    return ""


def _compile_module(compiler: list[str], root: Path, folder: str) -> str:
    target = root / folder / _NAME
    staged = target.with_suffix(".new")
    command = [*compiler, *_FLAGS, *_FLAGS_OF.get(sys.platform, ())]
    command += [f"-I{sysconfig.get_paths()['include']}", "-o", str(staged)]
    for included in (folder, MODULES[0], f"{MODULES[0]}/common"):
        command += ["-I", str(root / included)]
    command += map(str, sorted((root / folder).rglob("*.c")))
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_COMPILING, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode:
        return done.stderr or f"{shlex.join(command)} ends with exit code {done.returncode}"
    staged.replace(target)  # a process that has the old one mapped keeps it
    return ""


def commit_of(root: Path) -> str | None:
    """The commit of a checkout, with ``-dirty`` where files differ from it; else None.

    None also where git is missing, and where ``root`` only lies in the checkout of another project.
    """
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=_MINUTE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from packaging.tags import platform_tags
except ImportError:  # run as a program, where no build backend is installed
    pass
else:

    class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
        """Has the wheel carry the compiled modules, for all Pythons from 3.11 on."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:
            """Compile before files are collected; say so if that does not work."""
            if version != "editable":
                self._note_commit(build_data)
            if self.target_name != "wheel" or _is_on("RMQCTL_PURE"):
                return
            reason = compile_native(Path(self.root))
            if reason and _is_on("RMQCTL_COMPILED"):
                raise RuntimeError(f"RMQCTL_COMPILED is set, but nothing is compiled: {reason}")
            if reason:
                self.app.display_warning(f"without compiled loops: {reason}")
                return
            build_data["artifacts"] += [f"{folder}/{_NAME}" for folder in MODULES]
            build_data["pure_python"] = False
            build_data["tag"] = f"cp311-abi3-{_platform()}"

        def _note_commit(self, build_data: dict[str, Any]) -> None:
            """Put the commit into what is built, and no file into the checkout."""
            commit = commit_of(Path(self.root))
            if commit is None:  # an sdist has the file already
                return
            self._folder = tempfile.TemporaryDirectory()
            note = Path(self._folder.name) / "build.json"
            note.write_text(json.dumps({"commit": commit}) + "\n", "utf-8")
            build_data["force_include"][str(note)] = _BUILT

        def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
            """Remove the note of the commit, which is in the archive by now."""
            if hasattr(self, "_folder"):
                self._folder.cleanup()

    def _is_on(name: str) -> bool:
        return os.environ.get(name, "").strip().lower() not in _OFF

    def _platform() -> str:
        """The narrowest tag that says which C library it needs: this one's, or a newer one."""
        tags = list(platform_tags())
        return next((tag for tag in tags if not tag.startswith("linux_")), tags[0])


if __name__ == "__main__":
    sys.exit(compile_native(Path(__file__).parent) or 0)
