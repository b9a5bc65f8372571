"""RocketMQ releases and probes; one JVM a session where tests can share it.

The tests here carry the marker `interop`, which skips them where there is no JDK or Maven.
"""

from collections.abc import Iterator

import pytest

from tests.interop.store_probe import StoreProbe
from tests.support.java import Release, prepare

pytest.register_assert_rewrite("tests.interop.answers", "tests.interop.our_writing")


@pytest.fixture(scope="session")
def java49() -> Release:
    return prepare("4.9.7")


@pytest.fixture(scope="session")
def java53() -> Release:
    return prepare("5.3.3")


@pytest.fixture(scope="session")
def probe49(java49: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProbe]:
    probe = StoreProbe(java49, tmp_path_factory.mktemp("java49"))
    yield probe
    probe.close()


@pytest.fixture(scope="session")
def probe53(java53: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProbe]:
    probe = StoreProbe(java53, tmp_path_factory.mktemp("java53"))
    yield probe
    probe.close()
