"""Each compiled function is declared, and has a reference in the module that owns it."""

from __future__ import annotations

import ast
import importlib
from glob import glob
from pathlib import Path
from typing import Any

import pytest

import client.native
import rmqctl.native
import storage.native
from tests.support.compiled import compiled, compiled_client, native, needs_compiled

ROOT = Path(__file__).parents[2]
ONLY_COMPILED = {
    "bind_message", "make_late",  # the class of messages, see storage.format.message
    "encode_run", "encode_column", "encode_rows", "place", "units", "key_places",  # PreparedTable
    "crc32_ways", "die_after",  # of tests
    "bind_pulled",
}  # fmt: skip
"""Functions that modules take from the compiled module itself."""
MODULES = [
    (storage.native, compiled),
    (client.native, compiled_client),
    (rmqctl.native, rmqctl.native.compiled),
]


def functions_of(module: Any) -> set[str]:
    return {name for name, found in vars(module).items() if type(found) is type(len)}


@needs_compiled
@pytest.mark.parametrize(("package", "module"), MODULES)
def test_each_is_declared_and_each_declared_one_is_there(package: Any, module: Any) -> None:
    stub = Path(package.__file__).with_name("_compiled.pyi")
    body = ast.parse(stub.read_text()).body
    assert functions_of(module) == {node.name for node in body if type(node) is ast.FunctionDef}


@needs_compiled
@pytest.mark.parametrize(("package", "module"), MODULES)
def test_each_has_a_reference_in_one_module(package: Any, module: Any) -> None:
    for path in [
        Path(path)
        for name in ("storage", "analytics", "client", "rmqctl")
        # rglob does not go into folders that are links, as in the copy of test_compiled_memory.py
        for path in glob(f"{ROOT / name}/**/*.py", recursive=True)  # noqa: PTH207
    ]:
        if "native.form(" in path.read_text():
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    assert functions_of(module) - ONLY_COMPILED == set(package.references)


@needs_compiled
def test_forms_of_tests_are_those_of_all_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    from storage.format import message, properties

    for module, wanted in (
        (None, properties.parse_properties_pure),
        (compiled, compiled.parse_properties),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(native, "compiled", module)
            assert properties.parse_properties is vars(message)["parse_properties"] is wanted
