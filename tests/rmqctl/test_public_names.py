"""What ``rmqctl`` offers, and what importing it costs."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import rmqctl
from rmqctl import SMALL_STORE, MessageStore

SHOWN = [
    "broker.embedded.broker",
    "client.producer.producer",
    "client.producer.batch",
    "client.producer.selector",
    "client.producer.transaction_producer",
]


@pytest.mark.conformance("I3")
def test_every_public_name_is_what_its_type_checkers_see():
    tree = ast.parse(Path(rmqctl.__file__).read_text())
    seen = {
        (node.module if node.level == 0 else f"rmqctl.{node.module}", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__"
        for alias in node.names
        if alias.asname
    }
    offered = {(module, name) for module, names in rmqctl._NAMES.items() for name in names}
    assert seen == offered
    for module, name in offered:
        assert getattr(rmqctl, name) is getattr(import_module(module), name)
        assert name in dir(rmqctl)
    with pytest.raises(AttributeError, match="no attribute 'Consumer'"):
        _ = rmqctl.Consumer


@pytest.mark.slow
def test_a_star_brings_every_public_name():
    code = "from rmqctl import *; import rmqctl; print(sorted(rmqctl._WHERE.keys() - {*globals()}))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_importing_the_package_imports_nothing_of_ours():
    code = "import rmqctl, sys; print([m for m in sys.modules if m.split('.')[0] in "
    code += "('rmqctl', 'client', 'broker', 'storage', 'numpy', 'concurrent')])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "['rmqctl']"


@pytest.mark.parametrize("module", SHOWN)
def test_examples_do_what_they_show(module, tmp_path):
    store = tmp_path / "demo-store"
    MessageStore.create(store, SMALL_STORE)
    result = doctest.testmod(import_module(module), extraglobs={"store": store})
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", ["client.py", "storage/__init__.py"])
def test_a_file_that_shadows_a_package_of_ours_is_named(tmp_path, name):
    beside = tmp_path / name
    beside.parent.mkdir(exist_ok=True)
    beside.touch()
    program = tmp_path / "program.py"
    program.write_text("from rmqctl import Message\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    shadowed = name.split("/")[0].removesuffix(".py")
    assert last.startswith("ImportError: another package shadows a package of rmqctl: ")
    assert f"{shadowed} is {beside}" in last
