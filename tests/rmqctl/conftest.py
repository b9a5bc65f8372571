"""A store and a home of its own for each test of the command line."""

import pytest

from storage.config import SMALL_STORE
from storage.readonly import StoreView
from storage.store import MessageStore
from storage.tools.fsck import fsck


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """No settings, no default store and no ./store but the test's own."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(home))
    for name in ("RMQCTL_STORE", "RMQCTL_CONTEXT", "RMQCTL_CONFIG", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A small empty store that the commands find; checked when the test is over."""
    path = tmp_path / "s"
    MessageStore.create(path, SMALL_STORE)
    monkeypatch.setenv("RMQCTL_STORE", str(path))
    yield path
    with StoreView.open(path) as view:
        report = fsck(view)
    assert report.healthy, report.findings
