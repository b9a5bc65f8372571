"""Golden stores as parameters of tests whose subject is built on reading them.

Records, queues, index files and recovery are tested on all of them in every run; here the short
run has one of each kind, or those few in which a reader meets something else.
"""

from collections.abc import Container, Iterable

import pytest
from _pytest.mark import ParameterSet

from tests.support import golden

ONE_OF_EACH = {
    *("basic-4.9", "cqext-4.9", "hole-4.9", "ipv6-4.9", "lmq-4.9", "phantom-4.9"),
    *("retention-5.3", "retry-dlq-5.3", "small-files-4.9", "time-4.9", "transaction-4.9"),
    *("torn-bad-crc-middle-4.9", "torn-clean-bad-crc-last-4.9", "torn-cq-file-missing-5.3"),
    *("torn-no-index-4.9", "unclean-5.3"),
}

FEW = {
    *("basic-4.9", "ipv6-4.9", "lmq-4.9", "retry-dlq-5.3"),
    *("torn-clean-bad-crc-last-4.9", "torn-no-index-4.9"),
}
"""For dear tests of commands: a plain store, long addresses, light queues, dead letters, damage."""

OTHERWISE_READ = {
    *("hole-4.9", "ipv6-4.9", "lmq-4.9", "retention-5.3", "small-files-4.9"),
    *("torn-bad-crc-middle-4.9", "torn-cq-file-missing-5.3"),
}
"""For dear tests of readers: bytes that are lost, other hosts, records of two queues, deleted
files, many files, a damaged message, units that are rebuilt."""


def some(names: Iterable[str], short: Container[str] = ONE_OF_EACH) -> list[ParameterSet]:
    """These stores; those that are not in ``short`` are marked as long."""
    return [pytest.param(name, marks=[] if name in short else pytest.mark.long) for name in names]


SOME = pytest.mark.parametrize("name", some(golden.names()))
A_FEW = pytest.mark.parametrize("name", some(golden.names(), FEW))
SOME_READ_OTHERWISE = pytest.mark.parametrize("name", some(golden.names(), OTHERWISE_READ))
